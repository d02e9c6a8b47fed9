// Of the load (load.ts): a bucket with object lock, and one version in it whose retention and legal hold change. It has to stay
// while the load runs, and goes by the bypass of GOVERNANCE.
import { type Reach, succeedThing, type Thing } from './load-things.ts';

const NUMBERS_MAX = 1000;
const GOVERNANCE = 'GOVERNANCE';
const BYPASS = { 'x-amz-bypass-governance-retention': 'true' };
const FIRST = '2100-01-01T00:00:00.000Z';

/** State: the days of the bucket's default, the end of the version's retention, and its legal hold. */
type State = [days: string, until: string, hold: string];

export function lockedObject(bucket: string): Thing {
  const ofBucket = `/${bucket}?object-lock=`;
  const path = `/${bucket}/locked`;
  const stateOf = (...parts: State) => parts.join(' ');
  const put = async (reach: Reach, to: string, text: string, headers: Record<string, string> = {}) =>
    void (await succeedThing(reach, { method: 'PUT', path: to, headers, body: Buffer.from(text) }));
  const lockXml = (days: string) =>
    `<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>${GOVERNANCE}</Mode><Days>${days}</Days></DefaultRetention></Rule></ObjectLockConfiguration>`;
  const putHold = (reach: Reach, hold: string) =>
    put(reach, `${path}?legal-hold=`, `<LegalHold><Status>${hold}</Status></LegalHold>`);

  return {
    name: ofBucket,
    async prepare(reach) {
      const headers = { 'x-amz-bucket-object-lock-enabled': 'true' };
      await succeedThing(reach, { method: 'PUT', path: `/${bucket}`, headers });
      await put(reach, ofBucket, lockXml('1'));
      await put(reach, path, 'locked', {
        'x-amz-object-lock-mode': GOVERNANCE,
        'x-amz-object-lock-retain-until-date': FIRST,
        'x-amz-object-lock-legal-hold': 'ON',
      });
    },
    async read(reach) {
      const { headers, body } = await succeedThing(reach, { method: 'GET', path });
      if (String(body) !== 'locked') return `other bytes: ${body}`;
      const versionId = headers['x-amz-version-id'];
      const deleted = await reach.s3({ method: 'DELETE', path: `${path}?versionId=${versionId}` });
      if (deleted.status !== 403) return `deletion of a locked version: ${deleted.status}`;
      const lock = await succeedThing(reach, { method: 'GET', path: ofBucket });
      const days = /<Days>(\d+)</.exec(lock.body.toString())?.[1] ?? 'none';
      return stateOf(
        days,
        String(headers['x-amz-object-lock-retain-until-date']),
        String(headers['x-amz-object-lock-legal-hold']),
      );
    },
    change(state, random) {
      const [days, until, hold] = state.split(' ') as State;
      const number = 1 + Math.floor(random() * NUMBERS_MAX);
      const kind = Math.floor(random() * 3);
      if (kind === 0)
        return {
          kind: 'put object lock',
          next: stateOf(String(number), until, hold),
          send: (reach) => put(reach, ofBucket, lockXml(String(number))),
        };
      if (kind === 1) {
        const next = new Date(Date.parse(FIRST) + number * 1000).toISOString();
        const body = `<Retention><Mode>${GOVERNANCE}</Mode><RetainUntilDate>${next}</RetainUntilDate></Retention>`;
        return {
          kind: 'put retention',
          next: stateOf(days, next, hold),
          send: (reach) => put(reach, `${path}?retention=`, body, BYPASS),
        };
      }
      const other = hold === 'ON' ? 'OFF' : 'ON';
      return {
        kind: 'put legal hold',
        next: stateOf(days, until, other),
        send: (reach) => putHold(reach, other),
      };
    },
    async clear(reach) {
      await putHold(reach, 'OFF');
      const { headers } = await succeedThing(reach, { method: 'HEAD', path });
      const version = `${path}?versionId=${headers['x-amz-version-id']}`;
      await succeedThing(reach, { method: 'DELETE', path: version, headers: BYPASS });
      await succeedThing(reach, { method: 'DELETE', path: `/${bucket}` });
    },
  };
}

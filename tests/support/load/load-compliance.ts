// Of the load (load.ts): a bucket under compliance, and what is put for an object in it. It has to stay while the load runs, and
// goes when compliance is off, because its settings are never locked.
import { bucketComplianceXml, objectComplianceXml } from '../servers/compliance.ts';
import { type Reach, succeedThing, type Thing } from './load-things.ts';

const DAYS_MAX = 1000;

/** State: the days of the bucket, and whether its object is under a legal hold. */
export function compliantObject(bucket: string): Thing {
  const ofBucket = `/${bucket}?compliance=`;
  const path = `/${bucket}/kept`;
  const ofObject = `${path}?compliance=`;
  const textIn = async (reach: Reach, of: string, name: string) => {
    const { status, body } = await reach.s3({ method: 'GET', path: of });
    return new RegExp(`<${name}>(.*?)</${name}>`).exec(body.toString())?.[1] ?? `${status} ${body}`;
  };
  const put = async (reach: Reach, to: string, text: string) =>
    void (await succeedThing(reach, { method: 'PUT', path: to, body: Buffer.from(text) }));
  const settings = (days: string) => bucketComplianceXml({ Status: 'enabled', RetentionDays: days });

  return {
    name: ofBucket,
    async prepare(reach) {
      await succeedThing(reach, { method: 'PUT', path: `/${bucket}` });
      await put(reach, path, 'kept');
      await put(reach, ofBucket, settings('1'));
    },
    async read(reach) {
      const { body } = await succeedThing(reach, { method: 'GET', path });
      if (String(body) !== 'kept') return `other bytes: ${body}`;
      const days = await textIn(reach, ofBucket, 'RetentionDays');
      return `${days} ${await textIn(reach, ofObject, 'LegalHold')}`;
    },
    change(state, random) {
      const [days = '', hold] = state.split(' ');
      if (random() < 0.5) {
        const next = String(1 + Math.floor(random() * DAYS_MAX));
        return {
          kind: 'put bucket compliance',
          next: `${next} ${hold}`,
          send: (reach) => put(reach, ofBucket, settings(next)),
        };
      }
      const LegalHold = hold !== 'true';
      return {
        kind: 'put object compliance',
        next: `${days} ${LegalHold}`,
        send: (reach) => put(reach, ofObject, objectComplianceXml({ LegalHold })),
      };
    },
    async clear(reach) {
      await put(reach, ofBucket, bucketComplianceXml({ Status: 'disabled' }));
      await succeedThing(reach, { method: 'DELETE', path });
      await succeedThing(reach, { method: 'DELETE', path: `/${bucket}` });
    },
  };
}

// Of the load (load.ts): the lifecycle rules of a bucket, which are put, replaced and taken away. They touch nothing.
import { lifecycleXml } from '../objects/lifecycle-documents.ts';
import { type Reach, succeedThing, type Thing } from './load-things.ts';

const ABSENT = '0';

/** State: the number in the id of its rule; 0 where there is none. */
export function ruledBucket(bucket: string): Thing {
  const path = `/${bucket}?lifecycle=`;
  let written = 0;
  return {
    name: path,
    async prepare(reach) {
      await succeedThing(reach, { method: 'PUT', path: `/${bucket}` });
    },
    async read(reach) {
      const { status, body } = await reach.s3({ method: 'GET', path });
      if (status === 404 && body.includes('NoSuchLifecycleConfiguration')) return ABSENT;
      return /<ID>(\d+)<\/ID>/.exec(body.toString())?.[1] ?? `${status} ${body}`;
    },
    change(state, random) {
      if (state !== ABSENT && random() < 1 / 3)
        return { kind: 'delete rules', next: ABSENT, send: (reach) => send(reach, 'DELETE') };
      const next = String(++written);
      const rule = `<ID>${next}</ID><Filter></Filter><Status>Disabled</Status><Expiration><Days>1</Days></Expiration>`;
      return {
        kind: 'put rules',
        next,
        send: (reach) => send(reach, 'PUT', Buffer.from(lifecycleXml(rule))),
      };
    },
    async clear(reach) {
      await succeedThing(reach, { method: 'DELETE', path: `/${bucket}` });
    },
  };

  async function send(reach: Reach, method: string, body?: Buffer): Promise<void> {
    await succeedThing(reach, { method, path, ...(body && { body }) });
  }
}

// Of the load (load.ts): an object that comes by forms, its access control list, and the list and the policy of its bucket.
// Nobody but the owner uses what they allow.
import { seededBytes } from '../clients/tree.ts';
import { type Reach, succeedThing, type Thing } from './load-things.ts';

/** State: size of the object, its list, the bucket's list, and the number in the bucket's policy; 0 where there is none. */
type State = [size: string, list: string, bucketList: string, policy: string];
const LISTS = ['private', 'public-read'] as const;
const ABSENT = '0';
const SIZE_STEP = 1000;

const pick = <T>(random: () => number, some: readonly T[]): T =>
  some[Math.floor(random() * some.length)] as T;

export function sharedObject(bucket: string): Thing {
  const path = `/${bucket}/formed`;
  let written = 0;
  const bytesOf = (size: string) => seededBytes(`${path} ${size}`, Number(size));
  const listOf = async (reach: Reach, of: string) => {
    const { body } = await succeedThing(reach, { method: 'GET', path: `${of}?acl=` });
    return body.includes('AllUsers') ? 'public-read' : 'private';
  };
  const stateOf = (...parts: State) => parts.join(' ');

  return {
    name: path,
    async prepare(reach) {
      await succeedThing(reach, { method: 'PUT', path: `/${bucket}` });
    },
    async read(reach) {
      const object = await reach.s3({ method: 'GET', path });
      const isThere = object.status === 200;
      const size = isThere ? String(object.body.length) : ABSENT;
      if (isThere && !object.body.equals(bytesOf(size))) return `other bytes of ${size}`;
      const policy = await reach.s3({ method: 'GET', path: `/${bucket}?policy=` });
      const number = /"Id":"(\d+)"/.exec(policy.body.toString())?.[1] ?? ABSENT;
      const list = isThere ? await listOf(reach, path) : 'private';
      return stateOf(size, list, await listOf(reach, `/${bucket}`), number);
    },
    change(state, random) {
      const [size, list, bucketList, policy] = state.split(' ') as State;
      const number = String(++written);
      const wanted = pick(random, LISTS);
      const headers = { 'x-amz-acl': wanted };
      const send =
        (method: string, to: string, more: { headers?: Record<string, string>; body?: Buffer } = {}) =>
        async (reach: Reach) =>
          void (await succeedThing(reach, { method, path: to, ...more }));
      const kind =
        size === ABSENT
          ? 'form'
          : pick(random, ['form', 'acl', 'bucket acl', 'policy', 'policy', 'no policy']);
      if (kind === 'acl')
        return {
          kind: 'put object acl',
          next: stateOf(size, wanted, bucketList, policy),
          send: send('PUT', `${path}?acl=`, { headers }),
        };
      if (kind === 'bucket acl')
        return {
          kind: 'put bucket acl',
          next: stateOf(size, list, wanted, policy),
          send: send('PUT', `/${bucket}?acl=`, { headers }),
        };
      if (kind === 'policy')
        return {
          kind: 'put policy',
          next: stateOf(size, list, bucketList, number),
          send: send('PUT', `/${bucket}?policy=`, { body: Buffer.from(policyText(bucket, number)) }),
        };
      if (kind === 'no policy')
        return {
          kind: 'delete policy',
          next: stateOf(size, list, bucketList, ABSENT),
          send: send('DELETE', `/${bucket}?policy=`),
        };
      const next = String(written * SIZE_STEP + Math.floor(random() * SIZE_STEP));
      return {
        kind: 'post form',
        next: stateOf(next, 'private', bucketList, policy),
        send: (reach) => reach.form(bucket, 'formed', bytesOf(next)),
      };
    },
    async clear(reach) {
      await succeedThing(reach, { method: 'DELETE', path });
      await succeedThing(reach, { method: 'DELETE', path: `/${bucket}` });
    },
  };
}

function policyText(bucket: string, number: string): string {
  const Resource = `arn:aws:s3:::${bucket}/never`;
  const Statement = [{ Effect: 'Deny', Principal: '*', Action: 's3:GetObject', Resource }];
  return JSON.stringify({ Version: '2012-10-17', Id: number, Statement });
}

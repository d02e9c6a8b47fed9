// What the clients of a sub-account do on a day: in a store, in what a gateway meters of requests, and in the ledger.
import { expect } from 'vitest';
import { meterRequest } from '../../../src/gateway/metering/request-traffic.ts';
import type { TrafficMeter } from '../../../src/gateway/metering/traffic-meter.ts';
import type { AccessRecord } from '../../../src/gateway/s3/access-record.ts';
import type { BucketTarget } from '../../../src/objects/object-store.ts';
import type { AccountId, ObjectKey } from '../../../src/types/names.ts';
import { type ObjectWorld, sourceOf } from '../objects/object-world.ts';
import type { QuarterLedger } from './quarter-ledger.ts';

/** Days after the first one on which something is made that outlives the minimum duration of its parts. */
const LONG_LIVED_ON = [2, 5, 8, 11, 16];
const KEPT_DAYS = 105;
/** Of an answer that is an error or a list. */
const ANSWER_BYTES = 300;

export interface LivingAccount {
  owner: AccountId;
  bucket: BucketTarget;
  ledger: QuarterLedger;
}

export interface LivedStore {
  world: ObjectWorld;
  meter: Pick<TrafficMeter, 'note'>;
}

/** A whole number below `bound`. */
export type Choose = (bound: number) => number;

export function actsOf({ world, meter }: LivedStore, { owner, bucket, ledger }: LivingAccount, day: number) {
  const { calls } = world;
  const { homeShard, believed } = bucket;
  const { bucketId } = believed;
  const signal = new AbortController().signal;
  const of = (key: string) => ({ calls, bucket, owner, key: key as ObjectKey, signal });
  const from = async (key: string) => ({
    bucket,
    key: key as ObjectKey,
    found: await world.find(key, { bucket }),
  });
  const has = (key: string) => ledger.originalCount(key) > 0;
  /** As the record of a request that is over says it. */
  const note = (operation: string, more: Partial<AccessRecord>) => {
    const nothing = { status: 200, receivedBytes: 0, sentBytes: 0 };
    meterRequest(meter, { ...nothing, operation, accountId: owner, ...more } as AccessRecord);
  };
  const metered = { record: { owner, bucketId }, homeShard };
  const requested = (operation: string, more: Partial<AccessRecord> = {}) =>
    note(operation, { bucketOwner: owner, metered, ...more });
  return {
    async put(key: string, sizeBytes: number) {
      await world.put(key, Buffer.alloc(sizeBytes, 'x'), { bucket, owner });
      requested('PutObject', { receivedBytes: sizeBytes, storedBytes: sizeBytes });
      ledger.put(key, day, sizeBytes);
    },
    async append(key: string, sizeBytes: number) {
      if (!has(key)) return;
      await world.store.appendObject({ ...of(key), body: sourceOf(Buffer.alloc(sizeBytes, 'y')) });
      requested('AppendObject', { receivedBytes: sizeBytes, storedBytes: sizeBytes });
      ledger.append(key, day, sizeBytes);
    },
    async copy(source: string, key: string) {
      if (!has(source) || source === key) return;
      await world.store.copyObject({ ...of(key), source: await from(source) });
      requested('CopyObject');
      ledger.copy(source, key, day);
    },
    async compose(sources: readonly string[], key: string) {
      const count = sources.reduce((sum, source) => sum + ledger.originalCount(source), 0);
      if (!sources.every(has) || sources.includes(key) || count > 32) return;
      await world.store.composeObject({ ...of(key), components: await Promise.all(sources.map(from)) });
      requested('ComposeObject');
      ledger.compose(sources, key, day);
    },
    async rename(source: string, key: string) {
      if (!has(source) || source === key) return;
      const move = { from: source as ObjectKey, to: key as ObjectKey };
      const command = { bucketId, move, overwrites: true };
      const { value } = await calls.execute({ shard: homeShard }, 'move-key', command);
      expect(value.kind).toBe('moved-key');
      requested('MoveObject');
      ledger.rename(source, key, day);
    },
    async remove(key: string) {
      const command = { bucketId, owner, items: [{ key: key as ObjectKey }] };
      await calls.execute({ shard: homeShard }, 'delete-versions', command);
      requested('DeleteObject', { status: 204, removedBytes: ledger.sizeBytes(key) });
      ledger.remove(key, day);
    },
    async read(key: string) {
      if (!has(key)) {
        requested('GetObject', { status: 404, sentBytes: ANSWER_BYTES });
        ledger.request(day, { getCalls: 1, downloadBytes: ANSWER_BYTES });
        return;
      }
      const { length } = await world.get(key, { bucket });
      requested('GetObject', { sentBytes: length });
      ledger.read(key, day);
    },
    /** Requests about no bucket, and those that count for nobody: of strangers who are refused, and faults. */
    others() {
      note('ListBuckets', { sentBytes: ANSWER_BYTES });
      ledger.request(day, { listCalls: 1, downloadBytes: ANSWER_BYTES });
      requested('PutObject', { status: 403, accountId: 'another one', sentBytes: ANSWER_BYTES });
      requested('PutObject', { status: 503, receivedBytes: 1000 });
    },
  };
}

/** `age`: days since the first one. */
export async function liveADay(
  store: LivedStore,
  account: LivingAccount,
  { day, age, choose }: { day: number; age: number; choose: Choose },
): Promise<void> {
  const acts = actsOf(store, account, day);
  const key = () => `k${choose(10)}`;
  // What outlives its components by more than their minimum duration, then goes, or stays.
  if (LONG_LIVED_ON.includes(age)) {
    await acts.put('base', 9000 + age);
    if (age % 2 === 0) await acts.append('base', 10 + age);
    await acts.compose(['base', key()], `kept ${age}`);
    await acts.compose(['base'], `kept alone ${age}`);
    await acts.copy(`kept alone ${age}`, `copy ${age}`);
    if (age % 2 === 1) await acts.append(`copy ${age}`, 100);
    await acts.remove('base');
  }
  if (LONG_LIVED_ON.includes(age - KEPT_DAYS)) {
    await acts.remove(`kept ${age - KEPT_DAYS}`);
    await acts.remove(`kept alone ${age - KEPT_DAYS}`);
    if (age % 3 === 0) await acts.remove(`copy ${age - KEPT_DAYS}`);
  }
  for (let step = choose(6); step > 0; step--) {
    // From nothing, over what is charged with the smallest size, to chunks.
    const sizeBytes = choose(3) === 0 ? choose(5000) : choose(100_000);
    const ways = [
      () => acts.put(key(), sizeBytes),
      () => acts.put(key(), sizeBytes),
      () => acts.append(key(), 1 + sizeBytes),
      () => acts.copy(key(), key()),
      () => acts.compose([key(), key()], key()),
      () => acts.rename(key(), key()),
      () => acts.remove(key()),
      () => acts.read(key()),
      () => acts.others(),
    ];
    await ways[choose(ways.length)]?.();
  }
}

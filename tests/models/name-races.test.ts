// Names under every disorder that gateways can make (R41 to R43): creations, renames and deletions, also forced, of few names by many
// actors, one call at a time in random order, actors that die between any two calls, answers that are lost, messages
// that come again late, two deliveries of the outbox at once. After each step fsck finds nothing; every read tells what
// was so at one moment between question and answer; and when all is over, each bucket has one name and each name one
// bucket.

import { expect, test } from 'vitest';
import { fromUtf8 } from '../../src/base/bytes/bytes.ts';
import { compareBuckets, compareNames } from '../../src/fsck/compare-names.ts';
import { FsckRun } from '../../src/fsck/run.ts';
import { createBucketCache } from '../../src/gateway/s3/buckets/bucket-cache.ts';
import { createBucketEmptier } from '../../src/metadata/buckets/empty-buckets.ts';
import { createOutboxDelivery } from '../../src/metadata/jobs/deliver-outbox.ts';
import { doneValue } from '../../src/metadata/workers/shard-worker.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../../src/ports/metadata/port.ts';
import { LIMITS } from '../../src/types/limits.ts';
import type { AccountId, BucketId, BucketName } from '../../src/types/names.ts';
import {
  accountCodec,
  type BucketRecord,
  bucketCodec,
  type NameRecord,
  nameCodec,
} from '../../src/types/records/rows.ts';
import { type FsckWorld, openFsckWorld } from '../support/fsck/fsck-world.ts';
import { kek, OWNER } from '../support/metadata/metadata-shards.ts';
import { createSteppedCalls, type SteppedCalls } from '../support/metadata/stepped-calls.ts';
import { amountOf } from '../support/run/long-form.ts';
import { createSeededRandom } from '../support/run/simulated.ts';

const SEEDS = amountOf({ short: 50, long: 1000 });
/** Of one seed, and at one time. */
const ACTORS_MAX = 40;
const ACTORS_BESIDE = 6;
const SHARDS = [0, 1, 2];
const NAMES = ['red', 'blue', 'bucket-1', 'bucket-2'] as BucketName[];
const OTHER = '000000000002' as AccountId;
const system = { shard: SYSTEM_SHARD };

type Actor = (metadata: MetadataPort) => Promise<unknown>;

/** As CreateBucket does. */
function create(name: BucketName, owner: AccountId): Actor {
  return async (metadata) => {
    const reserved = doneValue(await metadata.execute(system, 'reserve-name', { name, owner }));
    if (reserved.kind !== 'reserved') return;
    const { bucketId, homeShard } = reserved;
    await metadata.execute({ shard: homeShard }, 'create-bucket', { bucketId, name, owner });
    await metadata.execute(system, 'activate-name', { name, bucketId });
  };
}

async function find(metadata: MetadataPort, name: BucketName) {
  const { record } = doneValue(await metadata.query(system, 'find-name', { name }));
  if (record === null || record.state === 'creating') return undefined;
  const { bucketId, homeShard } = record;
  const home = { shard: homeShard };
  const { bucket } = doneValue(await metadata.query(home, 'get-bucket', { bucketId }));
  return isServed(bucket) && bucket.name === name ? { bucket, home, record } : undefined;
}

/** What is closing is read, until it is deleted or open again. */
function isServed(bucket: BucketRecord | null): bucket is BucketRecord {
  return bucket !== null && bucket.state !== 'deleted';
}

/** As MOVE of a bucket; by a row that is out of date, or has never been, where `epochsOff` is not 0. */
function rename(from: BucketName, to: BucketName, epochsOff: number): Actor {
  return async (metadata) => {
    const found = await find(metadata, from);
    if (found === undefined) return;
    const { bucketId } = found.bucket;
    const nameEpoch = found.bucket.nameEpoch + epochsOff;
    const names = { bucketId, from, to };
    const begun = doneValue(await metadata.execute(system, 'begin-rename', { ...names, nameEpoch }));
    if (begun.kind !== 'begun') return;
    const rest = { ...names, nameEpoch: begun.nameEpoch };
    const { kind: verdict } = doneValue(await metadata.execute(found.home, 'rename-bucket', rest));
    await metadata.execute(system, 'end-rename', { ...names, itemId: begun.itemId, verdict });
  };
}

/** As DeleteBucket does. */
function remove(name: BucketName): Actor {
  return async (metadata) => {
    const found = await find(metadata, name);
    if (found === undefined) return;
    const { bucketId, cfgVersion, owner } = found.bucket;
    const target = { ...found.home, bucket: { bucketId, name, cfgVersion } };
    const reply = await metadata.execute(target, 'delete-bucket', { bucketId });
    if (reply.kind !== 'done' || reply.value.kind !== 'deleted') return;
    await metadata.execute(system, 'forget-name', { name, bucketId, owner });
  };
}

/** As ForceDeleteBucket does, whatever its look has found. */
function force(name: BucketName, next: { kind: 'delete' } | { kind: 'reopen' }): Actor {
  return async (metadata) => {
    const found = await find(metadata, name);
    if (found === undefined) return;
    const { bucketId, cfgVersion, owner, jobId: underWay } = found.bucket;
    let jobId = underWay;
    let stepCount = 0;
    if (jobId === undefined) {
      const target = { ...found.home, bucket: { bucketId, name, cfgVersion } };
      const reply = await metadata.execute(target, 'close-bucket', { bucketId });
      if (reply.kind !== 'done' || reply.value.kind !== 'closing') return;
      ({ jobId, stepCount } = reply.value.job);
    }
    const step = { bucketId, jobId, stepCount, count: 0, next };
    const outcome = doneValue(await metadata.execute(found.home, 'step-closing', step));
    if (outcome.kind === 'deleted')
      await metadata.execute(system, 'forget-name', { name: outcome.bucket.name, bucketId, owner });
  };
}

/** Closings that their gateways have left. */
function empty({ metadata: { clock } }: FsckWorld): Actor {
  return async (metadata) => {
    clock.advance(LIMITS.jobStallTimeoutMs);
    const emptier = createBucketEmptier({ metadata, shards: () => SHARDS, clock });
    while ((await emptier.work(new AbortController().signal)).state === 'busy');
  };
}

function deliver({ metadata: { clock } }: FsckWorld): Actor {
  return async (metadata) => {
    const nothing = () => {};
    const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
    const delivery = createOutboxDelivery({ metadata, shards: () => SHARDS, clock, log });
    await delivery.work(new AbortController().signal);
  };
}

/** What is under way is no damage, whatever comes between two looks. */
function compare({ chunks, metadata: { clock } }: FsckWorld): Actor {
  return async (metadata) => {
    const { signal } = new AbortController();
    const run = new FsckRun(
      { metadata, chunks, clock, keyIds: () => [] },
      { readData: false, fullSpeed: true },
      signal,
    );
    for (const shard of SHARDS) await compareBuckets(run, shard);
    await compareNames(run);
    expect(run.findings).toEqual([]);
  };
}

/** Which bucket each name leads to. */
async function readNames({ rows }: FsckWorld): Promise<{
  leads: Map<string, BucketId>;
  records: Map<string, NameRecord>;
  open: Map<string, BucketId[]>;
}> {
  const open = new Map<string, BucketId[]>();
  for (const shard of SHARDS) {
    for (const { value } of await rows('buckets', shard)) {
      const { name, bucketId, state } = bucketCodec.decode(value);
      if (state !== 'deleted') open.set(name, [...(open.get(name) ?? []), bucketId]);
    }
  }
  const records = new Map<string, NameRecord>();
  const leads = new Map<string, BucketId>();
  for (const { key, value } of await rows('names')) {
    const [name, record] = [fromUtf8(key), nameCodec.decode(value)];
    records.set(name, record);
    if (record.state !== 'creating' && open.get(name)?.includes(record.bucketId) === true) {
      leads.set(name, record.bucketId);
    }
  }
  return { leads, records, open };
}

/** A reader, and what it may be told: whatever was so at one moment since it began. */
function read(name: BucketName, moments: (BucketId | undefined)[][], now: () => BucketId | undefined): Actor {
  return async (metadata) => {
    const seen = [now()];
    moments.push(seen);
    const found = await createBucketCache(metadata).read(name);
    expect(seen).toContain(found?.record.bucketId);
    moments.splice(moments.indexOf(seen), 1);
  };
}

async function openWorld(): Promise<FsckWorld> {
  const world = await openFsckWorld({ isEmpty: true });
  await world.metadata.execute('create-account', {
    account: {
      accountId: OTHER,
      name: 'other',
      email: 'other',
      canonicalId: 'o',
      state: 'paid',
      bucketsMax: 2,
      isRoot: false,
    },
    accessKey: { accessKey: 'AKOTHER', sealedSecret: kek },
  });
  return world;
}

/** Everything over: what is left of the actors ends, and the outboxes are emptied. */
async function finish(world: FsckWorld, calls: SteppedCalls): Promise<void> {
  while (await calls.step({ mayDie: false }));
  while (calls.lateCount > 0) await calls.stepLate();
  await empty(world)(world.metadata.shards);
  for (let round = 0; round < 3; round++) await deliver(world)(world.metadata.shards);
  const { findings, pending } = await world.fsck();
  expect([findings, pending]).toEqual([[], []]);
  const { leads, records, open } = await readNames(world);
  expect([...records.values()].map(({ state }) => state)).toEqual([...records].map(() => 'active'));
  expect([...leads.keys()].sort()).toEqual([...records.keys()].sort());
  expect([...open].map(([name, ids]) => [name, ...ids]).sort()).toEqual([...leads].sort());
  const listed = (await world.rows('accountBuckets')).map(({ key }) => fromUtf8(key.subarray(6)));
  expect(listed.sort()).toEqual([...records.keys()].sort());
  for (const { value } of await world.rows('accounts')) {
    const { accountId, bucketCount } = accountCodec.decode(value);
    expect(bucketCount).toBe([...records.values()].filter(({ owner }) => owner === accountId).length);
  }
}

async function race(seed: number): Promise<readonly string[]> {
  const random = createSeededRandom(seed);
  const draw = (below: number) => (random.bytes(2)[1] as number) % below;
  const world = await openWorld();
  const calls = createSteppedCalls(world.metadata.shards, random);
  const moments: { name: BucketName; seen: (BucketId | undefined)[][] }[] = [];
  for (const name of NAMES) moments.push({ name, seen: [] });
  let { leads } = await readNames(world);
  const failures: unknown[] = [];
  let actorCount = 0;

  function makeActor(): Actor {
    const at = draw(NAMES.length);
    const name = NAMES[at] as BucketName;
    const other = NAMES[(at + 1 + draw(NAMES.length - 1)) % NAMES.length] as BucketName;
    const owner = draw(2) === 0 ? OWNER : OTHER;
    const kind = draw(15);
    if (kind === 12) return force(name, { kind: 'delete' });
    if (kind === 13) return force(name, { kind: 'reopen' });
    if (kind === 14) return empty(world);
    if (kind < 2) return create(name, owner);
    if (kind < 7) return rename(name, other, [-1, 1, 0, 0, 0][draw(5)] as number);
    if (kind < 9) return remove(name);
    if (kind < 10) return deliver(world);
    if (kind < 11) return compare(world);
    const { seen } = moments[at] as (typeof moments)[number];
    return read(name, seen, () => leads.get(name));
  }

  function begin(): void {
    const actor = makeActor();
    actor(calls.port(`${++actorCount}`)).catch((error: unknown) => failures.push(error));
  }

  try {
    while (actorCount < ACTORS_MAX) {
      while (calls.waitingCount < ACTORS_BESIDE) begin();
      if (calls.lateCount > 0 && draw(6) === 0) await calls.stepLate();
      else await calls.step({ mayDie: true });
      const now = await readNames(world);
      ({ leads } = now);
      for (const [name, ids] of now.open) expect(ids, `open under ${name}`).toHaveLength(1);
      for (const { name, seen } of moments) for (const each of seen) each.push(leads.get(name));
      if (draw(8) === 0) expect((await world.fsck()).findings).toEqual([]);
      expect(failures).toEqual([]);
    }
    await finish(world, calls);
  } catch (error) {
    throw new Error(`seed ${seed}\n${calls.trace.join('\n')}`, { cause: error });
  }
  return calls.trace;
}

const OUTCOMES = [
  ['begin-rename', ['begun', 'in-progress', 'no-such-name', 'owned-already', 'taken']],
  ['rename-bucket', ['refused', 'renamed']],
  ['end-rename', ['gone', 'renamed', 'undone']],
  ['close-bucket', ['closing']],
  ['step-closing', ['deleted', 'reopened']],
] as const;

test(`${SEEDS} disorders`, { timeout: 60_000 + SEEDS * 2000 }, async () => {
  const lines: string[] = [];
  for (let seed = 1; seed <= SEEDS; seed++) lines.push(...(await race(seed)));
  // Every outcome did come about.
  for (const [command, kinds] of OUTCOMES) {
    const replies = lines.filter((line) => line.includes(`: ${command} at`));
    for (const kind of kinds) {
      expect(replies.filter((line) => line.includes(`"kind":"${kind}"`)).length, kind).toBeGreaterThan(
        SEEDS / 50,
      );
    }
  }
});

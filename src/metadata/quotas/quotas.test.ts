// Quotas are exact: of a bucket, whose objects are in one shard, and of an account, whose buckets are in many, with writers at
// once and calls between shards that are lost (extensions 1.4, 6).
import { beforeEach, describe, expect, test } from 'vitest';
import {
  BUCKET,
  BUCKET_NAME,
  beginUpload,
  etagOf,
  kek,
  type MetadataShards,
  OWNER,
  openMetadata,
  putPart,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { createSeededRandom } from '../../../tests/support/run/simulated.ts';
import type { CommandOf, MetadataPort } from '../../ports/metadata/port.ts';
import type { RequestOrigin } from '../../types/events.ts';
import type { AccountId, BucketId, BucketName, ObjectKey } from '../../types/names.ts';
import { packOriginals } from '../../types/originals.ts';
import type { Quota } from '../../types/quota.ts';
import { leaseQuotas } from './lease-quotas.ts';
import { reclaimLeases, settleQuota } from './settle-quota.ts';
import { createQuotaWatch } from './watch-quotas.ts';

const SHARDS = 4;
const QUIET = { debug() {}, info() {}, warn() {}, error() {} };
const QUIET_TELEMETRY = { count() {}, observe() {}, gauge() {}, gaugeAll() {} };
const SILENT = { log: { warn() {} }, telemetry: { count() {} } };
/** Nobody waits. */
const AT_ONCE = { monotonicMs: () => 0, sleep: async () => {} };
let world: MetadataShards;

beforeEach(async () => {
  world = await openMetadata({ shardCount: SHARDS });
  await world.execute('create-account', {
    account: {
      accountId: OWNER,
      name: 'owner',
      email: 'owner@example.com',
      canonicalId: 'o'.padEnd(64, '0'),
      state: 'paid',
      bucketsMax: 100,
      isRoot: false,
    },
    accessKey: { accessKey: 'AKOWNER', sealedSecret: kek },
  });
});

/** The type of each, and what it is of. */
async function eventsIn(shard: number): Promise<unknown[]> {
  const { events } = await world.query('list-events', { consumer: 'feed', limit: 100 }, shard);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at));
  return events.map(({ event: { type, key, bucket, ofAccount } }) => [type, key ?? bucket ?? ofAccount]);
}

describe('of a bucket', () => {
  beforeEach(() => world.createBucket());

  const bound = (quota: Quota | null) =>
    world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'quota', document: quota });
  const put = (key: string, sizeBytes: number) => world.put(key, { data: world.newData({ sizeBytes }) });
  const held = async () => (await world.query('get-held-by-bucket', { bucketId: BUCKET })).held;

  test('what would pass it by one byte is refused, and nothing changes; what fits exactly is done', async () => {
    await bound({ hard: { bytes: 100 } });
    expect((await put('a', 60)).kind).toBe('committed');
    expect(await put('b', 41)).toEqual({ kind: 'over-quota', of: 'bucket', unit: 'bytes', bound: 100 });
    expect(await world.versions()).toEqual(['a null*']);
    expect((await put('b', 40)).kind).toBe('committed');
    expect(await held()).toEqual({ bytes: 100, objects: 2 });
  });

  test('passing a soft bound is an event, behind that of the object, and told once', async () => {
    const document = { consumers: ['feed' as const] };
    await world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'events', document });
    await bound({ soft: { bytes: 100 } });
    for (const [key, sizeBytes] of Object.entries({ a: 60, b: 50, c: 1 })) await put(key, sizeBytes);
    expect(await eventsIn(0)).toEqual([
      ['s3:ObjectCreated:Put', 'a'],
      ['s3:ObjectCreated:Put', 'b'],
      ['holdfast:SoftQuota:Passed', BUCKET_NAME],
      ['s3:ObjectCreated:Put', 'c'],
    ]);
  });

  test('objects are bounded, too, and each bound by itself', async () => {
    await bound({ hard: { objects: 1, bytes: 100 } });
    await put('a', 1);
    expect(await put('b', 1)).toMatchObject({ kind: 'over-quota', unit: 'objects', bound: 1 });
    expect((await put('a', 100)).kind).toBe('committed');
  });

  test('above a bound that was narrowed, what adds nothing is done, and a deletion makes room', async () => {
    await put('a', 60);
    await put('b', 60);
    await bound({ hard: { bytes: 70 } });
    expect((await put('a', 60)).kind).toBe('committed');
    expect((await put('a', 61)).kind).toBe('over-quota');
    await world.remove('b');
    expect((await put('a', 70)).kind).toBe('committed');
    await bound(null);
    expect((await put('c', 1000)).kind).toBe('committed');
  });

  test('parts hold room: what was taken can be completed, and an end of the upload gives it back', async () => {
    await bound({ hard: { bytes: 100 } });
    const uploadId = await beginUpload(world, 'u');
    const part = (partNumber: number, sizeBytes: number) =>
      putPart(world, { key: 'u', uploadId }, { partNumber, data: world.newData({ sizeBytes }) });
    expect((await part(1, 50)).kind).toBe('committed');
    expect((await part(2, 51)).kind).toBe('over-quota');
    expect((await part(1, 100)).kind).toBe('committed');
    expect((await put('a', 1)).kind).toBe('over-quota');
    const parts = [{ partNumber: 1, etag: etagOf('part 1') }];
    const named = { bucketId: BUCKET, key: 'u' as ObjectKey, uploadId };
    const completed = await world.execute('complete-upload', { ...named, parts } as never);
    expect(completed.kind).toBe('committed');
    expect(await held()).toEqual({ bytes: 100, objects: 1 });

    await bound({ hard: { bytes: 200 } });
    const second = { key: 'v', uploadId: await beginUpload(world, 'v') };
    await putPart(world, second, { partNumber: 7, data: world.newData({ sizeBytes: 100 }) });
    await world.execute('abort-upload', { bucketId: BUCKET, ...second } as never);
    const { ended } = await world.query('list-ended-uploads', { limit: 10 });
    for (const upload of ended) await world.execute('release-parts', upload);
    expect(await held()).toEqual({ bytes: 100, objects: 1 });
  });
});

describe('of an account', () => {
  const bucketOf = (shard: number) => `b${String(shard).padStart(15, '0')}` as BucketId;

  beforeEach(async () => {
    for (let shard = 0; shard < SHARDS; shard++) {
      const bucket = { bucketId: bucketOf(shard), name: `bucket-${shard}` as BucketName, owner: OWNER };
      await world.execute('create-bucket', bucket, shard);
    }
  });

  async function bound(quota: Quota | null): Promise<void> {
    await world.execute('set-account-quota', { accountId: OWNER, source: 'operator', quota });
    await settleQuota(world.shards, OWNER);
    await reclaimLeases(world.shards, OWNER);
  }

  async function put(
    port: MetadataPort,
    shard: number,
    { key, sizeBytes }: { key: string; sizeBytes: number },
  ) {
    const data = world.newData({ sizeBytes, homeShard: shard });
    const command: CommandOf<'commit-version'> = {
      bucketId: bucketOf(shard),
      key: key as ObjectKey,
      version: {
        sizeBytes,
        etag: etagOf(key),
        owner: OWNER,
        kek,
        sealedHeaders: Uint8Array.of(9),
        originals: packOriginals({ sizeBytes, md5: etagOf(key) }),
        manifest: data.manifest,
      },
      data: data.grant,
    };
    const reply = await port.execute({ shard }, 'commit-version', command);
    return reply.kind === 'done' ? reply.value : reply;
  }

  async function heldBytes(): Promise<number> {
    let sum = 0;
    for (let shard = 0; shard < SHARDS; shard++)
      sum += (await world.query('get-held', { accountId: OWNER }, shard)).held.bytes;
    return sum;
  }

  async function expectLeasesWithin(bytes: number): Promise<void> {
    const { quota } = await world.query('get-account-quota', { accountId: OWNER });
    let granted = 0;
    for (let shard = 0; shard < SHARDS; shard++) {
      const { lease, held } = await world.query('get-held', { accountId: OWNER }, shard);
      const grant = quota?.grants[shard];
      expect(lease?.bytes).toBeLessThanOrEqual(grant?.bytes ?? -1);
      expect(held.bytes).toBeLessThanOrEqual(lease?.bytes ?? -1);
      granted += grant?.bytes ?? 0;
    }
    expect(granted).toBeLessThanOrEqual(bytes);
  }

  test('64 writers at once fill it to the last byte, in whatever shards, and not beyond', async () => {
    await bound({ hard: { bytes: 10_000 } });
    const port = leaseQuotas(world.shards, { clock: world.clock, ...SILENT });
    const random = createSeededRandom(5);
    const advancing = { done: false };
    const advance = async () => {
      while (!advancing.done) {
        world.clock.advance(50);
        await new Promise(setImmediate);
      }
    };
    const ticking = advance();
    const outcomes = await Promise.all(
      Array.from({ length: 64 }, async (_, writer) => {
        const kinds: string[] = [];
        for (let index = 0; index < 5; index++) {
          const [chance = 0] = random.bytes(1);
          const asked = { key: `${writer}-${index}`, sizeBytes: 1 + chance };
          kinds.push((await put(port, chance % SHARDS, asked)).kind);
        }
        return kinds;
      }),
    );
    expect(new Set(outcomes.flat())).toEqual(new Set(['committed', 'over-quota']));
    const left = 10_000 - (await heldBytes());
    expect(left).toBeGreaterThanOrEqual(0);
    if (left > 0) expect((await put(port, 3, { key: 'last', sizeBytes: left })).kind).toBe('committed');
    expect(await heldBytes()).toBe(10_000);
    const beyond = await put(port, 2, { key: 'beyond', sizeBytes: 1 });
    expect(beyond).toEqual({ kind: 'over-quota', of: 'account', unit: 'bytes', bound: 10_000 });
    advancing.done = true;
    await ticking;
    await expectLeasesWithin(10_000);
  });

  test('what another account sends in vain keeps nobody for long', async () => {
    await bound({ hard: { bytes: 1000 } });
    const stranger = { requestId: 'r', accountId: '000000000077' as AccountId };
    let nowMs = 0;
    const clock = {
      monotonicMs: () => nowMs,
      sleep: async (ms: number) => {
        nowMs += ms;
      },
    };
    const port = leaseQuotas(world.shards, { clock, ...SILENT });
    const of = (origin: RequestOrigin): MetadataPort => ({
      ...port,
      execute: (envelope, name, command) => port.execute({ ...envelope, origin }, name, command),
    });
    expect((await put(port, 1, { key: 'first', sizeBytes: 900 })).kind).toBe('committed');
    const ended: string[] = [];
    const send = async (origin: RequestOrigin, key: string, sizeBytes: number) => {
      const { kind } = await put(of(origin), 1, { key, sizeBytes });
      ended.push(`${key.slice(0, 4)} ${kind}`);
    };
    const vain = Array.from({ length: 40 }, (_, at) => send(stranger, `vain${at}`, 500));
    await Promise.all([...vain, send({ requestId: 'q', accountId: OWNER }, 'fits', 50)]);
    expect(ended.filter((each) => each === 'vain over-quota')).toHaveLength(40);
    expect(ended.indexOf('fits committed')).toBeLessThanOrEqual(2);
    // Those who came before it began share one look at what other shards do not use.
    expect(nowMs).toBeLessThanOrEqual(400);
  });

  test('passing a soft bound is an event and told once, whoever leads, and again when it was below it meanwhile', async () => {
    const told: string[] = [];
    const log = { ...QUIET, warn: (_fields: object, event: string) => void told.push(event) };
    const telemetry = { ...QUIET_TELEMETRY, count: (name: string) => void told.push(name) };
    // Each time a new primary, which has nothing in memory.
    const look = () =>
      createQuotaWatch({
        metadata: world.shards,
        shards: () => [0],
        clock: world.clock,
        log,
        telemetry,
      }).work(new AbortController().signal);
    const event = ['holdfast:SoftQuota:Passed', OWNER];
    await bound({ soft: { bytes: 100 } });
    for (let shard = 0; shard < 3; shard++) await put(world.shards, shard, { key: 'k', sizeBytes: 40 });
    for (let looks = 0; looks < 3; looks++) await look();
    expect(await eventsIn(0)).toEqual([event]);
    expect(told).toEqual(['soft-quota-passed', 'holdfast_soft_quota_passed_total']);
    await bound({ soft: { bytes: 1000 } });
    await look();
    await bound({ soft: { bytes: 110 } });
    await look();
    expect(await eventsIn(0)).toEqual([event, event]);
    await bound(null);
    await look();
    expect(await eventsIn(0)).toHaveLength(2);
  });

  test('many accounts with soft bounds are looked at some at a time, each shard is asked once for them, and rests follow', async () => {
    const soft = { soft: { bytes: 10 } };
    const accountIds = Array.from(
      { length: 150 },
      (_, at) => String(at + 1000).padStart(12, '0') as AccountId,
    );
    let nowMs = 0;
    const asked: string[] = [];
    const metadata = {
      shardCount: 4,
      query: async (_: object, name: string, query: { after?: AccountId; accountIds?: AccountId[] }) => {
        asked.push(name);
        nowMs += 1;
        const held = query.accountIds?.map(() => ({ bytes: 3, objects: 1 }));
        if (held !== undefined) return { kind: 'done', value: { held } };
        const some = accountIds.filter((id) => query.after === undefined || id > query.after).slice(0, 100);
        const quotas = some.map((accountId) => ({ accountId, quotas: { operator: soft }, phase: 'none' }));
        return { kind: 'done', value: { quotas, ...(some.length === 100 && { next: some.at(-1) }) } };
      },
      execute: async () => ({ kind: 'done', value: { kind: 'noted' } }),
    } as unknown as MetadataPort;
    const aboveCounts: number[] = [];
    const gauge = (_: string, value: number) => void aboveCounts.push(value);
    const telemetry = { ...QUIET_TELEMETRY, gauge };
    const clock = { monotonicMs: () => nowMs };
    const watch = createQuotaWatch({ metadata, shards: () => [0], clock, log: QUIET, telemetry });
    const { signal } = new AbortController();
    expect(await watch.work(signal)).toEqual({ state: 'idle', idleMs: 45, failures: [] });
    expect(await watch.work(signal)).toEqual({ state: 'idle', idleMs: 30_000, failures: [] });
    // All are above: three bytes in each of four shards.
    expect(aboveCounts).toEqual([150]);
    expect(asked.filter((name) => name === 'get-held-of-accounts')).toHaveLength(8);
  });

  test('what is held when it begins counts, and after its end there is no bound', async () => {
    const port = leaseQuotas(world.shards, { clock: world.clock, ...SILENT });
    await put(port, 1, { key: 'early', sizeBytes: 80 });
    await bound({ hard: { bytes: 100 } });
    expect((await put(port, 0, { key: 'a', sizeBytes: 20 })).kind).toBe('committed');
    await expectLeasesWithin(100);
    await bound(null);
    expect((await put(port, 0, { key: 'b', sizeBytes: 1000 })).kind).toBe('committed');
    expect((await world.query('get-account-quota', { accountId: OWNER })).quota).toBe(null);
    await bound({ hard: { bytes: 1100 } });
    expect((await put(port, 2, { key: 'c', sizeBytes: 1 })).kind).not.toBe('committed');
  });

  test.each([
    ['closed', 'close-quota-lease'],
    ['asked for', 'get-account-quota'],
  ])('a quota that begins again holds where a lease of the one before is %s behind that', async (_, held) => {
    await bound({ hard: { bytes: 100 } });
    const reached = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const hold = async (name: string) => {
      if (name !== held) return;
      reached.resolve();
      await released.promise;
    };
    // Of a gateway whose calls take long.
    const slow: MetadataPort = {
      shardCount: SHARDS,
      async query(envelope, name, query) {
        const answer = await world.shards.query(envelope, name, query);
        await hold(name);
        return answer;
      },
      async execute(envelope, name, command) {
        await hold(name);
        return world.shards.execute(envelope, name, command);
      },
    };
    await world.execute('set-account-quota', { accountId: OWNER, source: 'operator', quota: null });
    const ending = settleQuota(slow, OWNER);
    await reached.promise;
    const again = { hard: { bytes: 100 } };
    await world.execute('set-account-quota', { accountId: OWNER, source: 'operator', quota: again });
    const end = { accountId: OWNER, phase: 'opening' as const, shardCount: SHARDS };
    // A call of the beginning before that comes late.
    expect(await world.execute('end-quota-phase', end)).toEqual({ kind: 'not-so' });
    await bound(again);
    released.resolve();
    await ending;
    const port = leaseQuotas(world.shards, { clock: AT_ONCE, ...SILENT });
    for (let shard = 0; shard < SHARDS; shard++)
      expect(await put(port, shard, { key: `k${shard}`, sizeBytes: 101 })).toMatchObject({
        kind: 'over-quota',
      });
    await expectLeasesWithin(100);
  });

  test.each([1, 2, 3, 4, 5, 6])('calls that are lost before or after their work, seed %i', async (seed) => {
    const random = createSeededRandom(seed);
    const chance = () => (random.bytes(1)[0] ?? 0) / 256;
    const isOfQuotas = (name: string) => name.includes('quota');
    const lossy: MetadataPort = {
      shardCount: SHARDS,
      query: (envelope, name, query) => world.shards.query(envelope, name, query),
      async execute(envelope, name, command) {
        const fate = isOfQuotas(name) ? chance() : 1;
        if (fate < 0.1) return { kind: 'unknown' };
        const reply = await world.shards.execute(envelope, name, command);
        return fate < 0.2 ? { kind: 'unknown' } : reply;
      },
    };
    const port = leaseQuotas(lossy, { clock: AT_ONCE, ...SILENT });
    let bytes = 2000;
    await bound({ hard: { bytes } });
    for (let step = 0; step < 150; step++) {
      const act = chance();
      if (act < 0.05) {
        bytes = (await heldBytes()) + Math.floor(1000 * chance());
        await bound({ hard: { bytes } });
      } else if (act < 0.08) {
        await bound(null);
        bytes = (await heldBytes()) + 500;
        await bound({ hard: { bytes } });
      } else {
        const shard = Math.floor(chance() * SHARDS);
        const before = await heldBytes();
        const sizeBytes = 1 + Math.floor(200 * chance());
        const outcome = await put(port, shard, { key: `k${step}`, sizeBytes });
        if (outcome.kind === 'over-quota') expect(before + sizeBytes).toBeGreaterThan(bytes);
      }
      expect(await heldBytes()).toBeLessThanOrEqual(bytes);
    }
    await expectLeasesWithin(bytes);
  });
});

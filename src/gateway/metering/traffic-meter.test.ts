// What the meter sends, and when: batches, retries under the same id, days, and what it gives up.
import { expect, test } from 'vitest';
import { openHeldWorld } from '../../../tests/support/metadata/hold-lock.ts';
import {
  BUCKET,
  type MetadataShards,
  OWNER,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { createManualClock, createSeededRandom } from '../../../tests/support/run/simulated.ts';
import { createUsages } from '../../accounts/usages.ts';
import { LOCK } from '../../metadata/schema/define-command.ts';
import type { Envelope, MetadataPort, Reply } from '../../ports/metadata/port.ts';
import type { TrafficDay } from '../../ports/metadata/usage.ts';
import { AT } from '../../types/metered.ts';
import type { AccountId, BucketId, BucketName } from '../../types/names.ts';
import { DAY_MS } from '../../types/usage.ts';
import {
  createTrafficMeter,
  FLUSHED_AT_BUCKETS,
  SENT_AGAIN_FOR_MS,
  WAITING_BUCKETS_MAX,
} from './traffic-meter.ts';

const NOTHING = { uploadBytes: 0, downloadBytes: 0, wroteBytes: 0, readBytes: 0, deleteBytes: 0 };
const PUT = { ...NOTHING, kind: 'put', uploadBytes: 10, downloadBytes: 1, wroteBytes: 9 } as const;
const IN_BUCKET = { accountId: OWNER, bucketId: BUCKET, shard: 0 };

interface Sent {
  envelope: Envelope;
  days: readonly TrafficDay[];
}

function openMeter({ execute }: Pick<MetadataPort, 'execute'>, clock = createManualClock(20_000 * DAY_MS)) {
  const lost: number[] = [];
  const meter = createTrafficMeter({
    metadata: { execute },
    clock,
    random: createSeededRandom(3),
    log: { warn() {} },
    telemetry: { count: (_name, _labels, by = 1) => void lost.push(by), gauge() {} },
    flushEveryMs: 60_000,
  });
  return { meter, clock, lost };
}

/** A shard that answers what it is told to, and remembers what it was asked. */
function scripted(answers: Reply<unknown>['kind'][]) {
  const sent: Sent[] = [];
  const execute = (async (envelope: Envelope, _name: string, command: { days: TrafficDay[] }) => {
    sent.push({ envelope, days: structuredClone(command.days) });
    const kind = answers.shift() ?? 'done';
    return kind === 'done' ? { kind, value: { kind: 'added', unplaced: [] }, timeMs: 0 } : { kind };
  }) as unknown as MetadataPort['execute'];
  return { sent, execute };
}

const PAGE = { page: { page: 1, size: 100 } };

const metered = async ({ shards, clock }: MetadataShards) =>
  (await createUsages(shards, clock).current(OWNER, PAGE)).items.map(
    ({ bucketId, putCalls, uploadBytes, downloadBytes, wroteBytes }) => ({
      bucketId,
      putCalls,
      uploadBytes,
      downloadBytes,
      wroteBytes,
    }),
  );

test('a batch whose answer was lost is sent again under its id, and counts once', async () => {
  const world = await openMetadata();
  await world.createBucket();
  let isLost = true;
  const ids: unknown[] = [];
  const { meter } = openMeter(
    {
      async execute(envelope, name, command) {
        ids.push([envelope.requestId, envelope.isRetry]);
        const reply = await world.shards.execute(envelope, name, command);
        return isLost ? { kind: 'unknown' } : reply;
      },
    },
    world.clock,
  );
  meter.note(IN_BUCKET, PUT);
  meter.note(IN_BUCKET, PUT);
  await meter.flush();
  isLost = false;
  await meter.flush();
  await meter.flush();
  expect(ids).toEqual([
    [expect.any(String), undefined],
    [(ids[0] as unknown[])[0], true],
  ]);
  expect(await metered(world)).toEqual([
    { bucketId: BUCKET, putCalls: 2, uploadBytes: 20, downloadBytes: 2, wroteBytes: 18 },
  ]);
});

test('what a shard had no room for waits under its id, however long', async () => {
  const { sent, execute } = scripted(['busy']);
  const { meter, clock, lost } = openMeter({ execute });
  meter.note(IN_BUCKET, PUT);
  await meter.flush();
  clock.advance(10 * SENT_AGAIN_FOR_MS);
  await meter.flush();
  expect(sent.map(({ envelope }) => envelope.isRetry)).toEqual([undefined, undefined]);
  expect(lost).toEqual([]);
});

test('what may have been counted is given up before its outcome is forgotten, and reported as lost', async () => {
  const { sent, execute } = scripted(['unknown', 'unknown']);
  const { meter, clock, lost } = openMeter({ execute });
  meter.note(IN_BUCKET, PUT);
  meter.note(IN_BUCKET, { ...PUT, kind: 'get' });
  await meter.flush();
  clock.advance(SENT_AGAIN_FOR_MS - 1000);
  await meter.flush();
  clock.advance(2000);
  await meter.flush();
  expect(sent).toHaveLength(2);
  expect(lost).toEqual([2]);
});

test('requests before and after midnight are of two days', async () => {
  const { sent, execute } = scripted([]);
  const { meter, clock } = openMeter({ execute });
  meter.note(IN_BUCKET, PUT);
  clock.advance(DAY_MS);
  meter.note(IN_BUCKET, PUT);
  meter.note(IN_BUCKET, PUT);
  await meter.flush();
  const calls = sent.flatMap(({ days }) => days.map(({ day, figures }) => [day, figures[AT.putCalls]]));
  expect(calls).toEqual([
    [20_000, 1],
    [20_001, 2],
  ]);
});

test('many buckets are sent before the interval is over, in batches; beyond the bound requests are lost, and said to be', async () => {
  const { sent, execute } = scripted(Array(10_000).fill('busy'));
  const { meter, lost } = openMeter({ execute });
  const stop = new AbortController();
  const running = meter.run(stop.signal);
  const idOf = (at: number) => at.toString(16).padStart(16, '0') as BucketId;
  for (let at = 0; at < FLUSHED_AT_BUCKETS; at++) meter.note({ ...IN_BUCKET, bucketId: idOf(at) }, PUT);
  await expect.poll(() => sent.length, { timeout: 60_000 }).toBeGreaterThan(0);
  expect(sent[0]?.days.length).toBe(500);
  for (let at = FLUSHED_AT_BUCKETS; at < WAITING_BUCKETS_MAX + 3; at++)
    meter.note({ ...IN_BUCKET, bucketId: idOf(at) }, PUT);
  expect(lost).toEqual([1, 1, 1]);
  stop.abort();
  await running;
});

test('requests about no bucket, and those about one that is gone, count for the account', async () => {
  const world = await openMetadata();
  await world.createBucket();
  const { meter } = openMeter(world.shards, world.clock);
  meter.note({ accountId: OWNER }, PUT);
  meter.note({ accountId: OWNER, bucketId: 'b0000000000000ff' as BucketId, shard: 0 }, PUT);
  await meter.flush();
  await meter.flush();
  expect(await metered(world)).toEqual([
    { bucketId: BUCKET, putCalls: 0, uploadBytes: 0, downloadBytes: 0, wroteBytes: 0 },
    { bucketId: undefined, putCalls: 2, uploadBytes: 20, downloadBytes: 2, wroteBytes: 18 },
  ]);
  const present = createUsages(world.shards, world.clock);
  expect(await present.currentOf('000000000002' as AccountId)).toBeUndefined();
});

test('a bucket that another command holds stops neither the traffic of others nor what they do', async () => {
  const { world, hold, letGo } = await openHeldWorld();
  await world.createBucket();
  const others = { accountId: '000000000002' as AccountId, bucketId: 'b000000000000002' as BucketId };
  const { accountId: owner, bucketId } = others;
  await world.execute('create-bucket', { bucketId, name: 'others' as BucketName, owner });
  const holding = hold(LOCK.bucket(BUCKET));
  const deleting = world.execute('delete-bucket', { bucketId: BUCKET });

  const { meter } = openMeter(world.shards, world.clock);
  meter.note(IN_BUCKET, PUT);
  meter.note({ ...others, shard: 0 }, PUT);
  const flushing = meter.flush();
  const usages = createUsages(world.shards, world.clock);
  await expect.poll(async () => await usages.currentOf(owner)).toMatchObject({ putCalls: 1 });
  expect((await world.execute('delete-bucket', { bucketId })).kind).toBe('deleted');

  letGo();
  await Promise.all([holding, deleting, flushing]);
  await meter.flush();
  expect(await usages.currentOf(OWNER)).toMatchObject({ putCalls: 1 });
});

// ForceDeleteBucket between its steps, over two gateways: what others see of a bucket that is closing; that it is refused
// whole when something has to stay (service 3); a gateway that is cut off between any two steps; one that joins.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  ask,
  codeOf,
  openTwoGateways,
  quiet,
  statusOf,
  type TwoGateways,
  textOf,
} from '../../../tests/support/metadata/two-gateways.ts';
import { createBucketEmptier } from '../../metadata/buckets/empty-buckets.ts';
import { createOutboxDelivery } from '../../metadata/jobs/deliver-outbox.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BucketName } from '../../types/names.ts';

const STEPS = ['get-bucket', 'find-protected', 'close-bucket', 'step-closing', 'forget-name'] as const;

/** Which look of the second gateway meets something that has to stay; 0: none. */
let keptAtLook = 0;
let lookCount = 0;

let world: TwoGateways<(typeof STEPS)[number]>;
let ann: TwoGateways<string>['ann'];
beforeAll(async () => {
  world = await openTwoGateways(meetKept);
  ann = world.ann;
});
afterAll(() => world.close());

function meetKept(shards: MetadataPort): MetadataPort {
  return {
    shardCount: shards.shardCount,
    execute: (...args) => shards.execute(...args),
    async query(envelope, name, query) {
      const reply = await shards.query(envelope, name, query);
      if (name !== 'find-protected' || reply.kind !== 'done' || ++lookCount !== keptAtLook) return reply;
      const kept = { key: 'k', versionId: 'null', blocker: { by: 'retention' } };
      return { ...reply, value: { count: 0, kept } as never };
    },
  };
}

let testCount = 0;
let red: BucketName;
beforeEach(async () => {
  [world.cut, world.before, keptAtLook, lookCount] = [undefined, {}, 0, 0];
  testCount++;
  red = `red-${testCount}` as BucketName;
  expect(await statusOf(ann.one, `PUT /${red}`)).toBe(200);
  // The second gateway has it in its cache from now on.
  expect(await statusOf(ann.two, `PUT /${red}/k`, 'of ann')).toBe(200);
});

const force = () => `DELETE /${red}?force_delete=true`;

async function work(): Promise<void> {
  const { shards: metadata, clock } = world.one.metadata;
  const { shards } = world;
  const { signal } = new AbortController();
  const emptier = createBucketEmptier({ metadata, shards, clock });
  while ((await emptier.work(signal)).state === 'busy');
  await createOutboxDelivery({ metadata, shards, clock, log: quiet }).work(signal);
}

async function expectThere(): Promise<void> {
  for (const access of [ann.one, ann.two]) {
    expect(await textOf(access, `GET /${red}/k`)).toBe('of ann');
    expect(await statusOf(access, `PUT /${red}/k`, 'of ann')).toBe(200);
  }
}

async function expectGone(): Promise<void> {
  for (const access of [ann.one, ann.two]) {
    expect(await statusOf(access, `GET /${red}/k`)).toBe(404);
    expect(await statusOf(access, `HEAD /${red}`)).toBe(404);
    expect(await statusOf(access, `PUT /${red}/k`, 'x')).toBe(404);
  }
}

test('while the bucket closes, reads work, and writes, renames, deletion and creation are refused', async () => {
  const seen: Record<string, unknown> = {};
  world.before['step-closing'] = async () => {
    for (const access of [ann.one, ann.two]) {
      expect(await textOf(access, `GET /${red}/k`)).toBe('of ann');
      expect(await textOf(access, `GET /${red}`)).toContain('<Key>k</Key>');
      expect(await statusOf(access, `HEAD /${red}`)).toBe(200);
    }
    for (const line of [
      `PUT /${red}/new`,
      `DELETE /${red}/k`,
      `POST /${red}/k?uploads`,
      `DELETE /${red}`,
      `MOVE /${red} blue-${testCount}`,
      `PUT /${red}`,
    ]) {
      const [method] = line.split(' ');
      const body = line.endsWith('/new') ? 'x' : undefined;
      for (const access of [ann.one, ann.two]) seen[line] = await codeOf(access, line, body);
      expect(seen[line], method).toBe('OperationAborted');
    }
  };
  expect(await codeOf(ann.two, force())).toBe('done');
  expect(Object.keys(seen)).toHaveLength(6);
  await expectGone();
});

test.each([1, 2])(
  'protected versions found at look %i refuse the whole deletion, and nothing changes',
  async (look) => {
    keptAtLook = look;
    const refused = await ask(ann.two, force());
    expect([refused.status, refused.body.toString()]).toEqual([
      403,
      expect.stringMatching(/<Code>AccessDenied<.*Nothing was deleted/),
    ]);
    await expectThere();
    await work();
    await expectThere();
    keptAtLook = 0;
    expect(await codeOf(ann.two, force())).toBe('done');
    await expectGone();
  },
);

describe('cut off', () => {
  const CUTS = STEPS.slice(1).flatMap((at) => [
    { at, isDelivered: false },
    { at, isDelivered: true },
  ]);

  test.each(CUTS)('at $at, heard: $isDelivered', async ({ at, isDelivered }) => {
    world.cut = { at, isDelivered };
    expect(await codeOf(ann.two, force())).toBe('ServiceUnavailable');
    world.cut = undefined;
    const isClosed = STEPS.indexOf(at) > 2 || (at === 'close-bucket' && isDelivered);
    world.one.metadata.clock.advance(LIMITS.jobStallTimeoutMs);
    await work();
    if (isClosed) await expectGone();
    else await expectThere();
    if (isClosed) expect(await statusOf(ann.one, `PUT /${red}`)).toBe(200);
  });

  test.each(['one', 'two'] as const)(
    'and asked again, of %s: it goes on from there at once',
    async (again) => {
      world.cut = { at: 'step-closing', isDelivered: false };
      expect(await codeOf(ann.two, force())).toBe('ServiceUnavailable');
      world.cut = undefined;
      expect(await codeOf(ann[again], force())).toBe('done');
      await expectGone();
    },
  );

  test('the bucket is deleted and its name not yet freed: it can be created again at once', async () => {
    world.cut = { at: 'forget-name', isDelivered: false };
    expect(await codeOf(ann.two, force())).toBe('ServiceUnavailable');
    world.cut = undefined;
    await expectGone();
    expect(await statusOf(ann.one, `PUT /${red}`)).toBe(200);
    expect(await statusOf(ann.two, `PUT /${red}/k`, 'anew')).toBe(200);
    await work();
    expect(await textOf(ann.two, `GET /${red}/k`)).toBe('anew');
  });
});

test('the bucket is renamed and deleted by another request between two steps', async () => {
  world.before['close-bucket'] = () => ask(ann.one, `MOVE /${red} blue-${testCount}`);
  expect(await codeOf(ann.two, force())).toBe('NoSuchBucket');
  expect(await textOf(ann.one, `GET /blue-${testCount}/k`)).toBe('of ann');
  red = `blue-${testCount}` as BucketName;
  world.before['close-bucket'] = () => ask(ann.one, force());
  expect(await codeOf(ann.two, force())).toBe('NoSuchBucket');
  await expectGone();
});

test('whose key goes while the versions are looked at deletes nothing', async () => {
  const bea = await world.one.makeAccount('bea');
  const two = { ...bea, endpoint: ann.two.endpoint };
  for (const line of ['PUT /of-bea', 'PUT /of-bea/k']) expect(await statusOf(two, line)).toBe(200);
  const { accountId, accessKey } = bea;
  const change = (kind: 'disable' | 'enable') =>
    world.one.metadata.execute('change-access-key', { accountId, accessKey, change: kind });
  world.before['find-protected'] = async () => {
    await change('disable');
    // Known to the gateway: a revocation is not answered before.
    await expect.poll(() => statusOf(two, 'HEAD /of-bea'), { timeout: 10_000 }).toBe(403);
  };
  expect(await codeOf(two, 'DELETE /of-bea?force_delete=true')).toBe('InvalidAccessKeyId');
  await change('enable');
  await expect.poll(() => statusOf(two, 'HEAD /of-bea/k'), { timeout: 10_000 }).toBe(200);
});

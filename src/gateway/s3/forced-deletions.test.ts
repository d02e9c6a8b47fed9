// ForceDeleteBucket between its steps, over two gateways: what others see of a bucket that is closing; that it is refused
// whole when something has to stay (service.txt 3); a gateway that is cut off between any two steps; one that joins.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/gateway-world.ts';
import { type Access, type RawAnswer, send } from '../../../tests/support/raw-s3.ts';
import { createOutboxDelivery } from '../../metadata/background/deliver-outbox.ts';
import { createBucketEmptier } from '../../metadata/background/empty-buckets.ts';
import { LIMITS } from '../../model/limits.ts';
import type { BucketName } from '../../model/names.ts';
import type { MetadataPort } from '../../ports/metadata.ts';

const nothing = () => {};
const quiet = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const STEPS = ['get-bucket', 'look-for-kept', 'close-bucket', 'step-closing', 'forget-name'] as const;
type Step = (typeof STEPS)[number];

/** The step at which the second gateway is cut off, and whether the shard has heard of it. */
let cut: { at: Step; isHeard: boolean } | undefined;
/** What comes before a step of the second gateway, once. */
let before: Partial<Record<Step, () => Promise<unknown>>> = {};
/** Which look of the second gateway meets something that has to stay; 0: none. */
let keptAtLook = 0;
let lookCount = 0;

let one: GatewayWorld;
let two: GatewayWorld;
let ann: { one: Access; two: Access };
beforeAll(async () => {
  one = await openGatewayWorld();
  two = await openGatewayWorld({
    deps: { metadata: cutCalls(one.metadata.shards), objects: one.store, keyring: one.keyring },
  });
  const keys = await one.makeAccount('ann');
  ann = { one: { ...keys, endpoint: one.endpoint }, two: { ...keys, endpoint: two.endpoint } };
});
afterAll(async () => {
  await Promise.all([one.close(), two.close()]);
  expect(one.faults()).toEqual([]);
});

function cutCalls(shards: MetadataPort): MetadataPort {
  const call = async <T>(name: string, ask: () => Promise<T>) => {
    const act = before[name as Step];
    delete before[name as Step];
    await act?.();
    if (cut?.at !== name) return ask();
    if (cut.isHeard) await ask();
    return { kind: 'unknown' } as const;
  };
  return {
    shardCount: shards.shardCount,
    execute: (envelope, name, command) => call(name, () => shards.execute(envelope, name, command)),
    query: (envelope, name, query) =>
      call(name, async () => {
        const reply = await shards.query(envelope, name, query);
        if (name !== 'look-for-kept' || reply.kind !== 'done' || ++lookCount !== keptAtLook) return reply;
        const kept = { key: 'k', versionId: 'null', blocker: { by: 'retention' } };
        return { ...reply, value: { count: 0, kept } as never };
      }),
  };
}

let testCount = 0;
let red: BucketName;
beforeEach(async () => {
  [cut, before, keptAtLook, lookCount] = [undefined, {}, 0, 0];
  testCount++;
  red = `red-${testCount}` as BucketName;
  expect(await statusOf(ann.one, `PUT /${red}`)).toBe(200);
  // The second gateway has it in its cache from now on.
  expect(await statusOf(ann.two, `PUT /${red}/k`, 'of ann')).toBe(200);
});

const ask = async (access: Access, line: string, body?: string): Promise<RawAnswer> => {
  const [method = '', path = '', destination] = line.split(' ');
  const headers: Record<string, string> = destination === undefined ? {} : { destination };
  return send(access, { method, path, headers, ...(body !== undefined && { body: Buffer.from(body) }) });
};
const statusOf = async (access: Access, line: string, body?: string) =>
  (await ask(access, line, body)).status;
const textOf = async (access: Access, line: string) => (await ask(access, line)).body.toString();
const codeOf = async (access: Access, line: string, body?: string) =>
  /<Code>(\w+)/.exec((await ask(access, line, body)).body.toString())?.[1] ?? 'done';
const force = () => `DELETE /${red}?force_delete=true`;

async function work(): Promise<void> {
  const { shards } = one.metadata;
  const all = () => Array.from({ length: shards.shardCount }, (_, shard) => shard);
  const { signal } = new AbortController();
  const emptier = createBucketEmptier({ metadata: shards, shards: all, clock: one.metadata.clock });
  while ((await emptier.work(signal)).state === 'busy');
  await createOutboxDelivery({ metadata: shards, shards: all, log: quiet }).work(signal);
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

test('while it is closing everybody reads, and nobody writes, renames, deletes or makes it', async () => {
  const seen: Record<string, unknown> = {};
  before['step-closing'] = async () => {
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

test.each([1, 2])('something has to stay, at look %i: refused whole, and all is as before', async (look) => {
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
});

describe('cut off', () => {
  const CUTS = STEPS.slice(1).flatMap((at) => [
    { at, isHeard: false },
    { at, isHeard: true },
  ]);

  test.each(CUTS)('at $at, heard: $isHeard', async ({ at, isHeard }) => {
    cut = { at, isHeard };
    expect(await codeOf(ann.two, force())).toBe('ServiceUnavailable');
    cut = undefined;
    const isClosed = STEPS.indexOf(at) > 2 || (at === 'close-bucket' && isHeard);
    one.metadata.clock.advance(LIMITS.jobLeftMs);
    await work();
    if (isClosed) await expectGone();
    else await expectThere();
    if (isClosed) expect(await statusOf(ann.one, `PUT /${red}`)).toBe(200);
  });

  test.each(['one', 'two'] as const)(
    'and asked again, of %s: it goes on from there at once',
    async (again) => {
      cut = { at: 'step-closing', isHeard: false };
      expect(await codeOf(ann.two, force())).toBe('ServiceUnavailable');
      cut = undefined;
      expect(await codeOf(ann[again], force())).toBe('done');
      await expectGone();
    },
  );

  test('the bucket is deleted, its name not forgotten: it may be made anew at once', async () => {
    cut = { at: 'forget-name', isHeard: false };
    expect(await codeOf(ann.two, force())).toBe('ServiceUnavailable');
    cut = undefined;
    await expectGone();
    expect(await statusOf(ann.one, `PUT /${red}`)).toBe(200);
    expect(await statusOf(ann.two, `PUT /${red}/k`, 'anew')).toBe(200);
    await work();
    expect(await textOf(ann.two, `GET /${red}/k`)).toBe('anew');
  });
});

test('renamed and deleted between its steps by another request', async () => {
  before['close-bucket'] = () => ask(ann.one, `MOVE /${red} blue-${testCount}`);
  expect(await codeOf(ann.two, force())).toBe('NoSuchBucket');
  expect(await textOf(ann.one, `GET /blue-${testCount}/k`)).toBe('of ann');
  red = `blue-${testCount}` as BucketName;
  before['close-bucket'] = () => ask(ann.one, force());
  expect(await codeOf(ann.two, force())).toBe('NoSuchBucket');
  await expectGone();
});

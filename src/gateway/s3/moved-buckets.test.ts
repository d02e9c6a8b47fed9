// MoveBucket when a gateway is cut off between any two of its steps (R43): whatever it was that it got to do, the bucket
// bears one name, gateways serve that one, and the outbox brings the rename to an end.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  ask,
  codeOf,
  openTwoGateways,
  quiet,
  statusOf,
  type TwoGateways,
  textOf,
} from '../../../tests/support/metadata/two-gateways.ts';
import { createOutboxDelivery } from '../../metadata/jobs/deliver-outbox.ts';
import type { BucketName } from '../../types/names.ts';

const STEPS = ['get-bucket', 'begin-rename', 'rename-bucket', 'end-rename'] as const;

let world: TwoGateways<(typeof STEPS)[number]>;
let ann: TwoGateways<string>['ann'];
beforeAll(async () => {
  world = await openTwoGateways();
  ann = world.ann;
});
afterAll(() => world.close());

let testCount = 0;
let red: BucketName;
let blue: BucketName;
beforeEach(async () => {
  [world.cut, world.before] = [undefined, {}];
  testCount++;
  [red, blue] = [`red-${testCount}` as BucketName, `blue-${testCount}` as BucketName];
  expect(await statusOf(ann.one, `PUT /${red}`)).toBe(200);
  // The second gateway has it in its cache from now on.
  expect(await statusOf(ann.two, `PUT /${red}/k`, 'of ann')).toBe(200);
});

async function deliver(): Promise<void> {
  const { shards, one } = world;
  const { shards: metadata, clock } = one.metadata;
  const delivery = createOutboxDelivery({ metadata, shards, clock, log: quiet });
  await delivery.work(new AbortController().signal);
}

/** The name that every gateway serves the bucket under, and no other. */
async function expectName(name: BucketName): Promise<void> {
  const other = name === red ? blue : red;
  for (const access of [ann.one, ann.two]) {
    expect(await textOf(access, `GET /${name}/k`)).toBe('of ann');
    expect(await statusOf(access, `GET /${other}/k`)).toBe(404);
  }
}

const CUTS = STEPS.slice(1).flatMap((at) => [
  { at, isDelivered: false },
  { at, isDelivered: true },
]);

test.each(CUTS)('cut off at $at, delivered: $isDelivered', async ({ at, isDelivered }) => {
  const isBegun = at !== 'begin-rename' || isDelivered;
  const isDecided = at === 'end-rename' || (at === 'rename-bucket' && isDelivered);
  world.cut = { at, isDelivered };
  expect(await codeOf(ann.two, `MOVE /${red} ${blue}`)).toBe('ServiceUnavailable');
  world.cut = undefined;
  await expectName(isDecided ? blue : red);
  await deliver();
  await expectName(isBegun ? blue : red);
  expect(await codeOf(ann.two, `MOVE /${red} ${blue}`)).toBe(isBegun ? 'NoSuchBucket' : 'done');
  await expectName(blue);
  // The old name is anybody's.
  const keys = await world.one.makeAccount(`bob-${testCount}`);
  expect(await statusOf({ ...keys, endpoint: world.one.endpoint }, `PUT /${red}`)).toBe(200);
});

test.each(CUTS.slice(1, 4))(
  'repeated before the outbox was delivered, $at delivered: $isDelivered',
  async (at) => {
    world.cut = at;
    expect(await codeOf(ann.two, `MOVE /${red} ${blue}`)).toBe('ServiceUnavailable');
    world.cut = undefined;
    const isDecided = at.at === 'rename-bucket' && at.isDelivered;
    expect(await codeOf(ann.one, `MOVE /${red} ${blue}`)).toBe(isDecided ? 'NoSuchBucket' : 'done');
    await expectName(blue);
  },
);

test('deleted, and renamed by another request, between the first look and the first step', async () => {
  world.before = { 'begin-rename': () => ask(ann.one, `MOVE /${red} ${red}-else`) };
  expect(await codeOf(ann.two, `MOVE /${red} ${blue}`)).toBe('OperationAborted');
  world.before = {};
  expect(await codeOf(ann.two, `MOVE /${red} ${blue}`)).toBe('NoSuchBucket');
  expect(await textOf(ann.two, `GET /${red}-else/k`)).toBe('of ann');
});

test('deleted between the first and the second step: neither name exists', async () => {
  expect(await statusOf(ann.one, `DELETE /${red}/k`)).toBe(204);
  world.before = { 'rename-bucket': () => ask(ann.one, `DELETE /${red}`) };
  expect(await codeOf(ann.two, `MOVE /${red} ${blue}`)).toBe('OperationAborted');
  world.before = {};
  await deliver();
  for (const name of [red, blue]) expect(await statusOf(ann.one, `PUT /${name}`)).toBe(200);
});

test('the new name belonged to a bucket whose deletion was cut short: it is freed first', async () => {
  expect(await statusOf(ann.one, `PUT /${blue}`)).toBe(200);
  const { record } = await world.one.metadata.query('find-name', { name: blue });
  if (record === null) throw new Error('no name');
  await world.one.metadata.execute('delete-bucket', { bucketId: record.bucketId }, record.homeShard);
  expect(await codeOf(ann.two, `MOVE /${red} ${blue}`)).toBe('done');
  await deliver();
  await expectName(blue);
});

test('through a gateway that knows the bucket by an earlier name', async () => {
  expect(await codeOf(ann.one, `MOVE /${red} ${blue}`)).toBe('done');
  expect(await codeOf(ann.two, `MOVE /${red} ${red}-else`)).toBe('NoSuchBucket');
  expect(await codeOf(ann.one, `MOVE /${blue} ${red}`)).toBe('done');
  // Same name and settings as it has cached, and another epoch.
  expect(await codeOf(ann.two, `MOVE /${red} ${blue}`)).toBe('done');
  await expectName(blue);
});

import { beforeEach, describe, expect, test } from 'vitest';
import {
  createAccount,
  type MetadataShards,
  OWNER,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { type Background, openBackground } from '../../../tests/support/metadata/metadata-workers.ts';
import { must } from '../../base/assert.ts';
import type { OutcomeOf } from '../../ports/metadata/port.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BucketId, BucketName } from '../../types/names.ts';
import { type BucketRecord, bucketCodec } from '../../types/records/rows.ts';
import { rowKey } from '../engine/row-keys.ts';
import { bucketRow } from '../schema/keyspace.ts';

interface Made {
  bucketId: BucketId;
  homeShard: number;
}

let background: Background;
let world: MetadataShards;
let red: Made;
beforeEach(async () => {
  background = await openBackground(3);
  ({ world } = background);
  await createAccount(world, OWNER);
  red = await make('red');
});

const asName = (text: string) => text as BucketName;
const reserve = (name: string) => world.execute('reserve-name', { name: asName(name), owner: OWNER });

async function make(name: string): Promise<Made> {
  const outcome = await reserve(name);
  if (outcome.kind !== 'reserved') throw new Error(outcome.kind);
  await background.run('deliver');
  return outcome;
}

const begin = ({ bucketId }: Made, from: string, to: string, nameEpoch = 1) =>
  world.execute('begin-rename', { bucketId, from: asName(from), to: asName(to), nameEpoch });
const decide = ({ bucketId, homeShard }: Made, from: string, to: string, nameEpoch = 1) =>
  world.execute('rename-bucket', { bucketId, from: asName(from), to: asName(to), nameEpoch }, homeShard);
const end = (
  { bucketId }: Made,
  [from, to]: [string, string],
  begun: OutcomeOf<'begin-rename'>,
  verdict: 'renamed' | 'refused' = 'renamed',
) => {
  if (begun.kind !== 'begun') throw new Error(begun.kind);
  const names = { from: asName(from), to: asName(to) };
  return world.execute('end-rename', { bucketId, ...names, itemId: begun.itemId, verdict });
};
const find = async (name: string) => (await world.query('find-name', { name: asName(name) })).record;
const kindsOf = (outcomes: { kind: string }[]) => outcomes.map(({ kind }) => kind);
const bucketOf = async ({ bucketId, homeShard }: Made) =>
  must((await world.query('get-bucket', { bucketId }, homeShard)).bucket ?? undefined, 'a bucket');

/** Writes the bucket's row beneath the shard. */
async function plant({ bucketId, homeShard }: Made, change: Partial<BucketRecord>): Promise<void> {
  const value = bucketCodec.encode({ ...(await bucketOf({ bucketId, homeShard })), ...change });
  const { table, key } = bucketRow(bucketId);
  await world.kv.commit([{ column: 'rows', key: rowKey(homeShard, table, key), value }]);
}

test('the bucket keeps its age and its place in the account’s limit', async () => {
  const before = must((await find('red')) ?? undefined, 'a name');
  world.clock.advance(60_000);
  await begin(red, 'red', 'blue');
  await background.run('deliver');
  expect(await find('blue')).toEqual(before);
  expect((await world.query('list-names', { owner: OWNER, max: 9 })).names).toEqual([
    { name: 'blue', record: before },
  ]);
  expect((await world.query('get-account', { accountId: OWNER })).account?.bucketCount).toBe(1);
  await world.execute('delete-bucket', { bucketId: red.bucketId }, red.homeShard);
  await background.run('deliver');
  expect((await world.query('get-account', { accountId: OWNER })).account?.bucketCount).toBe(0);
});

describe('races', () => {
  test('of one bucket to two names: one begins', async () => {
    const outcomes = await Promise.all([begin(red, 'red', 'blue'), begin(red, 'red', 'pink')]);
    expect(kindsOf(outcomes)).toEqual(['begun', 'in-progress']);
    await background.run('deliver');
    expect([await find('red'), await find('pink')]).toEqual([null, null]);
    expect(await find('blue')).toMatchObject({ state: 'active', bucketId: red.bucketId });
  });

  test('of two buckets to one name: one begins', async () => {
    const pink = await make('pink');
    const outcomes = await Promise.all([begin(red, 'red', 'blue'), begin(pink, 'pink', 'blue')]);
    expect(kindsOf(outcomes)).toEqual(['begun', 'in-progress']);
    await background.run('deliver');
    expect(await find('pink')).toMatchObject({ state: 'active', bucketId: pink.bucketId });
    expect(await begin(pink, 'pink', 'blue')).toMatchObject({ kind: 'owned-already' });
  });

  test('of two buckets for each other’s names: neither', async () => {
    const pink = await make('pink');
    const outcomes = await Promise.all([begin(red, 'red', 'pink'), begin(pink, 'pink', 'red')]);
    expect(kindsOf(outcomes)).toEqual(['owned-already', 'owned-already']);
  });

  test('with a creation of the new name: the first one wins', async () => {
    const first = await Promise.all([begin(red, 'red', 'blue'), reserve('blue')]);
    expect(kindsOf(first)).toEqual(['begun', 'in-progress']);
    const pink = await make('pink');
    const second = await Promise.all([reserve('grey'), begin(pink, 'pink', 'grey')]);
    expect(kindsOf(second)).toEqual(['reserved', 'in-progress']);
  });

  test('with a creation of the old name: it waits until the name is free', async () => {
    const begun = await begin(red, 'red', 'blue');
    expect(await reserve('red')).toEqual({ kind: 'in-progress' });
    await decide(red, 'red', 'blue');
    expect(await reserve('red')).toEqual({ kind: 'in-progress' });
    const outcomes = await Promise.all([end(red, ['red', 'blue'], begun), reserve('red')]);
    expect(kindsOf(outcomes)).toEqual(['renamed', 'reserved']);
  });

  test('with the deletion: renamed first and then deleted, or deleted and not renamed', async () => {
    const remove = ({ bucketId, homeShard }: Made) => world.execute('delete-bucket', { bucketId }, homeShard);
    const pink = await make('pink');
    await begin(red, 'red', 'blue');
    await begin(pink, 'pink', 'grey');
    const first = await Promise.all([decide(red, 'red', 'blue'), remove(red)]);
    expect(first).toMatchObject([{ kind: 'renamed' }, { kind: 'deleted', bucket: { name: 'blue' } }]);
    const second = await Promise.all([remove(pink), decide(pink, 'pink', 'grey')]);
    expect(second).toMatchObject([{ kind: 'deleted', bucket: { name: 'pink' } }, { kind: 'refused' }]);
    await background.run('deliver', 'deliver');
    for (const name of ['red', 'blue', 'pink', 'grey']) expect(await find(name)).toBeNull();
  });

  test('of a gateway with the outbox: one ends it, the other finds it ended', async () => {
    const begun = await begin(red, 'red', 'blue');
    await decide(red, 'red', 'blue');
    const ends = [end(red, ['red', 'blue'], begun), end(red, ['red', 'blue'], begun, 'refused')];
    expect(kindsOf(await Promise.all(ends))).toEqual(['renamed', 'gone']);
  });
});

describe('a rename is decided once', () => {
  test('refused during a deletion, it stays refused when the bucket opens again', async () => {
    await begin(red, 'red', 'blue');
    await plant(red, { state: 'closing' });
    expect(await decide(red, 'red', 'blue')).toEqual({ kind: 'refused' });
    await background.run('deliver');
    expect(await find('red')).toMatchObject({ state: 'active' });
    await plant(red, { state: 'open' });
    expect(await decide(red, 'red', 'blue')).toEqual({ kind: 'refused' });
    expect(await bucketOf(red)).toMatchObject({ name: 'red', nameEpoch: 2 });
    expect(await begin(red, 'red', 'blue', 2)).toMatchObject({ kind: 'begun' });
    expect(await decide(red, 'red', 'blue', 2)).toMatchObject({ kind: 'renamed' });
  });

  test('done, it stays done for late questions, whatever became of the bucket', async () => {
    const begun = await begin(red, 'red', 'blue');
    await decide(red, 'red', 'blue');
    await world.execute('delete-bucket', { bucketId: red.bucketId }, red.homeShard);
    expect(await decide(red, 'red', 'blue')).toMatchObject({ kind: 'renamed' });
    expect(await end(red, ['red', 'blue'], begun)).toEqual({ kind: 'renamed' });
    await background.run('deliver');
    expect([await find('red'), await find('blue')]).toEqual([null, null]);
  });

  test('there and back: messages of the first rename do nothing to the second', async () => {
    const there = await begin(red, 'red', 'blue');
    await decide(red, 'red', 'blue');
    await end(red, ['red', 'blue'], there);
    const back = await begin(red, 'blue', 'red', 2);
    await decide(red, 'blue', 'red', 2);
    await end(red, ['blue', 'red'], back);
    const again = await begin(red, 'red', 'blue', 3);
    expect(await decide(red, 'red', 'blue', 1)).toEqual({ kind: 'refused' });
    expect(await end(red, ['red', 'blue'], there)).toEqual({ kind: 'gone' });
    expect(await find('red')).toMatchObject({ state: 'leaving' });
    expect(await decide(red, 'red', 'blue', 3)).toMatchObject({ kind: 'renamed' });
    expect(await end(red, ['red', 'blue'], again)).toEqual({ kind: 'renamed' });
  });
});

test('an outbox whose home does not answer leaves both names, and continues later', async () => {
  await begin(red, 'red', 'blue');
  const { execute } = world.shards;
  world.shards.execute = async (envelope, name, command) =>
    name === 'rename-bucket' ? { kind: 'unknown' } : execute(envelope, name, command);
  await background.run('deliver');
  expect(background.warnings).toEqual(['outbox-delivery-failed']);
  expect([(await find('red'))?.state, (await find('blue'))?.state]).toEqual(['leaving', 'entering']);
  world.shards.execute = execute;
  world.clock.advance(LIMITS.shardRestMinMs);
  await background.run('deliver');
  expect([await find('red'), (await find('blue'))?.state]).toEqual([null, 'active']);
});

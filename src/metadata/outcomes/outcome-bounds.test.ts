// What is kept of requests that are over is bounded, of an account and of all: beyond it the next one is refused with
// nothing done, and what was kept goes on being answered.
import { beforeEach, describe, expect, test } from 'vitest';
import { driveJob, moveCalls } from '../../../tests/support/metadata/drive-job.ts';
import {
  BUCKET,
  type MetadataShards,
  OWNER,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import {
  type Background,
  DAY,
  MINUTE,
  openBackground,
} from '../../../tests/support/metadata/metadata-workers.ts';
import {
  TOKEN_REQUEST_NAMES,
  TOKEN_REQUESTS,
  tokenOf,
} from '../../../tests/support/servers/token-requests.ts';
import type { RowPut } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import type { AccountId, JobId } from '../../types/names.ts';
import { jobCodec } from '../../types/records/job-record.ts';
import { tokenCodec } from '../../types/records/rows.ts';
import { driveClosing } from '../buckets/drive-closing.ts';
import { counterKey } from '../engine/counters.ts';
import { rowKey } from '../engine/row-keys.ts';
import { COUNTER } from '../schema/counters.ts';
import { PRESENT, put, TABLES } from '../schema/keyspace.ts';
import { tokenRow, tokenTimeRow } from './tokens.ts';

let background: Background;
let world: MetadataShards;
beforeEach(async () => {
  background = await openBackground();
  ({ world } = background);
  await world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'versioning',
    document: { status: 'enabled' },
  });
});

/** As if so much were kept already: before anything has looked at the counter. */
async function setCounter(name: string, value: number): Promise<void> {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value);
  await world.kv.commit([{ column: 'rows', key: counterKey(0, name), value: bytes }]);
}

async function plant(puts: RowPut[]): Promise<void> {
  await world.kv.commit(
    puts.map(({ table, key, value }) => ({ column: 'rows', key: rowKey(0, table, key), value })),
  );
}

/** For what a token keeps. */
const SHARD_MAX = LIMITS.storedOutcomesBytesMax;
const ACCOUNT_MAX = LIMITS.storedOutcomesPerAccountBytesMax;
const OWN = COUNTER.accountOutcomeBytes(OWNER);
const BOUNDS: [name: string, stored: Record<string, number>][] = [
  ['the account', { [OWN]: ACCOUNT_MAX - 1500 }],
  ['the shard', { [COUNTER.keptBytes]: SHARD_MAX - 1500, [OWN]: LIMITS.outcomesAtLeastBytes }],
  [
    'what an account may have in a shard that others have filled',
    { [COUNTER.keptBytes]: SHARD_MAX, [OWN]: LIMITS.outcomesAtLeastBytes - 1500 },
  ],
];

const FULL = { kind: 'too-much-kept' };
const jobsUnderWay = async () =>
  (await world.query('list-open-jobs', { kind: 'move-prefix', limit: LIMITS.jobsMax })).jobs;
const state = async () => [await world.versions(), await jobsUnderWay()];

describe.each(TOKEN_REQUEST_NAMES)('%s', (name) => {
  const { setUp, send } = TOKEN_REQUESTS[name];

  /** Sends requests of other names, one after the other, until one is refused; the names of those before it, and its own. */
  async function sendUntilFull(): Promise<{ done: string[]; refused: string }> {
    const done: string[] = [];
    for (let at = 0; at < LIMITS.jobsPerAccountMax; at++) {
      await setUp(world, `${at}`);
      const before = await state();
      const outcome = await send(world, `${at}`, tokenOf(`${at}`));
      if (outcome.kind === FULL.kind) {
        expect(await state()).toEqual(before);
        return { done, refused: `${at}` };
      }
      expect(await state()).not.toEqual(before);
      done.push(`${at}`);
    }
    throw new Error('never full');
  }

  test.each(BOUNDS)(
    'beyond the bound of %s nothing is done; a day later there is room',
    async (_, stored) => {
      for (const counter in stored) await setCounter(counter, stored[counter] ?? 0);
      const { done, refused } = await sendUntilFull();
      expect(done.length).toBeGreaterThan(0);
      expect(await send(world, refused, tokenOf(refused))).toEqual(FULL);
      const [first = ''] = done;
      const before = await state();
      expect(await send(world, first, tokenOf(first))).not.toEqual(FULL);
      const other = { ...tokenOf(first), digest: 'other' };
      expect(await send(world, first, other)).toEqual({ kind: 'token-reused' });
      expect(await state()).toEqual(before);

      for (const job of await jobsUnderWay()) if (job.kind === 'move-prefix') await driveJob(world, job);
      await background.run('tokens', 'jobs');
      expect(await send(world, refused, tokenOf(refused)), 'within the day').toEqual(FULL);
      world.clock.advance(LIMITS.jobKeptMs + MINUTE);
      await background.run('tokens', 'jobs');
      expect(await send(world, refused, tokenOf(refused))).not.toEqual(FULL);
    },
  );

  test('the next primary uses the same bound', async () => {
    await setCounter(OWN, ACCOUNT_MAX - 1500);
    const { done, refused } = await sendUntilFull();
    await world.shards.close();
    // Ids have the time in them.
    world.clock.advance(1);
    world = await openMetadata({ kv: world.kv, clock: world.clock, seed: 3 });
    expect(await send(world, refused, tokenOf(refused))).toEqual(FULL);
    const [first = ''] = done;
    expect(await send(world, first, tokenOf(first))).not.toEqual(FULL);
  });

  test('many at once do not pass it', async () => {
    const names = Array.from({ length: LIMITS.jobsPerAccountMax }, (_, at) => `${at}`);
    for (const each of names) await setUp(world, each);
    const leftBytes = 2500;
    await setCounter(COUNTER.keptBytes, SHARD_MAX - leftBytes);
    await setCounter(OWN, LIMITS.outcomesAtLeastBytes);
    const outcomes = await Promise.all(names.map((each) => send(world, each, tokenOf(each))));
    const doneCount = outcomes.filter(({ kind }) => kind !== FULL.kind).length;
    expect(doneCount).toBeGreaterThan(0);
    expect(doneCount).toBeLessThan(names.length);
    const [stored = 0] = await countersOf(COUNTER.keptBytes);
    expect(stored).toBeLessThanOrEqual(SHARD_MAX);
    expect(stored).toBeGreaterThan(SHARD_MAX - leftBytes);
  });

  test('full outcomes under tokens refuse nothing without a token', async () => {
    await setUp(world, 'first');
    for (const [counter, max] of [
      [OWN, ACCOUNT_MAX],
      [COUNTER.keptBytes, SHARD_MAX],
    ] as const)
      await setCounter(counter, max);
    expect(await send(world, 'first', tokenOf('first'))).toEqual(FULL);
    expect(await send(world, 'first')).not.toEqual(FULL);
  });

  test('full jobs without a token refuse nothing with one', async () => {
    await setUp(world, 'first');
    await setCounter(COUNTER.accountTokenlessBytes(OWNER), LIMITS.tokenlessOutcomesPerAccountBytesMax);
    await setCounter(COUNTER.tokenlessBytes, LIMITS.tokenlessOutcomesBytesMax);
    expect(await send(world, 'first', tokenOf('first'))).not.toEqual(FULL);
  });
});

test('answers about no bucket fill the share of their payer alone, and are given back to it', async () => {
  const [first, second] = ['partner 1', 'partner 2'];
  const of = (payer: string) => COUNTER.accountOutcomeBytes(payer as AccountId);
  const keep = (payer: string, name: string) =>
    world.execute('keep-answer', { token: tokenOf(name), answer: 'x'.repeat(500), payer });
  await setCounter(of(first), ACCOUNT_MAX - 1000);
  expect(await keep(first, 'a')).toEqual({ kind: 'kept' });
  expect(await keep(first, 'b')).toEqual(FULL);
  expect(await keep(second, 'b')).toEqual({ kind: 'kept' });
  const [all, own = 0] = await countersOf(COUNTER.keptBytes, of(second));
  expect(all).toBe(2 * own);
  const findings = async () => (await world.query('check-counters', { counted: [] })).findings;
  await setCounter(of(first), own);
  expect(await findings()).toEqual([]);
  world.clock.advance(DAY + MINUTE);
  await background.run('tokens');
  expect(await countersOf(COUNTER.keptBytes, of(second))).toEqual([0, 0]);
  expect(await findings()).toEqual([]);
});

describe('jobs without a token', () => {
  const { setUp, send } = TOKEN_REQUESTS['begin-move'];
  const ALL = COUNTER.tokenlessBytes;
  const OWN_TOKENLESS = COUNTER.accountTokenlessBytes(OWNER);
  const [allMax, ownMax] = [LIMITS.tokenlessOutcomesBytesMax, LIMITS.tokenlessOutcomesPerAccountBytesMax];

  test.each<[name: string, stored: Record<string, number>]>([
    ['the account', { [OWN_TOKENLESS]: ownMax - 1000 }],
    ['the shard', { [ALL]: allMax - 1000, [OWN_TOKENLESS]: LIMITS.outcomesAtLeastBytes }],
    [
      'what an account may have in a shard that others have filled',
      { [ALL]: allMax, [OWN_TOKENLESS]: LIMITS.outcomesAtLeastBytes - 1000 },
    ],
  ])('have the bound of %s for themselves, and there is room when they have gone', async (_, stored) => {
    for (const each of ['first', 'second']) await setUp(world, each);
    for (const counter in stored) await setCounter(counter, stored[counter] ?? 0);
    expect(await send(world, 'first')).toMatchObject({ kind: 'begun' });
    const before = await state();
    expect(await send(world, 'second')).toEqual(FULL);
    expect(await state()).toEqual(before);
    for (const job of await jobsUnderWay()) if (job.kind === 'move-prefix') await driveJob(world, job);
    // Those that are shown count for as long as they are.
    const [job] = (await world.query('list-jobs', { limit: 1 })).jobs;
    world.clock.advance(LIMITS.tokenlessJobKeptMs + MINUTE);
    await world.execute('forget-jobs', { jobIds: [job?.jobId as JobId] });
    expect(await send(world, 'second')).toMatchObject({ kind: 'begun' });
  });
});

async function countersOf(...names: string[]): Promise<number[]> {
  const rows = await world.kv.getMany(
    'rows',
    names.map((name) => counterKey(0, name)),
  );
  return rows.map((row) => (row === undefined ? 0 : Buffer.from(row).readDoubleBE(0)));
}

describe('what is counted', () => {
  const KEPT = [COUNTER.keptBytes, OWN];
  const TOKENLESS = [COUNTER.tokenlessBytes, COUNTER.accountTokenlessBytes(OWNER)];
  const findings = async () => (await world.query('check-counters', { counted: [] })).findings;

  beforeEach(async () => {
    for (const name of TOKEN_REQUEST_NAMES) {
      await TOKEN_REQUESTS[name].setUp(world, name);
      await TOKEN_REQUESTS[name].send(world, name, tokenOf(name));
    }
  });

  test('is the size of the rows, and nothing once they are removed', async () => {
    expect(await findings()).toEqual([]);
    const [all = 0, own] = await countersOf(...KEPT);
    expect(own).toBe(all);
    const stored = await storedBytes();
    expect(all).toBeGreaterThan(stored);
    expect(all).toBeLessThan(3 * stored);
    for (const job of await jobsUnderWay()) await driveJob(world, job as never);
    expect(await findings()).toEqual([]);
    world.clock.advance(DAY + 2 * 60 * MINUTE);
    await background.run('tokens', 'jobs');
    expect(await findings()).toEqual([]);
    expect(await countersOf(...KEPT)).toEqual([0, 0]);
  });

  async function storedBytes(): Promise<number> {
    let sum = 0;
    for (const table of [TABLES.tokens, TABLES.tokenTimes, TABLES.jobs, TABLES.openJobs]) {
      const rows = await world.kv.range({
        column: 'rows',
        gte: rowKey(0, table, Uint8Array.of()),
        lt: rowKey(0, { ...table, id: table.id + 1 }, Uint8Array.of()),
        limit: 1000,
      });
      for (const { key, value } of rows) sum += key.length + value.length;
    }
    return sum;
  }

  test('the errors of a rename count as they occur', async () => {
    const count = 50;
    for (let at = 0; at < count; at++) for (const prefix of ['a', 'b']) await world.put(`${prefix}/${at}`);
    const job = await world.execute('begin-move', {
      bucketId: BUCKET,
      from: 'a/',
      to: 'b/',
      overwrites: false,
    });
    if (job.kind !== 'begun') throw new Error(job.kind);
    const tokens = await countersOf(...KEPT);
    const [before = 0] = await countersOf(...TOKENLESS);
    await driveJob(world, job.job);
    const [after = 0, own] = await countersOf(...TOKENLESS);
    expect(after - before).toBeGreaterThan(100 * count);
    expect(own).toBe(after);
    expect(await countersOf(...KEPT)).toEqual(tokens);
    expect(await findings()).toEqual([]);
  });

  test.each([
    ['of many keys', 'a', LIMITS.moveErrorsUnderTokenMax + 5],
    ['of long ones', 'k'.repeat(900), 40],
  ])('under a token fewer errors are kept %s: the first, and how many there were', async (_, key, count) => {
    for (let at = 0; at < count; at++)
      for (const prefix of ['x', 'y']) await world.put(`${prefix}/${key}${String(at).padStart(4, '0')}`);
    const command = { bucketId: BUCKET, from: 'x/', to: 'y/', overwrites: false, token: tokenOf('x') };
    const [before = 0] = await countersOf(...KEPT);
    const begun = await world.execute('begin-move', command);
    if (begun.kind !== 'begun') throw new Error(begun.kind);
    const { steps, ended } = await driveJob(world, begun.job);
    const met = steps.flatMap(({ moved }) => moved.map(({ from }) => from));
    expect(met).toHaveLength(count);
    expect(ended).toMatchObject({ movedCount: 0, errorCount: count });
    const stored = (ended?.errors ?? []).map(({ sourceKey }) => sourceKey);
    expect(stored).toEqual(met.slice(0, stored.length));
    expect(stored.length).toBeGreaterThan(10);
    expect(stored.length).toBeLessThan(count);
    const [after = 0] = await countersOf(...KEPT);
    expect(after - before).toBeLessThan(2 * LIMITS.moveErrorsUnderTokenBytesMax);
    expect(await findings()).toEqual([]);
  });

  test('is removed with its bucket, and not subtracted twice', async () => {
    const closing = await world.execute('close-bucket', { bucketId: BUCKET });
    if (closing.kind !== 'closing') throw new Error(closing.kind);
    const calls = {
      look: (query: Parameters<typeof world.query<'find-protected'>>[1]) =>
        world.query('find-protected', query),
      step: (command: Parameters<typeof world.execute<'step-closing'>>[1]) =>
        world.execute('step-closing', command),
    };
    await driveClosing(calls, closing.job);
    world.clock.advance(DAY + MINUTE);
    await Promise.all([background.run('empty'), background.run('tokens')]);
    for (const job of await jobsUnderWay()) await driveJob(world, job as never);
    expect(await findings()).toEqual([]);
    world.clock.advance(DAY + 2 * 60 * MINUTE);
    await background.run('jobs');
    expect(await findings()).toEqual([]);
    expect(await countersOf(...KEPT)).toEqual([0, 0]);
  });

  test('a token that is named twice is removed once', async () => {
    world.clock.advance(DAY);
    const tokens = ['move-key', 'move-key'].map((name) => ({ bucketId: BUCKET, token: tokenOf(name).token }));
    await world.execute('forget-tokens', { tokens });
    expect(await findings()).toEqual([]);
  });

  test('rows from before the count are removed without being subtracted', async () => {
    const nowMs = world.clock.wallMs();
    const record = tokenCodec.encode({ digest: 'd', keptAtMs: nowMs, outcome: null });
    const [job] = await jobsUnderWay();
    if (job?.kind !== 'move-prefix') throw new Error('no job');
    const { keptBytes: _, ...old } = {
      ...job,
      jobId: 'a'.repeat(28) as JobId,
      owner: OWNER,
      endedAtMs: nowMs,
    };
    await plant([
      put(tokenRow(BUCKET, 'old'), record),
      put(tokenTimeRow(nowMs, BUCKET, 'old'), PRESENT),
      put({ table: TABLES.jobs, key: Buffer.from(old.jobId, 'hex') }, jobCodec.encode(old)),
    ]);
    const before = await countersOf(...KEPT);
    world.clock.advance(DAY);
    await world.execute('forget-tokens', { tokens: [{ bucketId: BUCKET, token: 'old' }] });
    world.clock.advance(DAY);
    await world.execute('forget-jobs', { jobIds: [old.jobId] });
    expect(await moveCalls(world, old).findJob()).toBeUndefined();
    expect(await countersOf(...KEPT)).toEqual(before);
  });
});

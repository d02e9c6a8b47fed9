// Idempotency tokens: kept for a day with what was answered, then forgotten with their time.
import { beforeEach, expect, test } from 'vitest';
import { BUCKET, type MetadataShards } from '../../../tests/support/metadata/metadata-shards.ts';
import { type Background, MINUTE, openBackground } from '../../../tests/support/metadata/metadata-workers.ts';
import {
  TOKEN_REQUEST_NAMES,
  TOKEN_REQUESTS,
  tokenOf,
} from '../../../tests/support/servers/token-requests.ts';
import { LIMITS } from '../../types/limits.ts';
import type { ObjectKey } from '../../types/names.ts';

let background: Background;
let world: MetadataShards;
beforeEach(async () => {
  background = await openBackground();
  ({ world } = background);
});

async function moveUnder(token: string, [from, to]: [string, string]) {
  await world.put(from);
  const move = { from: from as ObjectKey, to };
  return world.execute('move-key', {
    bucketId: BUCKET,
    move,
    overwrites: true,
    token: { token, digest: to },
  });
}

const keptTokens = async () => {
  const query = { olderThanMs: -MINUTE, limit: 10 };
  return (await world.query('list-kept-tokens', query)).tokens.map(({ token }) => token);
};

test('a token is removed after a day, and may then be used again', async () => {
  await moveUnder('old', ['a', 'b']);
  world.clock.advance(LIMITS.idempotencyTokenKeptMs / 2);
  await moveUnder('young', ['c', 'd']);
  await background.run('tokens');
  expect(await keptTokens()).toEqual(['old', 'young']);
  world.clock.advance(LIMITS.idempotencyTokenKeptMs / 2 + 1);
  await background.run('tokens');
  expect(await keptTokens()).toEqual(['young']);
  expect(await moveUnder('young', ['c', 'other'])).toEqual({ kind: 'token-reused' });
  expect(await moveUnder('old', ['a', 'other'])).toMatchObject({ kind: 'moved-key' });
});

test.each(TOKEN_REQUEST_NAMES)(
  '%s: within its day a token is answered, then it may be used anew',
  async (name) => {
    const { setUp, send } = TOKEN_REQUESTS[name];
    for (const each of ['first', 'another']) await setUp(world, each);
    const token = tokenOf('once');
    const first = await send(world, 'first', token);
    const other = { ...token, digest: 'other' };
    world.clock.advance(LIMITS.idempotencyTokenKeptMs - 1);
    await background.run('tokens');
    expect(await send(world, 'another', other)).toEqual({ kind: 'token-reused' });
    // How the same request is answered again is each command's own.
    expect(await send(world, 'first', token)).toMatchObject(
      {
        'move-key': first,
        'begin-move': { kind: 'began-before' },
        'compose-version': { kind: 'repeated', outcome: first },
        'append-version': { kind: 'repeated', outcome: first },
      }[name],
    );
    world.clock.advance(2);
    background.reopen();
    await background.run('tokens');
    expect(await send(world, 'another', other)).toMatchObject({ kind: first.kind });
  },
);

test.each(TOKEN_REQUEST_NAMES)(
  '%s: a token answers for its day and no longer, though it is still stored',
  async (name) => {
    const { setUp, send } = TOKEN_REQUESTS[name];
    await world.execute('set-bucket-config', {
      bucketId: BUCKET,
      kind: 'versioning',
      document: { status: 'enabled' },
    });
    for (const each of ['first', 'another']) await setUp(world, each);
    const token = tokenOf('once');
    const first = await send(world, 'first', token);
    const stored = () => world.query('get-kept-outcome', { bucketId: BUCKET, token });
    world.clock.advance(LIMITS.idempotencyTokenKeptMs - 1);
    expect(await stored()).toMatchObject({ kind: 'repeated' });
    world.clock.advance(1);
    // Nothing forgets it meanwhile, as while a jump of the clock waits for the operator.
    expect(await keptTokens()).toEqual([token.token]);
    expect(await stored()).toEqual({ kind: 'none' });
    const other = { ...token, digest: 'other' };
    expect(await send(world, 'another', other)).toMatchObject({ kind: first.kind });
    // What is kept of the new request takes the place of the old one, in the rows and in what is counted.
    expect(await keptTokens()).toEqual([token.token]);
    const { findings } = await world.query('check-counters', { counted: [] });
    expect(findings).toEqual([]);
    for (const table of ['tokens', 'tokenTimes'] as const) {
      const rows = await world.query('check-rows', { table, limit: 10, keyIds: [] });
      expect([rows.findings, rows.rowCount]).toEqual([[], 1]);
    }
    const { tokenBytes } = await world.query('count-kept', {});
    world.clock.advance(LIMITS.idempotencyTokenKeptMs + 1);
    await background.run('tokens');
    expect(tokenBytes).toBeGreaterThan(0);
    // A job of a prefix is kept for longer than its token.
    if (name !== 'begin-move') expect((await world.query('count-kept', {})).tokenBytes).toBe(0);
  },
);

test('a younger or missing one is left alone', async () => {
  await moveUnder('young', ['a', 'b']);
  const tokens = ['young', 'unknown'].map((token) => ({ bucketId: BUCKET, token }));
  expect(await world.execute('forget-tokens', { tokens })).toEqual({ kind: 'forgotten' });
  expect(await keptTokens()).toEqual(['young']);
});

test('rows and their index agree', async () => {
  await moveUnder('t', ['a', 'b']);
  for (const table of ['tokens', 'tokenTimes'] as const) {
    const { findings, rowCount } = await world.query('check-rows', { table, limit: 10, keyIds: [] });
    expect([findings, rowCount]).toEqual([[], 1]);
  }
});

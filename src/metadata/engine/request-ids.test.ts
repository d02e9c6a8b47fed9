// One outcome for each request id, whatever is sent again (R18).
import { expect, test } from 'vitest';
import { isPending, openNoteShards, settle } from '../../../tests/support/metadata/note-shards.ts';
import { LIMITS } from '../../types/limits.ts';

const note = (key: string, text = 'text', more: object = {}) => ({ bucketId: 'b', key, text, ...more });
const done = (value: object) => ({ kind: 'done', value });

test('a retry gets the first outcome and has no effect', async () => {
  const { execute, query } = await openNoteShards();
  const first = await execute('write-note', note('x', 'one'), { requestId: 'r1' });
  await execute('write-note', note('x', 'two'), { requestId: 'r2' });
  const again = await execute('write-note', note('x', 'one'), { requestId: 'r1' });
  expect(again).toMatchObject(done((first as { value: object }).value));
  expect(await query('read-note', { bucketId: 'b', key: 'x' })).toMatchObject(done({ text: 'two' }));
});

test('also after a restart, and while the first try is not committed', async () => {
  const before = await openNoteShards();
  before.kv.holdCommits();
  const first = before.execute('write-note', note('x'), { requestId: 'r1' });
  await settle();
  const duplicate = before.execute('write-note', note('x'), { requestId: 'r1' });
  expect(await isPending(duplicate)).toBe(true);
  before.kv.releaseCommits();
  expect(await duplicate).toEqual(await first);
  await before.shards.close();
  const after = await before.reopen();
  const again = await after.execute('write-note', note('x'), { requestId: 'r1' });
  expect(again).toMatchObject(done(((await first) as { value: object }).value));
});

test('a refusal writes no entry: a retry is decided again', async () => {
  const { execute } = await openNoteShards();
  const refused = { requestId: 'r1' };
  expect(await execute('drop-note', { bucketId: 'b', key: 'x' }, refused)).toMatchObject(
    done({ kind: 'absent' }),
  );
  await execute('write-note', note('x'));
  expect(await execute('drop-note', { bucketId: 'b', key: 'x' }, refused)).toMatchObject(
    done({ kind: 'dropped' }),
  );
});

test('the outcome of a retry that changes nothing is stored: the first try, arriving later, has no effect', async () => {
  const { execute } = await openNoteShards();
  const drop = { bucketId: 'b', key: 'x' };
  const retry = await execute('drop-note', drop, { requestId: 'r1', isRetry: true });
  expect(retry).toMatchObject(done({ kind: 'absent' }));
  expect(retry).not.toHaveProperty('isUnkept');
  await execute('write-note', note('x'));
  const late = await execute('drop-note', drop, { requestId: 'r1' });
  expect(late).toMatchObject(done({ kind: 'absent' }));
  const unkept = await execute('drop-note', { bucketId: 'b', key: 'y' }, { requestId: 'r2' });
  expect(unkept).toMatchObject({ isUnkept: true });
});

test('outcomes are removed after 15 min of shard time, from a stored cursor', async () => {
  const world = await openNoteShards();
  const forget = async () => {
    const worker = world.shards.workers.find(({ name }) => name === 'forget-request-outcomes');
    while ((await worker?.work(new AbortController().signal))?.state === 'busy');
  };
  await world.execute('write-note', note('x', 'one'), { requestId: 'r1' });
  await world.execute('write-note', note('x', 'two'));
  world.clock.advance(LIMITS.requestIdKeptMs - 60_000);
  await forget();
  const kept = await world.execute('write-note', note('x', 'one'), { requestId: 'r1' });
  expect(kept).toMatchObject(done({ replaced: null }));
  world.clock.advance(2 * 60_000);
  await forget();
  const forgotten = await world.execute('write-note', note('x', 'one'), { requestId: 'r1' });
  expect(forgotten).toMatchObject(done({ replaced: 'two' }));
});

test('many outcomes are removed in bounded units', async () => {
  const world = await openNoteShards({ shardCount: 2 });
  const ids = Array.from({ length: 1200 }, (_, i) => `r${i}`);
  await Promise.all(ids.map((requestId) => world.execute('write-note', note(requestId), { requestId })));
  world.clock.advance(LIMITS.requestIdKeptMs + 60_000);
  const [worker] = world.shards.workers;
  let unitCount = 1;
  while ((await worker?.work(new AbortController().signal))?.state === 'busy') unitCount++;
  expect(unitCount).toBeGreaterThanOrEqual(3);
  const range = {
    column: 'rows',
    gte: Uint8Array.of(0, 0, 0xf3),
    lt: Uint8Array.of(0, 0, 0xf5),
    limit: 10,
  };
  expect(await world.kv.range(range)).toEqual([]);
});

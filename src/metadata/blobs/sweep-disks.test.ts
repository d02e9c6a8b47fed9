import { beforeEach, expect, test, vi } from 'vitest';
import {
  chunkIds,
  DAY,
  HOUR,
  type HomeWorld,
  openHomeWorld,
} from '../../../tests/support/disks/home-world.ts';

let home: HomeWorld;
beforeEach(async () => {
  home = await openHomeWorld();
});
async function sweep(): Promise<void> {
  home.world.clock.advance(HOUR);
  await home.run('sweep');
}
/** Stored, and never committed. */
function orphan(on: string) {
  const data = home.world.newData({ sizeBytes: 10 });
  for (const id of chunkIds(data))
    for (const disk of on) home.disk(disk).receive(id, home.world.clock.wallMs());
  return data;
}

test('chunks that no commit can reference any more are dropped, not before', async () => {
  const data = orphan('abe');
  const live = await home.newBlob('k', 'abc');
  home.world.clock.advance(23 * HOUR - 1000);
  await sweep();
  expect(home.where(data)).toEqual(['abe']);
  home.world.clock.advance(HOUR);
  await sweep();
  expect([home.where(data), home.where(live)]).toEqual([[''], ['abc']]);
  expect(home.counts.get('holdfast_orphan_chunks_dropped_total')).toBe(3);
});

test('a pass over old chunks reads the time once, not for each page', async () => {
  await home.newBlob('k', 'abc', { chunks: 1300 });
  home.world.clock.advance(2 * DAY);
  const ticks = vi.spyOn(home.world.shards, 'execute');
  await sweep();
  expect(ticks.mock.calls.filter(([, name]) => name === 'tick')).toHaveLength(1);
});

test('young bytes under an old id stay', async () => {
  const data = orphan('a');
  home.world.clock.advance(2 * DAY);
  home.disk('a').receive(chunkIds(data)[0] as never, home.world.clock.wallMs());
  await sweep();
  expect(home.where(data)).toEqual(['a']);
});

test('a misplaced copy is dropped once the owners have proven theirs', async () => {
  const data = await home.newBlob('k', 'abc');
  home.disk('e').receive(chunkIds(data)[0] as never, home.world.clock.wallMs());
  await sweep();
  expect([home.where(data), await home.debts()]).toEqual([['abce'], [9]]);
  await home.run('repair');
  expect([home.where(data), await home.debts()]).toEqual([['abc'], []]);
});

test('a misplaced copy is dropped even if it was received by a fast clock', async () => {
  const data = await home.newBlob('k', 'abc');
  home.disk('e').receive(chunkIds(data)[0] as never, home.world.clock.wallMs() + 400 * DAY);
  await sweep();
  await home.run('repair');
  expect([home.where(data), await home.debts()]).toEqual([['abc'], []]);
});

test('a chunk received by a fast clock is no orphan before its time', async () => {
  const data = orphan('a');
  const [id] = chunkIds(data);
  home.world.clock.advance(2 * DAY);
  home.disk('a').receive(id as never, home.world.clock.wallMs() + 4 * DAY);
  await sweep();
  expect(home.where(data)).toEqual(['a']);
  home.world.clock.advance(6 * DAY);
  await sweep();
  expect(home.where(data)).toEqual(['']);
});

test('a misplaced copy stays while an owner has none and cannot take it', async () => {
  const data = await home.newBlob('k', 'abc');
  home.disk('c').stored.clear();
  home.disk('c').mood = 'full';
  home.disk('e').receive(chunkIds(data)[0] as never, home.world.clock.wallMs());
  await sweep();
  await home.run('repair');
  expect(home.where(data)).toEqual(['abe']);
});

test('data that is marked for deletion is left to its release', async () => {
  const data = await home.newBlob('k', 'abce');
  await home.world.remove('k');
  await home.world.markUnlinked();
  home.world.clock.advance(2 * DAY);
  await sweep();
  expect(home.where(data)).toEqual(['abce']);
});

test('a shard with an unconfirmed history loses nothing', async () => {
  const data = orphan('a');
  home.world.clock.advance(2 * DAY);
  const { query } = home.world.shards;
  home.world.shards.query = async (envelope, name, body) => {
    const reply = await query.call(home.world.shards, envelope, name, body);
    if (name !== 'get-blobs' || reply.kind !== 'done') return reply as never;
    return { ...reply, value: { ...reply.value, isUnconfirmed: true } } as never;
  };
  await sweep();
  expect(home.where(data)).toEqual(['a']);
});

test('an order of an old epoch drops nothing', async () => {
  const first = orphan('a');
  home.world.clock.advance(2 * DAY);
  home.epoch = 2;
  await sweep();
  const second = orphan('a');
  home.world.clock.advance(2 * DAY);
  home.epoch = 1;
  await sweep();
  expect([home.where(first), home.where(second)]).toEqual([[''], ['a']]);
});

test('a disk that is away is skipped, and swept in the next pass', async () => {
  const data = orphan('ab');
  home.world.clock.advance(2 * DAY);
  home.disk('a').mood = 'dead';
  await sweep();
  expect(home.where(data)).toEqual(['a']);
  home.disk('a').mood = 'well';
  await sweep();
  await sweep();
  expect(home.where(data)).toEqual(['']);
});

test('disks with many chunks are walked page by page', async () => {
  const all = Array.from({ length: 1200 }, () => orphan('a'));
  home.world.clock.advance(2 * DAY);
  await sweep();
  expect(all.filter((data) => home.where(data)[0] !== '')).toEqual([]);
});

test('a disk that fails now and then is swept to its end, and the others meanwhile', async () => {
  const all = Array.from({ length: 1200 }, () => orphan('ab'));
  home.world.clock.advance(2 * DAY);
  const disk = home.disk('a');
  // After each page that it gives it gives none for a while.
  const { listOf } = disk;
  let pages = 0;
  disk.listOf = async (options) => {
    if (++pages % 2 === 0) throw new Error('busy');
    return listOf(options);
  };
  const left = (letter: string) => all.filter((data) => home.where(data)[0]?.includes(letter)).length;
  await sweep();
  expect([left('a'), left('b')]).toEqual([700, 0]);
  // Its turn comes again before the next pass over the others.
  for (let tries = 0; tries < 2; tries++) {
    home.world.clock.advance(10_000);
    await home.run('sweep');
  }
  expect(left('a')).toBe(0);
});

test('chunks that a shard cannot judge do not delay those behind them', async () => {
  const data = await home.newBlob('k', 'abc');
  home.disk('e').receive(chunkIds(data)[0] as never, home.world.clock.wallMs());
  const all = Array.from({ length: 600 }, () => orphan('e'));
  home.world.clock.advance(2 * DAY);
  const { execute } = home.world.shards;
  home.world.shards.execute = async (envelope, name, command) =>
    name === 'note-debts' ? { kind: 'unknown' } : execute.call(home.world.shards, envelope, name, command);
  await sweep();
  expect(all.filter((each) => home.where(each)[0] !== '')).toEqual([]);
  expect(home.warnings).toEqual(['sweep-failed']);
  home.world.shards.execute = execute;
  await sweep();
  expect(await home.debts()).toEqual([9]);
});

/** The pages of disk a that are asked for, by where they begin: a page of all disks, and so much time between two. */
async function sweepPages(count: number): Promise<(string | undefined)[]> {
  const disk = home.disk('a');
  const { listOf } = disk;
  const begins: (string | undefined)[] = [];
  disk.listOf = async (options) => {
    begins.push(options.after?.blobId);
    return listOf(options);
  };
  const { signal } = new AbortController();
  while (begins.length < count) {
    await home.workers.sweep.work(signal);
    home.world.clock.advance(2 * 60_000);
  }
  disk.listOf = listOf;
  return begins;
}

test('a long pass over a disk continues after a restart or a failover', async () => {
  for (let n = 0; n < 3000; n++) orphan('a');
  const [, , , reached] = await sweepPages(4);
  home.reopen();
  const [first, second] = await sweepPages(2);
  expect(first).toBeDefined();
  expect((first as string) >= (reached as string)).toBe(true);
  expect((second as string) > (first as string)).toBe(true);
});

test('the pass after an interrupted one begins at the first chunk', async () => {
  for (let n = 0; n < 3000; n++) orphan('a');
  await sweepPages(4);
  home.reopen();
  await home.run('sweep');
  home.reopen();
  expect(await sweepPages(1)).toEqual([undefined]);
});

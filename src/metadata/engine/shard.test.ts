import { describe, expect, test } from 'vitest';
import { noteMachine } from '../../../tests/scenarios/note-machine.ts';
import { believed, isPending, openNoteShards, settle } from '../../../tests/support/metadata/note-shards.ts';
import { createSeededRandom } from '../../../tests/support/run/simulated.ts';
import { createLoopbackMetadata } from '../../platform/memory/loopback-metadata.ts';
import { createMemoryKv } from '../../platform/memory/memory-kv.ts';
import { LIMITS } from '../../types/limits.ts';
import type { AccountId } from '../../types/names.ts';
import { createShards, SHARD_COLUMNS } from './shards.ts';

const note = (key: string, text = 'text', more: object = {}) => ({ bucketId: 'b', key, text, ...more });
const open = { bucketId: 'b', name: 'red', isOpen: true, cfgVersion: 1 };
const done = (value: object) => ({ kind: 'done', value });

describe('answers (R8)', () => {
  test('success waits for its own commit; the state shows nothing before', async () => {
    const { kv, execute, query } = await openNoteShards();
    kv.holdCommits();
    const written = execute('write-note', note('x'));
    expect(await isPending(written)).toBe(true);
    expect(await query('read-note', { bucketId: 'b', key: 'x' })).toMatchObject(done({ text: null }));
    kv.releaseCommits();
    expect(await written).toMatchObject(done({ kind: 'written' }));
    expect(await query('read-note', { bucketId: 'b', key: 'x' })).toMatchObject(done({ text: 'text' }));
  });

  test('a refusal waits for everything that was appended when it was evaluated', async () => {
    const { kv, execute } = await openNoteShards();
    kv.holdCommits();
    const first = execute('write-note', note('x'));
    await settle();
    const refused = execute('write-note', note('x', 'other', { onlyIfAbsent: true }));
    const unrelated = execute('drop-note', { bucketId: 'b', key: 'y' });
    expect(await isPending(refused)).toBe(true);
    expect(await isPending(unrelated)).toBe(true);
    kv.releaseCommits();
    expect(await refused).toMatchObject(done({ kind: 'exists' }));
    expect(await unrelated).toMatchObject(done({ kind: 'absent' }));
    await first;
  });

  test('a refusal with nothing appended answers at once, even if the store is slow', async () => {
    const { kv, execute } = await openNoteShards();
    kv.holdCommits();
    expect(await execute('drop-note', { bucketId: 'b', key: 'y' })).toMatchObject(done({ kind: 'absent' }));
  });

  test('locks are free after the append: many writers of one key share a commit', async () => {
    const { kv, execute } = await openNoteShards();
    kv.holdCommits();
    const writers = Array.from({ length: 20 }, (_, i) => execute('write-note', note('x', `text ${i}`)));
    await settle();
    kv.releaseCommits();
    const replies = (await Promise.all(writers)) as { value: { replaced: string | null } }[];
    expect(replies.map(({ value }) => value.replaced)).toEqual([
      null,
      ...Array.from({ length: 19 }, (_, i) => `text ${i}`),
    ]);
  });

  test('a decision over a range sees appended rows that are not yet committed (A15)', async () => {
    const { kv, execute } = await openNoteShards();
    kv.holdCommits();
    const written = execute('write-note', note('x'));
    await settle();
    const closing = execute('set-bucket', { ...open, isOpen: false });
    await settle();
    kv.releaseCommits();
    expect(await closing).toMatchObject(done({ kind: 'not-empty' }));
    await written;
  });

  test('the time of replies never decreases; a query returns committed time', async () => {
    const { clock, execute, query } = await openNoteShards();
    const first = await execute('write-note', note('x'));
    clock.advance(5000);
    const asked = await query('read-note', { bucketId: 'b', key: 'x' });
    clock.shiftWall(-3_600_000);
    const second = await execute('write-note', note('x'));
    const times = [first, asked, second].map((reply) => (reply.kind === 'done' ? reply.timeMs : Number.NaN));
    const start = Date.parse('2024-01-01');
    expect(times).toEqual([start, start, start + 5000]);
  });
});

describe('bounds', () => {
  test('more commands than the queue holds are refused without evaluation', async () => {
    const { kv, execute, shards } = await openNoteShards();
    kv.holdCommits();
    const admitted = Array.from({ length: LIMITS.shardQueueMax }, (_, i) =>
      execute('write-note', note(`k${i}`)),
    );
    expect(await execute('write-note', note('one-more'))).toEqual({ kind: 'busy' });
    expect(shards.status().shards[0]?.callCount).toBe(LIMITS.shardQueueMax);
    kv.releaseCommits();
    await Promise.all(admitted);
    expect(await execute('write-note', note('one-more'))).toMatchObject(done({ kind: 'written' }));
  });

  test('one account does not fill the queue, nor the overlays, of all others', async () => {
    const { kv, execute } = await openNoteShards();
    kv.holdCommits();
    const origin = (accountId: string) => ({ requestId: 'r', accountId: accountId as AccountId });
    const text = 'x'.repeat(LIMITS.overlayBytesMax / 8);
    for (const [count, size] of [
      [LIMITS.shardQueueMax, 'x'],
      [9, text],
    ] as const) {
      const many = Array.from({ length: count }, (_, i) =>
        execute('write-note', note(`k${i}`, size), { origin: origin('100000000001') }),
      );
      await settle();
      expect(await execute('write-note', note('one-more', size), { origin: origin('100000000001') })).toEqual(
        {
          kind: 'busy',
        },
      );
      const other = execute('write-note', note('other'), { origin: origin('100000000002') });
      expect(await isPending(other)).toBe(true);
      kv.releaseCommits();
      await Promise.all(many);
      expect(await other).toMatchObject(done({ kind: 'written' }));
      kv.holdCommits();
    }
  });

  test('more pending bytes than the overlays hold together are refused', async () => {
    const { kv, execute, shards } = await openNoteShards({ shardCount: 2 });
    kv.holdCommits();
    const text = 'x'.repeat(LIMITS.overlayBytesMax / 8);
    const admitted = Array.from({ length: 8 }, (_, i) =>
      execute('write-note', note(`k${i}`, text), { shard: i % 2 }),
    );
    await settle();
    expect(await execute('write-note', note('y'), { shard: 1 })).toEqual({ kind: 'busy' });
    kv.releaseCommits();
    await Promise.all(admitted);
    expect(shards.status().overlayBytes).toBe(0);
    expect(await execute('write-note', note('y'), { shard: 1 })).toMatchObject(done({ kind: 'written' }));
  });

  test('also admitted commands: the store never gets more than it takes', async () => {
    const { kv, execute, shards, fatal } = await openNoteShards();
    kv.holdCommits();
    const text = 'x'.repeat(LIMITS.overlayBytesMax / 8);
    const admitted = Array.from({ length: 20 }, () => execute('write-note', note('k', text)));
    await settle();
    expect(shards.status().overlayBytes).toBeLessThan(LIMITS.overlayBytesMax + LIMITS.entryBytesMax);
    kv.releaseCommits();
    const doneCount = (await Promise.all(admitted)).filter(({ kind }) => kind === 'done').length;
    expect([doneCount, fatal.length]).toEqual([8, 0]);
  });

  test('an entry that the store would refuse ends its command, not the shard', async () => {
    const { execute } = await openNoteShards();
    const tooLarge = note('k', 'x'.repeat(LIMITS.entryBytesMax));
    await expect(execute('write-note', tooLarge)).rejects.toThrow('size');
    expect(await execute('write-note', note('k', 'small'))).toMatchObject(done({ replaced: null }));
  });
});

describe('failure of the store (R13, R20)', () => {
  test('everything pending and later is unknown, and the process is told once', async () => {
    const { kv, execute, query, fatal } = await openNoteShards({ shardCount: 2 });
    await execute('write-note', note('x'));
    kv.holdCommits();
    const written = execute('write-note', note('y'));
    const refused = execute('drop-note', { bucketId: 'b', key: 'z' });
    const other = execute('write-note', note('y'), { shard: 1 });
    await settle();
    kv.fail(new Error('the disk failed'));
    expect(await Promise.all([written, refused, other])).toEqual(Array(3).fill({ kind: 'unknown' }));
    expect(await execute('drop-note', { bucketId: 'b', key: 'z' })).toEqual({ kind: 'unknown' });
    expect(await query('read-note', { bucketId: 'b', key: 'x' })).toEqual({ kind: 'unknown' });
    expect(fatal.map(({ message }) => message)).toEqual(['the disk failed']);
  });

  test('an idle node is told as well', async () => {
    const { kv, fatal, execute } = await openNoteShards();
    kv.fail(new Error('the disk failed'));
    await settle();
    expect(fatal).toHaveLength(1);
    expect(await execute('write-note', note('x'))).toEqual({ kind: 'unknown' });
  });

  test('background work ends, too', async () => {
    const { kv, clock, shards } = await openNoteShards();
    const worker = shards.workers.find(({ name }) => name === 'keep-shard-time');
    clock.advance(3_600_000);
    kv.holdCommits();
    const working = worker?.work(new AbortController().signal) ?? Promise.reject(new Error('no worker'));
    expect(await isPending(working)).toBe(true);
    const closing = shards.close();
    expect(await isPending(closing)).toBe(true);
    kv.fail(new Error('the disk failed'));
    await Promise.all([working, closing]);
  });

  test('a bug in a command ends that call only', async () => {
    const { execute, fatal } = await openNoteShards();
    await expect(execute('break', {})).rejects.toThrow('a bug in a command');
    await expect(execute('no-such-command', {})).rejects.toThrow('unknown command');
    expect(await execute('write-note', note('x'))).toMatchObject(done({ kind: 'written' }));
    expect(fatal).toEqual([]);
  });
});

describe('bucket guard (R45)', () => {
  test('commands and queries with an outdated bucket are refused with its row', async () => {
    const { execute, query } = await openNoteShards();
    await execute('set-bucket', open);
    const read = { bucketId: 'b', key: 'x' };
    expect(await execute('write-note', note('x'), believed('b', 'red', 1))).toMatchObject(
      done({ kind: 'written' }),
    );
    expect(await query('read-note', read, believed('b', 'red', 1))).toMatchObject(done({ text: 'text' }));
    await execute('set-bucket', { ...open, name: 'blue', cfgVersion: 2 });
    const stale = { kind: 'stale-bucket', bucket: { name: 'blue', isOpen: true, cfgVersion: 2 } };
    expect(await execute('write-note', note('x'), believed('b', 'red', 1))).toMatchObject(stale);
    expect(await query('read-note', read, believed('b', 'red', 1))).toMatchObject(stale);
    expect(await query('read-note', read, believed('b', 'blue', 2))).toMatchObject(done({ text: 'text' }));
    const unknown = { kind: 'stale-bucket', bucket: null };
    expect(await query('read-note', read, believed('other', 'red', 1))).toMatchObject(unknown);
  });

  test('a command sees an appended change; a query sees committed ones only', async () => {
    const { kv, execute, query } = await openNoteShards();
    await execute('set-bucket', open);
    const list = ['list-notes', { bucketId: 'b', limit: 1 }, believed('b', 'red', 1)] as const;
    await query(...list);
    kv.holdCommits();
    const renamed = execute('set-bucket', { ...open, name: 'blue' });
    await settle();
    const refused = execute('write-note', note('x'), believed('b', 'red', 1));
    expect(await query(...list)).toMatchObject({ kind: 'done' });
    expect(await isPending(refused)).toBe(true);
    kv.releaseCommits();
    await renamed;
    expect(await refused).toMatchObject({ kind: 'stale-bucket' });
    expect(await query(...list)).toMatchObject({ kind: 'stale-bucket' });
  });
});

describe('counters', () => {
  test('are absolute rows: exact with many writers, and after a restart', async () => {
    const world = await openNoteShards();
    const count = async (shards: typeof world) => {
      const reply = await shards.query('list-notes', { bucketId: 'b', limit: 0 });
      return reply.kind === 'done' ? (reply.value as { count: number }).count : undefined;
    };
    await Promise.all(Array.from({ length: 50 }, (_, i) => world.execute('write-note', note(`k${i % 25}`))));
    expect(await count(world)).toBe(25);
    await world.execute('drop-note', { bucketId: 'b', key: 'k1' });
    await world.shards.close();
    const again = await world.reopen();
    await again.execute('write-note', note('another'));
    expect(await count(again)).toBe(25);
  });

  test('as a bound are exact: with many writers, after a restart, and when there is room again', async () => {
    const world = await openNoteShards();
    const write = (shards: typeof world, key: string) =>
      shards.execute('write-note', note(key, 'text', { notesMax: 10 }));
    world.kv.holdCommits();
    const writers = Array.from({ length: 30 }, (_, at) => write(world, `k${at}`));
    await settle();
    world.kv.releaseCommits();
    const kinds = (await Promise.all(writers)).map(
      (reply) => (reply as { value: { kind: string } }).value.kind,
    );
    expect(kinds).toEqual([...Array(10).fill('written'), ...Array(20).fill('full')]);
    await world.shards.close();
    const again = await world.reopen();
    expect(await write(again, 'more')).toMatchObject(done({ kind: 'full' }));
    await again.execute('drop-note', { bucketId: 'b', key: 'k0' });
    expect(await write(again, 'more')).toMatchObject(done({ kind: 'written' }));
  });

  test('a query sees committed ones only', async () => {
    const { kv, execute, query } = await openNoteShards();
    kv.holdCommits();
    const written = execute('write-note', note('x'));
    await settle();
    expect(await query('list-notes', { bucketId: 'b', limit: 0 })).toMatchObject(done({ count: 0 }));
    kv.releaseCommits();
    await written;
    expect(await query('list-notes', { bucketId: 'b', limit: 0 })).toMatchObject(done({ count: 1 }));
  });
});

describe('opening and closing', () => {
  test('a restart keeps committed entries, and takes a higher epoch', async () => {
    const before = await openNoteShards();
    await before.execute('write-note', note('x', 'kept'));
    before.kv.holdCommits();
    const lost = before.execute('write-note', note('x', 'lost'));
    await settle();
    before.kv.loseCommits();
    const after = await before.reopen();
    expect(await after.query('read-note', { bucketId: 'b', key: 'x' })).toMatchObject(done({ text: 'kept' }));
    expect(await isPending(lost)).toBe(true);
    const [first, second] = [before, after].map(({ shards }) => shards.status().shards[0]);
    expect(second?.epoch).toBe((first?.epoch ?? 0) + 1);
    expect(second?.committedSeq).toBe((first?.committedSeq ?? 0) + 1);
  });

  test('another number of shards is refused', async () => {
    const { kv } = await openNoteShards({ shardCount: 2 });
    await expect(openNoteShards({ kv, shardCount: 3 })).rejects.toThrow('made for 2 shards');
  });

  test('a coordinator that is behind the shard is refused (R23)', async () => {
    const { kv, clock } = await openNoteShards();
    const parts = {
      kv,
      machine: noteMachine,
      shardCount: 1,
      clock,
      random: createSeededRandom(2),
      onFatal() {},
    };
    const coordinator = { acquire: async () => ({ incarnation: 1, epoch: 1 }) };
    await expect(createShards({ ...parts, coordinator })).rejects.toThrow('behind');
  });

  test('closing answers admitted commands and takes no more', async () => {
    const { kv, execute, query, shards } = await openNoteShards();
    kv.holdCommits();
    const written = execute('write-note', note('x'));
    await settle();
    const closing = shards.close();
    expect(await execute('write-note', note('y'))).toEqual({ kind: 'unknown' });
    expect(await query('read-note', { bucketId: 'b', key: 'x' })).toEqual({ kind: 'unknown' });
    expect(await isPending(closing)).toBe(true);
    kv.releaseCommits();
    await closing;
    expect(await written).toMatchObject(done({ kind: 'written' }));
  });

  test('an idle shard writes its time now and then', async () => {
    const { clock, shards, query } = await openNoteShards();
    const worker = shards.workers.find(({ name }) => name === 'keep-shard-time');
    const askedMs = async () => {
      const reply = await query('read-note', { bucketId: 'b', key: 'x' });
      return reply.kind === 'done' ? reply.timeMs : undefined;
    };
    clock.advance(60_000);
    await worker?.work(new AbortController().signal);
    expect(await askedMs()).toBe(clock.wallMs() - 60_000);
    clock.advance(600_000);
    await worker?.work(new AbortController().signal);
    expect(await askedMs()).toBe(clock.wallMs());
  });
});

test('no batch leaves its shard: every stored row begins with the shard of its command', async () => {
  const kv = createMemoryKv(SHARD_COLUMNS);
  const seen = new Set<number>();
  const watched = {
    ...kv,
    commit(rows: Parameters<typeof kv.commit>[0]) {
      const shards = new Set(rows.map(({ key }) => Buffer.from(key).readUInt16BE(0)));
      expect(shards.size).toBe(1);
      for (const shard of shards) seen.add(shard);
      return kv.commit(rows);
    },
  };
  const { shards } = await openNoteShards({ kv: watched, shardCount: 4 });
  const loopback = createLoopbackMetadata({ metadata: shards, random: createSeededRandom(3) });
  for (let shard = 0; shard < 4; shard++)
    await loopback.execute({ shard }, 'write-note' as never, note('x') as never);
  expect([...seen].sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 0xffff]);
});

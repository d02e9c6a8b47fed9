import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isPending, settle } from '../../../tests/support/metadata/note-shards.ts';
import type { LockRequest } from '../../ports/state-machine.ts';
import { LockTable, mergeLocks } from './lock-table.ts';

const shared = (name: string): LockRequest => ({ name, mode: 'shared' });
const exclusive = (name: string): LockRequest => ({ name, mode: 'exclusive' });

test('shared holders run together, an exclusive one alone', async () => {
  const locks = new LockTable();
  expect(locks.acquire([shared('b')])).toBeUndefined();
  expect(locks.acquire([shared('b')])).toBeUndefined();
  const waiting = locks.acquire([exclusive('b')]);
  expect(waiting).toBeDefined();
  locks.release([shared('b')]);
  expect(await isPending(waiting ?? Promise.resolve())).toBe(true);
  locks.release([shared('b')]);
  await waiting;
  expect(locks.acquire([shared('b')])).toBeDefined();
});

test('a shared request waits behind a waiting exclusive one', async () => {
  const locks = new LockTable();
  locks.acquire([shared('b')]);
  const writer = locks.acquire([exclusive('b')]);
  const reader = locks.acquire([shared('b')]);
  expect(reader).toBeDefined();
  locks.release([shared('b')]);
  await writer;
  expect(await isPending(reader ?? Promise.resolve())).toBe(true);
  locks.release([exclusive('b')]);
  await reader;
});

test('all locks of a command are held at once, other names stay free', async () => {
  const locks = new LockTable();
  locks.acquire([exclusive('a')]);
  const both = locks.acquire([exclusive('a'), exclusive('b')]);
  // It holds b already, and keeps it while it waits for a.
  expect(locks.acquire([exclusive('b')])).toBeDefined();
  expect(locks.acquire([exclusive('c')])).toBeUndefined();
  locks.release([exclusive('a')]);
  await both;
});

test('requests are merged: one per name, the stronger one, in order', () => {
  expect(mergeLocks([shared('b'), exclusive('a'), exclusive('b'), shared('a')])).toEqual([
    exclusive('a'),
    exclusive('b'),
  ]);
  expect(mergeLocks([])).toEqual([]);
});

test('any mix of commands ends, in order of arrival where they conflict, and leaves nothing behind', async () => {
  const request = fc.record({
    name: fc.constantFrom('a', 'b', 'c'),
    mode: fc.constantFrom('shared' as const, 'exclusive' as const),
  });
  const commands = fc.array(fc.array(request, { minLength: 1, maxLength: 4 }), { maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(commands, fc.infiniteStream(fc.nat(5)), async (all, turns) => {
      const locks = new LockTable();
      const holders = new Map<string, { shared: number; exclusive: number }>();
      const started: number[] = [];
      await Promise.all(
        all.map(async (requests, index) => {
          const merged = mergeLocks(requests);
          await locks.acquire(merged);
          started.push(index);
          for (const { name, mode } of merged) {
            const held = holders.get(name) ?? { shared: 0, exclusive: 0 };
            held[mode]++;
            holders.set(name, held);
            expect(held.exclusive === 0 || held.exclusive + held.shared === 1).toBe(true);
          }
          for (let turn = turns.next().value ?? 0; turn > 0; turn--) await Promise.resolve();
          for (const { name, mode } of merged) (holders.get(name) ?? { shared: 0, exclusive: 0 })[mode]--;
          locks.release(merged);
        }),
      );
      await settle();
      expect(locks.size).toBe(0);
      const conflict = (a: number, b: number) =>
        all[a]?.some((x) =>
          all[b]?.some((y) => x.name === y.name && (x.mode !== 'shared' || y.mode !== 'shared')),
        );
      for (const [position, index] of started.entries())
        for (const later of started.slice(position + 1))
          if (conflict(index, later)) expect(index).toBeLessThan(later);
    }),
    { numRuns: 60 },
  );
});

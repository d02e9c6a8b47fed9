import { expect, test, vi } from 'vitest';
import { openHomeWorld } from '../../../tests/support/disks/home-world.ts';

test('shows missing copies by the number of copies, and the time that the repair will take', async () => {
  const home = await openHomeWorld();
  await home.newBlob('k1', 'ab', { chunks: 3 });
  await home.newBlob('k2', 'a', { chunks: 5 });
  await home.run('watch');
  const shown = (name: string) => home.gauges.get(name);
  expect([shown('holdfast_repair_entries 1'), shown('holdfast_chunks_to_repair 1')]).toEqual([1, 5]);
  expect([shown('holdfast_repair_entries 2'), shown('holdfast_chunks_to_repair 2')]).toEqual([1, 3]);
  expect(shown('holdfast_repair_left_seconds')).toBe(Number.POSITIVE_INFINITY);
  // Of one look no pace is known.
  expect(shown('holdfast_repair_chunks_per_second')).toBeUndefined();
  home.disk('c').mood = 'dead';
  await home.run('repair');
  home.world.clock.advance(10_000);
  await home.run('watch');
  expect(shown('holdfast_repair_entries 1')).toBe(0);
  expect(shown('holdfast_repair_chunks_per_second')).toBe(0);
  home.disk('c').mood = 'well';
  home.world.clock.advance(120_000);
  await home.run('repair');
  await home.run('watch');
  expect([shown('holdfast_repair_entries 2'), shown('holdfast_repair_left_seconds')]).toEqual([0, 0]);
  expect(shown('holdfast_repair_chunks_per_second')).toBeCloseTo(8 / 120, 3);
});

test('a shard that does not answer has not been repaired', async () => {
  const home = await openHomeWorld();
  await home.newBlob('k', 'a', { chunks: 5 });
  await home.run('watch');
  home.world.clock.advance(10_000);
  const query = vi.spyOn(home.world.shards, 'query').mockResolvedValue({ kind: 'unavailable' } as never);
  await home.run('watch');
  expect(home.gauges.get('holdfast_shards_unanswered debts')).toBe(1);
  query.mockRestore();
  home.world.clock.advance(10_000);
  await home.run('watch');
  expect(home.gauges.get('holdfast_shards_unanswered debts')).toBe(0);
  expect(home.gauges.get('holdfast_repair_left_seconds')).toBe(Number.POSITIVE_INFINITY);
});

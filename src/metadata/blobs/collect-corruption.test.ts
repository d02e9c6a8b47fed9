import { beforeEach, expect, test } from 'vitest';
import { chunkIds, DAY, type HomeWorld, openHomeWorld } from '../../../tests/support/disks/home-world.ts';
import { nameOf } from '../../../tests/support/disks/order-disks.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import { StaleMap } from '../../types/chunk-refusals.ts';

let home: HomeWorld;
beforeEach(async () => {
  home = await openHomeWorld();
});
type Data = Awaited<ReturnType<HomeWorld['newBlob']>>;
/** As its scrub found it. */
function damage(disk: string, data: Data, index = 0): void {
  damageChunk(disk, chunkIds(data)[index] as never);
}
function damageAll(disk: string, data: Data): void {
  for (const id of chunkIds(data)) damageChunk(disk, id);
}
function damageChunk(disk: string, id: ChunkId): void {
  home.disk(disk).stored.delete(nameOf(id));
  home.disk(disk).quarantined.add(nameOf(id));
}
const quarantinedOf = (disk: string) => [...home.disk(disk).quarantined];

test('a damaged copy gets a repair entry at once, is replaced, and then removed', async () => {
  const data = await home.newBlob('k', 'abc', { chunks: 2 });
  damage('b', data, 1);
  await home.run('damage');
  expect(await home.debts()).toEqual([2]);
  expect(quarantinedOf('b')).toHaveLength(1);
  await home.run('repair');
  expect([home.where(data), await home.debts(), quarantinedOf('b')]).toEqual([['abc', 'abc'], [], []]);
  expect(home.counts.get('holdfast_damaged_chunks_found_total')).toBe(1);
  expect(home.counts.get('holdfast_damaged_chunks_repaired_total')).toBe(1);
});

test('the last copy stays in quarantine while no disk has another', async () => {
  const data = await home.newBlob('k', 'a');
  damage('a', data);
  await home.run('damage', 'repair');
  expect([await home.debts(), quarantinedOf('a')]).toEqual([[0], [nameOf(chunkIds(data)[0] as never)]]);
});

test('a quarantined copy stays while an owner is away', async () => {
  const data = await home.newBlob('k', 'abc');
  home.disk('c').mood = 'dead';
  damage('b', data);
  await home.run('damage', 'repair');
  expect([home.where(data), quarantinedOf('b').length]).toEqual([['abc'], 1]);
  home.disk('c').mood = 'well';
  home.world.clock.advance(601_000);
  await home.run('repair', 'damage');
  expect([await home.debts(), quarantinedOf('b')]).toEqual([[], []]);
});

test('a damaged copy on a disk that does not own the chunk is removed, too', async () => {
  const data = await home.newBlob('k', 'abc');
  home.disk('e').quarantined.add(nameOf(chunkIds(data)[0] as never));
  await home.run('damage');
  expect([await home.debts(), quarantinedOf('e')]).toEqual([[], []]);
});

test('a copy left in quarantine beside the new one is removed when it is listed again', async () => {
  const data = await home.newBlob('k', 'abc');
  const name = nameOf(chunkIds(data)[0] as never);
  home.disk('b').quarantined.add(name);
  home.disk('c').rotten.add(name);
  await home.run('damage');
  expect(quarantinedOf('b')).toEqual([name]);
  home.world.clock.advance(601_000);
  await home.run('damage', 'repair');
  home.world.clock.advance(601_000);
  await home.run('damage');
  expect([home.where(data), quarantinedOf('b'), quarantinedOf('c')]).toEqual([['abc'], [], []]);
});

test('a recorded copy is not recorded again while it may be under repair, and is afterwards', async () => {
  const data = await home.newBlob('k', 'abc');
  damage('b', data);
  await home.run('damage');
  const mark = async () => (await home.world.query('list-debts', { limit: 1 })).debts[0]?.debt.mark;
  const first = await mark();
  home.world.clock.advance(30_000);
  await home.run('damage');
  expect(await mark()).toBe(first);
  home.world.clock.advance(600_000);
  await home.run('damage');
  expect(await mark()).not.toBe(first);
});

test('a copy that is damaged again after its replacement is recorded again soon', async () => {
  const data = await home.newBlob('k', 'abc');
  damage('b', data);
  await home.run('damage', 'repair');
  expect([await home.debts(), quarantinedOf('b')]).toEqual([[], []]);
  damage('b', data);
  home.world.clock.advance(60_000);
  await home.run('damage');
  expect(await home.debts()).toEqual([2]);
});

test('an owner that finds its own copy damaged during a proof gets a repair entry at once', async () => {
  const data = await home.newBlob('k', 'abc');
  const name = nameOf(chunkIds(data)[0] as never);
  home.disk('b').quarantined.add(name);
  home.disk('c').rotten.add(name);
  await home.run('damage');
  expect(await home.debts()).toEqual([2]);
});

test('copies that could not be recorded are listed again', async () => {
  const data = await home.newBlob('k', 'abc');
  damage('b', data);
  home.disk('c').onOrder = () => {
    home.disk('c').onOrder = () => {};
    throw new StaleMap(1);
  };
  await home.run('damage');
  expect(await home.debts()).toEqual([]);
  await home.run('damage');
  expect(await home.debts()).toEqual([2]);
});

test('an orphaned copy is removed, but not before it is certain', async () => {
  const data = home.world.newData({ sizeBytes: 10 });
  damage('b', data);
  await home.run('damage');
  expect(quarantinedOf('b')).toHaveLength(1);
  home.world.clock.advance(DAY + 600_001);
  await home.run('damage');
  expect(quarantinedOf('b')).toEqual([]);
});

test('a disk that does not answer does not delay the others', async () => {
  const data = await home.newBlob('k', 'abc');
  home.disk('a').mood = 'dead';
  damage('b', data);
  await home.run('damage');
  expect(await home.debts()).toEqual([1]);
});

test('damage behind thousands of copies that must stay is found as well', async () => {
  // Ten pages are collected in one round, and quarantined copies are removed only when all owners have proven theirs.
  const many = await home.newBlob('k', 'abc', { chunks: 5000 });
  home.world.clock.advance(5);
  const last = await home.newBlob('l', 'abc');
  home.disk('c').mood = 'dead';
  for (const data of [many, last]) damageAll('b', data);
  await home.run('damage');
  expect(await home.debts()).toEqual([1]);
  home.world.clock.advance(31_000);
  await home.run('damage');
  expect(await home.debts()).toEqual([1, 1]);
});

const nameAt = (data: Data, index = 0) => nameOf(chunkIds(data)[index] as never);

test('a copy that its disk cannot read is recorded, and rewritten from another', async () => {
  const data = await home.newBlob('k', 'abc', { chunks: 2 });
  home.disk('b').unread.add(nameAt(data, 1));
  await home.run('damage');
  expect(await home.debts()).toEqual([2]);
  await home.run('repair');
  expect([home.where(data), await home.debts()]).toEqual([['abc', 'abc'], []]);
  expect(home.disk('b').unread.size).toBe(0);
});

test('an unreadable copy on a disk that does not own the chunk is removed once all owners have proven theirs', async () => {
  const data = await home.newBlob('k', 'abc');
  const name = nameAt(data);
  home.disk('e').stored.set(name, Uint8Array.of(7));
  home.disk('e').unread.add(name);
  home.disk('c').rotten.add(name);
  await home.run('damage');
  expect(home.where(data)).toEqual(['abe']);
  await home.run('damage', 'repair');
  home.world.clock.advance(601_000);
  await home.run('damage');
  expect([home.where(data), await home.debts()]).toEqual([['abc'], []]);
});

test('an unreadable only copy is not lost, and stays', async () => {
  const data = await home.newBlob('k', 'a');
  home.disk('a').unread.add(nameAt(data));
  await home.run('damage', 'repair');
  expect([home.where(data), await home.debts()]).toEqual([['a'], [0]]);
  expect([...home.gauges].filter(([name]) => name.startsWith('holdfast_lost'))).toEqual([
    ['holdfast_lost_chunks', 0],
  ]);
  home.disk('a').unread.clear();
  home.world.clock.advance(601_000);
  await home.run('repair');
  expect([home.where(data), await home.debts()]).toEqual([['abc'], []]);
});

test('a failure to record some chunks does not delay those behind them', async () => {
  const first = await home.newBlob('k', 'abc', { chunks: 600 });
  damageAll('b', first);
  home.world.clock.advance(1000);
  const second = await home.newBlob('l', 'abc');
  damage('b', second);
  const { execute } = home.world.shards;
  let isFirst = true;
  home.world.shards.execute = async (envelope, name, command) => {
    if (name !== 'note-debts' || !isFirst) return execute.call(home.world.shards, envelope, name, command);
    isFirst = false;
    return { kind: 'unknown' };
  };
  await expect(home.run('damage')).rejects.toThrow();
  home.world.shards.execute = execute;
  const { debts } = await home.world.query('list-debts', { limit: 9 });
  expect(debts.map(({ blobId }) => blobId)).toContain(second.uses[0]?.blobId);
});

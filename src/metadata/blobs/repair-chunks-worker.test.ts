import { beforeEach, describe, expect, test } from 'vitest';
import { chunkIds, type HomeWorld, openHomeWorld } from '../../../tests/support/disks/home-world.ts';
import { nameOf } from '../../../tests/support/disks/order-disks.ts';
import { AppError } from '../../types/errors.ts';
import type { BlobId } from '../../types/names.ts';

let home: HomeWorld;
beforeEach(async () => {
  home = await openHomeWorld();
});
const first = (data: Awaited<ReturnType<HomeWorld['newBlob']>>) => nameOf(chunkIds(data)[0] as never);
const rest = () => home.world.clock.advance(120_000);

describe('a missing copy', () => {
  test('is fetched from a disk that has the chunk', async () => {
    const data = await home.newBlob('k', 'ab', { chunks: 3 });
    expect(await home.debts()).toEqual([2]);
    await home.run('repair');
    expect([home.where(data), await home.debts()]).toEqual([['abc', 'abc', 'abc'], []]);
    expect(home.counts.get('holdfast_repair_copies_total')).toBe(3);
  });

  test('is dropped elsewhere once all owners have read theirs', async () => {
    const data = await home.newBlob('k', 'ad');
    await home.run('repair');
    expect([home.where(data), await home.debts()]).toEqual([['abc'], []]);
    expect(home.disk('d').asked.at(-1)).toBe('dropMisplaced');
  });

  test('is found on disks that nobody has recorded', async () => {
    const data = await home.newBlob('k', 'abc');
    for (const disk of 'abc') home.disk(disk).stored.clear();
    home.disk('e').stored.set(first(data), Uint8Array.of(7));
    const debt = { copies: 0, ranges: [{ from: 0, to: 1, holders: [] }], mapVersion: 1 };
    await home.world.execute('note-debts', { debts: [{ blobId: data.uses[0]?.blobId as BlobId, ...debt }] });
    await home.run('repair');
    expect([home.where(data), await home.debts()]).toEqual([['abc'], []]);
  });

  test('of the chunk with the fewest copies is repaired first', async () => {
    const two = await home.newBlob('two', 'ab');
    const one = await home.newBlob('one', 'a');
    const seen: string[] = [];
    home.disk('c').onOrder = (what) => what === 'pull' && seen.push(home.where(one)[0] ?? '');
    home.disk('b').onOrder = home.disk('c').onOrder;
    await home.run('repair');
    expect(home.where(two)).toEqual(['abc']);
    expect(seen[0]).toBe('a');
  });

  test('of a blob with more chunks than a batch is repaired completely', async () => {
    const data = await home.newBlob('k', 'ab', { chunks: 1300 });
    await home.run('repair');
    expect([new Set(home.where(data)), await home.debts()]).toEqual([new Set(['abc']), []]);
  });
});

describe('turns', () => {
  test('a unit repairs few chunks, so that large blobs delay neither other shards nor more urgent chunks', async () => {
    const large = [
      await home.newBlob('l1', 'ab', { chunks: 500 }),
      await home.newBlob('l2', 'ab', { chunks: 500 }),
    ];
    const { state } = await home.workers.repair.work(new AbortController().signal);
    expect(state).toBe('busy');
    const wheres = large.map((data) => [...new Set(home.where(data))].join());
    expect(wheres.sort()).toEqual(['ab', 'abc']);
    home.world.clock.advance(11_000);
    const urgent = await home.newBlob('k', 'a');
    await home.workers.repair.work(new AbortController().signal);
    expect(home.where(urgent)).toEqual(['abc']);
    await home.run('repair');
    expect(await home.debts()).toEqual([]);
  });

  test('urgent chunks that cannot be repaired do not delay the others, however long turns take', async () => {
    const lost = await home.newBlob('lost', 'a', { chunks: 600 });
    for (const id of chunkIds(lost)) home.disk('a').stored.delete(nameOf(id));
    const data = await home.newBlob('k', 'ab');
    for (let count = 0; count < 4; count++) {
      await home.workers.repair.work(new AbortController().signal);
      home.world.clock.advance(11_000);
    }
    expect(home.where(data)).toEqual(['abc']);
  });

  test('a disk that stops during a repair is waited for a few times, not for each chunk', async () => {
    const data = await home.newBlob('k', 'ab', { chunks: 400 });
    let pulls = 0;
    home.disk('c').onOrder = (what) => {
      if (what !== 'pull') return;
      pulls++;
      throw new AppError('ServiceUnavailable');
    };
    await home.workers.repair.work(new AbortController().signal);
    expect(pulls).toBeLessThan(20);
    expect(new Set(home.where(data))).toEqual(new Set(['ab']));
  });

  test('a source that does not give is asked a few times if another one does', async () => {
    const data = await home.newBlob('k', 'ab', { chunks: 400 });
    let fromA = 0;
    const pull = home.disk('c').pull;
    home.disk('c').pull = async (chunk, order) => {
      if (chunk.from.diskId !== 'a') return pull(chunk, order);
      fromA++;
      throw new AppError('ServiceUnavailable');
    };
    await home.run('repair');
    expect([new Set(home.where(data)), await home.debts()]).toEqual([new Set(['abc']), []]);
    expect(fromA).toBeLessThan(20);
  });
});

describe('a disk that cannot take copies', () => {
  /** So that it is left alone for LIMITS.diskFullRestMaxMs. */
  async function fill(disks: string): Promise<void> {
    for (const disk of disks) home.disk(disk).mood = 'full';
    for (let count = 0; count < 8; count++) {
      home.world.clock.advance(20_000);
      const data = await home.newBlob(`full ${count}`, 'de');
      await home.run('repair');
      await home.world.put(`full ${count}`);
      expect(home.where(data)[0]).not.toContain(disks);
    }
  }

  test('is left alone: what is known of the chunk stays known', async () => {
    await fill('abc');
    const data = await home.newBlob('k', 'abc');
    const debt = { copies: 9, ranges: [{ from: 0, to: 1, holders: [] }], mapVersion: 1 };
    await home.world.execute('note-debts', { debts: [{ blobId: data.uses[0]?.blobId as BlobId, ...debt }] });
    home.world.clock.advance(5000);
    await home.run('repair');
    expect(await home.debts()).toContain(9);
  });

  test('because it is full: an owner that has lost its copy meanwhile is repaired all the same', async () => {
    await fill('c');
    const data = await home.newBlob('k', 'abd');
    home.disk('a').stored.delete(first(data));
    const debt = { copies: 1, ranges: [{ from: 0, to: 1, holders: ['b'] }], mapVersion: 1 };
    await home.world.execute('note-debts', { debts: [{ blobId: data.uses[0]?.blobId as BlobId, ...debt }] });
    home.world.clock.advance(5000);
    await home.run('repair');
    expect(home.where(data)).toEqual(['abd']);
  });

  test('because it is away: the entry stays, others are repaired, and it is repaired on its return', async () => {
    home.disk('c').mood = 'dead';
    const waits = await home.newBlob('waits', 'ab');
    const goes = await home.newBlob('goes', 'ad');
    await home.run('repair');
    expect([home.where(waits), home.where(goes)]).toEqual([['ab'], ['abd']]);
    expect(await home.debts()).toEqual([2, 3]);
    home.disk('c').mood = 'well';
    rest();
    await home.run('repair');
    expect([home.where(waits), home.where(goes), await home.debts()]).toEqual([['abc'], ['abc'], []]);
  });

  test('because it is away: a known holder is not asked again and again', async () => {
    home.disk('c').mood = 'dead';
    await home.newBlob('k', 'ab');
    await home.run('repair');
    home.disk('a').asked.length = 0;
    for (let count = 0; count < 20; count++) {
      home.world.clock.advance(10);
      await home.run('repair');
    }
    expect(home.disk('a').asked).toEqual([]);
  });

  test('because it is full: nothing is lost, and nothing dropped that it should have', async () => {
    home.disk('c').mood = 'full';
    const data = await home.newBlob('k', 'abd');
    await home.run('repair');
    expect([home.where(data), await home.debts()]).toEqual([['abd'], [3]]);
    expect(home.warnings).toEqual(['repair-disk-full']);
    home.disk('c').mood = 'well';
    rest();
    await home.run('repair');
    expect([home.where(data), await home.debts()]).toEqual([['abc'], []]);
  });

  test('with a bad copy: another source is used, and the bad copy replaced', async () => {
    const data = await home.newBlob('k', 'ab');
    home.disk('a').rotten.add(first(data));
    await home.run('repair');
    rest();
    await home.run('repair');
    expect([home.where(data), await home.debts()]).toEqual([['abc'], []]);
    expect([...home.disk('a').quarantined]).toEqual([]);
  });

  test('with a copy that turns out bad in its proof: the copy elsewhere stays', async () => {
    const data = await home.newBlob('k', 'abcd');
    for (const disk of 'bc') home.disk(disk).stored.delete(first(data));
    home.disk('a').rotten.add(first(data));
    const page = await home.world.query('list-debts', { limit: 1 });
    expect(page.debts).toHaveLength(1);
    await home.workers.repair.work(new AbortController().signal);
    expect(home.where(data)[0]).toContain('d');
    expect(home.disk('d').asked).not.toContain('dropMisplaced');
  });
});

test('an owner with a bad copy in its proof keeps the copy elsewhere alive', async () => {
  const data = await home.newBlob('k', 'abcd');
  home.disk('a').rotten.add(first(data));
  await home.workers.repair.work(new AbortController().signal);
  expect(home.where(data)).toEqual(['bcd']);
  await home.run('repair');
  expect([home.where(data), await home.debts(), [...home.disk('a').quarantined]]).toEqual([['abc'], [], []]);
});

describe('a chunk that no disk has', () => {
  test('is an alarm for as long as it is so, and never given up', async () => {
    const data = await home.newBlob('k', 'ab');
    for (const disk of 'ab') home.disk(disk).stored.clear();
    await home.run('repair');
    expect([await home.debts(), home.warnings, home.gauges.get('holdfast_lost_chunks')]).toEqual([
      [0],
      ['chunk-lost'],
      1,
    ]);
    for (let count = 0; count < 4; count++, rest()) await home.run('repair');
    expect(home.warnings).toEqual(['chunk-lost']);
    home.world.clock.advance(10 * 60_000);
    await home.run('repair');
    expect(home.warnings).toEqual(['chunk-lost', 'chunk-lost']);
    home.disk('e').stored.set(first(data), Uint8Array.of(7));
    rest();
    await home.run('repair');
    rest();
    await home.run('repair');
    expect([home.where(data), await home.debts()]).toEqual([['abc'], []]);
    expect(home.gauges.get('holdfast_lost_chunks')).toBe(0);
  });

  test('is reported by the primary of its shard only', async () => {
    await home.newBlob('k', 'ab');
    for (const disk of 'ab') home.disk(disk).stored.clear();
    await home.run('repair');
    expect(home.gauges.get('holdfast_lost_chunks')).toBe(1);
    home.leads = false;
    await home.run('repair');
    expect(home.gauges.get('holdfast_lost_chunks')).toBe(0);
  });

  test('is not called lost while a disk does not answer', async () => {
    await home.newBlob('k', 'ab');
    for (const disk of 'ab') home.disk(disk).stored.clear();
    home.disk('e').mood = 'dead';
    await home.run('repair');
    expect([await home.debts(), home.warnings]).toEqual([[0], []]);
  });
});

describe('an order', () => {
  test('by an outdated map drops nothing and resolves nothing', async () => {
    const data = await home.newBlob('k', 'abcd');
    let isFirst = true;
    home.disk('a').onOrder = (what) => {
      if (what !== 'inspect' || !isFirst) return;
      isFirst = false;
      home.changeOwners('abd');
    };
    await home.workers.repair.work(new AbortController().signal);
    expect([home.where(data), await home.debts()]).toEqual([['abcd'], [4]]);
    await home.run('repair');
    expect([home.where(data), await home.debts()]).toEqual([['abd'], []]);
  });

  test('by a map that changes during a drop keeps what new owners need', async () => {
    const data = await home.newBlob('k', 'abcd');
    home.disk('d').onOrder = (what) => {
      if (what === 'dropMisplaced' && home.placement.current().version === 1) home.changeOwners('bde');
    };
    await home.workers.repair.work(new AbortController().signal);
    expect(home.where(data)).toEqual(['abcd']);
    await home.run('repair');
    expect([home.where(data), await home.debts()]).toEqual([['bde'], []]);
  });

  test('in an old epoch does nothing', async () => {
    home.epoch = 2;
    const before = await home.newBlob('k1', 'ab');
    await home.run('repair');
    home.epoch = 1;
    const data = await home.newBlob('k2', 'abd');
    await home.run('repair');
    expect([home.where(before), home.where(data), await home.debts()]).toEqual([['abc'], ['abd'], [3]]);
  });
});

import { beforeEach, describe, expect, test } from 'vitest';
import {
  BUCKET,
  beginUpload,
  etagOf,
  type MetadataShards,
  type NewData,
  openMetadata,
  putPart,
} from '../../../tests/support/metadata/metadata-shards.ts';
import type { CommandOf } from '../../ports/metadata/port.ts';
import type { BlobId, ObjectKey } from '../../types/names.ts';
import type { PlacedChunks } from '../../types/repair-entries.ts';

const MiB = 1024 * 1024;
let world: MetadataShards;
beforeEach(async () => {
  world = await openMetadata();
  await world.createBucket();
});

function placed(sizeBytes: number, places: Omit<PlacedChunks, 'newestVersion'>): NewData {
  const data = world.newData({ sizeBytes });
  for (const birth of data.grant.births) birth.placed = { newestVersion: places.mapVersion, ...places };
  return data;
}
const blobOf = (data: NewData) => data.uses[0]?.blobId as BlobId;
const ranges = (to: number, ...holders: string[]) => [{ from: 0, to, holders }];
const list = async () => (await world.query('list-debts', { limit: 100 })).debts;
const counts = async () => (await world.query('count-debts', {})).debts;
const note = (data: NewData, copies: number, to = 3, ...holders: string[]) =>
  world.execute('note-debts', {
    debts: [{ blobId: blobOf(data), copies, ranges: ranges(to, ...holders), mapVersion: 1 }],
  });
async function settle(data: NewData, mark: string, left?: { copies: number; to: number }, mapVersion = 1) {
  const rest = left && { copies: left.copies, ranges: ranges(left.to), mapVersion };
  const debt = { blobId: blobOf(data), mark, ...(rest && { left: rest }) };
  return (await world.execute('settle-debts', { mapVersion, debts: [debt] })).count;
}
async function nothingFound(): Promise<void> {
  for (const table of ['debts', 'debtQueue'] as const) {
    const { findings } = await world.query('check-rows', { table, limit: 100, keyIds: [] });
    expect(findings).toEqual([]);
  }
  // Of the versions nothing is told: what is found are their counts alone.
  const { findings } = await world.query('check-counters', { counted: [] });
  expect(findings.filter(({ note = '' }) => note.includes('debt'))).toEqual([]);
}

describe('a new blob', () => {
  test('commits its repair entry in its own entry', async () => {
    const data = placed(3 * MiB, { mapVersion: 1, ranges: ranges(2, 'a', 'b') });
    await world.put('k', { data });
    expect(await list()).toEqual([
      {
        blobId: blobOf(data),
        sizeBytes: 3 * MiB,
        chunkSizeBytes: MiB,
        debt: {
          copies: 2,
          ranges: ranges(2, 'a', 'b'),
          mapVersion: 1,
          notedAtMs: world.clock.wallMs(),
          mark: expect.stringMatching(/^[0-9a-f]{16}$/),
        },
      },
    ]);
    expect(await counts()).toEqual([{ copies: 2, blobCount: 1, chunkCount: 2 }]);
    await nothingFound();
  });

  test('that is refused has none', async () => {
    await world.put('k');
    const data = placed(MiB, { mapVersion: 1, ranges: ranges(1, 'a') });
    const refused = await world.put('k', { data, conditions: { ifNoneMatch: '*' } });
    expect([refused.kind, await list()]).toEqual(['precondition-failed', []]);
  });

  test('of a part has one, too', async () => {
    const uploadId = await beginUpload(world, 'k');
    const data = placed(5 * MiB, { mapVersion: 1, ranges: ranges(5, 'a') });
    await putPart(world, { key: 'k', uploadId }, { partNumber: 1, data });
    expect(await counts()).toEqual([{ copies: 1, blobCount: 1, chunkCount: 5 }]);
    const parts = [{ partNumber: 1, etag: etagOf('part 1') }];
    const key = 'k' as ObjectKey;
    await world.execute('complete-upload', { bucketId: BUCKET, key, uploadId, parts });
    expect(await list()).toHaveLength(1);
  });

  test('by a map before the present audit is audited again, one by its map is not', async () => {
    await world.execute('note-audit', { step: 'begin', mapVersion: 7 });
    await world.put('old', { data: placed(2 * MiB, { mapVersion: 6, ranges: [] }) });
    await world.put('new', { data: placed(2 * MiB, { mapVersion: 7, ranges: [] }) });
    expect(await counts()).toEqual([{ copies: 9, blobCount: 1, chunkCount: 2 }]);
  });
});

describe('repair entries', () => {
  test('come fewest copies first, then the oldest, by pages', async () => {
    const blobs: BlobId[] = [];
    for (const [at, copies] of [2, 1, 2, 1].entries()) {
      const data = placed(MiB, { mapVersion: 1, ranges: [] });
      await world.put(`k${at}`, { data });
      await note(data, copies, 1);
      blobs.push(blobOf(data));
      world.clock.advance(1000);
    }
    const seen: BlobId[] = [];
    let page = await world.query('list-debts', { limit: 1 });
    for (;;) {
      seen.push(...page.debts.map(({ blobId }) => blobId));
      if (page.next === undefined) break;
      page = await world.query('list-debts', { limit: 1, after: page.next });
    }
    expect(seen).toEqual([blobs[1], blobs[3], blobs[0], blobs[2]]);
  });

  test('keep the time of their first record; fewer copies move them', async () => {
    const data = world.newData({ sizeBytes: 3 * MiB });
    await world.put('k', { data });
    await note(data, 2, 2, 'a');
    const firstMs = world.clock.wallMs();
    world.clock.advance(1000);
    await note(data, 1, 3, 'b');
    await note(data, 2, 1, 'c');
    const [debt] = await list();
    expect(debt?.debt).toMatchObject({ copies: 1, notedAtMs: firstMs });
    expect(debt?.debt.ranges.map(({ holders }) => holders.join())).toEqual(['a,b,c', 'a,b', 'b']);
    expect(await counts()).toEqual([{ copies: 1, blobCount: 1, chunkCount: 3 }]);
    await nothingFound();
  });

  test('are resolved only in the state that the repair saw', async () => {
    const data = world.newData({ sizeBytes: 3 * MiB });
    await world.put('k', { data });
    await note(data, 1);
    const seen = (await list())[0]?.debt.mark ?? '';
    await note(data, 1);
    expect([await settle(data, seen), (await list()).length]).toEqual([0, 1]);
    const mark = (await list())[0]?.debt.mark ?? '';
    expect([await settle(data, mark), await list(), await counts()]).toEqual([1, [], []]);
    await nothingFound();
  });

  test('of a newer map are not resolved by an older one', async () => {
    await world.execute('note-audit', { step: 'begin', mapVersion: 5 });
    const data = placed(3 * MiB, { mapVersion: 4, ranges: [] });
    await world.put('k', { data });
    const { mark = '' } = (await list())[0]?.debt ?? {};
    expect(await settle(data, mark, undefined, 4)).toBe(0);
    expect(await settle(data, mark, undefined, 5)).toBe(1);
  });

  test('may be resolved in part, and move in the queue', async () => {
    const data = world.newData({ sizeBytes: 3 * MiB });
    await world.put('k', { data });
    await note(data, 1);
    const { mark = '', notedAtMs } = (await list())[0]?.debt ?? {};
    world.clock.advance(1000);
    expect(await settle(data, mark, { copies: 2, to: 1 })).toBe(1);
    expect((await list())[0]?.debt).toMatchObject({ copies: 2, notedAtMs, ranges: ranges(1) });
    expect(await settle(data, mark)).toBe(0);
    await nothingFound();
  });

  test('of one blob, recorded twice in one command, are one', async () => {
    const data = world.newData({ sizeBytes: 3 * MiB });
    await world.put('k', { data });
    const blobId = blobOf(data);
    const debts = [
      { blobId, copies: 2, ranges: ranges(1, 'a'), mapVersion: 1 },
      { blobId, copies: 1, ranges: ranges(2, 'b'), mapVersion: 1 },
    ];
    await world.execute('note-debts', { debts });
    expect(await counts()).toEqual([{ copies: 1, blobCount: 1, chunkCount: 2 }]);
    await nothingFound();
  });

  test('of deleted data are removed, and none is recorded for it', async () => {
    const data = placed(3 * MiB, { mapVersion: 1, ranges: ranges(1, 'a') });
    await world.put('k', { data });
    await world.remove('k');
    const [{ debt }] = (await list()) as [Awaited<ReturnType<typeof list>>[0]];
    await world.markUnlinked();
    // Not when its rows go, minutes later: a status would tell of chunks in danger that nobody wants.
    expect(await counts()).toEqual([]);
    expect(await note(data, 0)).toEqual({ kind: 'noted', count: 0 });
    expect(await settle(data, debt.mark)).toBe(0);
    expect(await list()).toEqual([]);
    await world.execute('erase-blobs', { blobIds: [blobOf(data)] });
    expect(await counts()).toEqual([]);
    await nothingFound();
  });

  test('are pending work for fsck', async () => {
    await world.put('k', { data: placed(MiB, { mapVersion: 1, ranges: ranges(1, 'a') }) });
    const oldestAtMs = world.clock.wallMs();
    const { pending } = await world.query('count-pending', {});
    expect(pending).toContainEqual({ kind: 'debt', count: 1, oldestAtMs });
  });
});

describe('the audit', () => {
  const step = (command: CommandOf<'note-audit'>) => world.execute('note-audit', command);

  test('begins, continues where it was, and ends', async () => {
    expect(await world.query('get-audit', {})).toEqual({ audit: null });
    await step({ step: 'begin', mapVersion: 3 });
    const beganAtMs = world.clock.wallMs();
    const after = 'f'.repeat(32) as BlobId;
    world.clock.advance(1000);
    await step({ step: 'reach', mapVersion: 3, beganAtMs, after });
    expect((await world.query('get-audit', {})).audit).toEqual({
      mapVersion: 3,
      beganAtMs,
      after,
      isUnderWay: true,
    });
    await step({ step: 'end', mapVersion: 3, beganAtMs });
    const ended = { mapVersion: 3, beganAtMs, endedAtMs: world.clock.wallMs() };
    expect((await world.query('get-audit', {})).audit).toEqual({
      mapVersion: 3,
      beganAtMs,
      isUnderWay: false,
      ended,
    });
  });

  test('of an earlier map, or another beginning, records nothing', async () => {
    await step({ step: 'begin', mapVersion: 3 });
    const beganAtMs = world.clock.wallMs();
    world.clock.advance(1000);
    await step({ step: 'begin', mapVersion: 4 });
    expect(await step({ step: 'end', mapVersion: 3, beganAtMs })).toEqual({ kind: 'gone' });
    expect(await step({ step: 'end', mapVersion: 4, beganAtMs })).toEqual({ kind: 'gone' });
    expect(await step({ step: 'begin', mapVersion: 3 })).toEqual({ kind: 'gone' });
  });

  test('lists live data in chunks only, by pages of rows', async () => {
    const wanted: BlobId[] = [];
    for (let at = 0; at < 5; at++) {
      const data = world.newData({ sizeBytes: MiB });
      await world.put(`k${at}`, { data });
      await world.put(`i${at}`, { data: world.newData({ storage: 'inline', sizeBytes: 5 }) });
      wanted.push(blobOf(data));
      world.clock.advance(1);
    }
    await world.remove('k0');
    await world.markUnlinked();
    const seen: BlobId[] = [];
    for (let after: BlobId | undefined; ; ) {
      const page = await world.query('list-blobs', { limit: 2, ...(after && { after }) });
      seen.push(...page.blobs.map(({ blobId }) => blobId));
      after = page.next;
      if (after === undefined) break;
    }
    expect(seen).toEqual(wanted.slice(1));
  });
});

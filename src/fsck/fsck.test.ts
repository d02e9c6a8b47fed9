// Every kind of damage, planted beneath sound shards, is found and named; and what only waits for its turn is not.
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { DATA_DAMAGES } from '../../tests/support/fsck/fsck-data-damages.ts';
import { OUTCOME_DAMAGES } from '../../tests/support/fsck/fsck-outcome-damages.ts';
import { RETENTION_DAMAGES } from '../../tests/support/fsck/fsck-retention-damages.ts';
import { ROW_DAMAGES } from '../../tests/support/fsck/fsck-row-damages.ts';
import { type FsckWorld, openFsckWorld } from '../../tests/support/fsck/fsck-world.ts';
import { kek } from '../../tests/support/metadata/metadata-shards.ts';
import { CHUNK_BYTES } from '../../tests/support/objects/object-world.ts';
import { toHex } from '../base/bytes/bytes.ts';
import { dataKey } from '../chunks/disk/keyspace.ts';
import { UserSearch } from '../metadata/blobs/search-users.ts';
import { linkRow, TABLES } from '../metadata/schema/keyspace.ts';
import type { KeyMove } from '../ports/metadata/moves.ts';
import type { MetadataPort } from '../ports/metadata/port.ts';
import { FINDINGS } from '../types/findings.ts';
import { type BlobId, homeShardOf, type ObjectKey } from '../types/names.ts';
import { blobCodec, linkCodec } from '../types/records/rows.ts';
import { COMPARED_TABLES, compareAll } from './compare-all.ts';
import { compareLinks } from './compare-links.ts';
import { createFsck } from './fsck.ts';
import { nameDamage } from './name-damage.ts';
import { FsckRun } from './run.ts';

const DAMAGES = [...DATA_DAMAGES, ...ROW_DAMAGES, ...RETENTION_DAMAGES, ...OUTCOME_DAMAGES];

const OPTIONS = { readData: false, fullSpeed: false };

const keyIds = () => [...world.masterKeyIds(), kek.keyId];

let world: FsckWorld;
beforeAll(async () => {
  world = await openFsckWorld();
});
afterEach(() => world.mend());

test('what is sound is clean, and what is under way is told apart', async () => {
  const { findings, pending, run } = await world.fsck({ readData: true });
  expect(findings).toEqual([]);
  expect(pending).toEqual(['condemned-blob 1', 'pending-claim 4']);
  expect(run.progress).toMatchObject({ chunkCount: 22, bodyCount: 11 });
  expect(run.progress.readBytes).toBeGreaterThan(21 * CHUNK_BYTES);
});

describe('damage', () => {
  test.each(DAMAGES)('%s', async (_, counts, plant) => {
    const places = await plant(world);
    const { findings, run } = await world.fsck({ readData: true });
    expect(Object.fromEntries(run.counts), JSON.stringify(findings, undefined, 2)).toEqual(counts);
    for (const [kind, place] of places) {
      expect(findings).toContainEqual(expect.objectContaining({ kind, ...place }));
    }
  });
});

test('no kind is without its damage', () => {
  const planted = DAMAGES.flatMap(([, counts]) => Object.keys(counts));
  expect([...new Set(planted)].sort()).toEqual(Object.keys(FINDINGS).sort());
});

test('a young chunk that nothing leads to is work under way', async () => {
  const id = { blobId: world.newBlobId(3600_000), index: 0 };
  await world.chunks.put(id, Uint8Array.of(1));
  const { findings, pending } = await world.fsck();
  expect(findings).toEqual([]);
  expect(pending).toContain('unlinked-chunk 1');
  await world.chunks.drop([id], { shard: 0, incarnation: 1, epoch: 1 });
});

test('without reading data a flipped bit stays unseen', async () => {
  const { use } = await world.seen('chunked', 1);
  await world.plantChunk('data', dataKey({ blobId: use.blobId, index: 0 }), new Uint8Array(CHUNK_BYTES + 32));
  expect((await world.fsck()).findings).toEqual([]);
  const { findings } = await world.fsck({ readData: true });
  expect(findings.map(({ kind }) => kind)).toEqual(['chunk-damaged', 'object-damaged']);
});

test('every version and part that uses damaged data is named, through pages of a manifest too', async () => {
  const { use, place } = await world.seen('five');
  await world.plantChunk('data', dataKey({ blobId: use.blobId, index: 0 }), null);
  const { findings } = await world.fsck({ readData: true });
  const named = findings.filter(({ kind }) => kind === 'object-damaged');
  expect(named).toContainEqual({ kind: 'object-damaged', ...place, blob: use.blobId });
  expect(named).toContainEqual({ kind: 'object-damaged', ...place, key: 'paged', blob: use.blobId });
  expect(new Set(named.map((one) => JSON.stringify(one))).size).toBe(named.length);
});

test('a search that links lead names the same ones as a pass over all versions', async () => {
  const all = await Promise.all([0, 1, 2].map((shard) => world.rows('blobs', shard)));
  const data = all.flat().filter(({ value }) => blobCodec.decode(value).kind === 'data');
  const blobs = data.map(({ key }) => toHex(key) as BlobId);
  const { run } = await world.fsck();
  for (const blobId of blobs) run.lostBlobs.add(blobId);
  await nameDamage(run);
  const places = run.findings.flatMap(({ kind, shard: _shard, ...place }) =>
    kind === 'object-damaged' ? [JSON.stringify(place)] : [],
  );
  const found: string[] = [];
  for (const blobId of blobs) {
    const search = new UserSearch(world.metadata.shards, { shard: homeShardOf(blobId), blobIds: [blobId] });
    for (let step = await search.step(); step.kind !== 'end'; step = await search.step())
      if (step.kind === 'found')
        for (const { place } of step.users) found.push(JSON.stringify({ ...place, blob: blobId }));
  }
  expect(found.length).toBeGreaterThan(20);
  expect(found.sort()).toEqual(places.sort());
});

test('links are compared in windows of any size', async () => {
  const { use } = await world.seen('chunked', 2);
  const link = world.metadata.newLinkId();
  await world.plant(linkRow(use.blobId, link), linkCodec.encode({ state: 'own', shard: 2 }), 2);
  const { run } = await world.fsck();
  const before = run.findings.length;
  const usage = await compareLinks(run, 2, 1);
  expect(run.findings.slice(before)).toEqual([{ kind: 'link-orphaned', shard: 2, blob: use.blobId, link }]);
  expect(usage).toMatchObject([{ objectCount: 5 }]);
});

test('a version that is renamed from what is still to be walked to what was walked is held as before', async () => {
  const { shards, clock, execute } = world.metadata;
  const { bucketId, key: from } = await world.seen('inline', 1);
  const to = `!${from}` as ObjectKey;
  const move = (keys: KeyMove) => execute('move-key', { bucketId, move: keys, overwrites: false }, 1);
  let walkedCount = 0;
  const query: MetadataPort['query'] = async (at, name, asked) => {
    if (at.shard !== 1 || !('table' in asked) || asked.table !== 'objects')
      return shards.query(at, name, asked);
    if (walkedCount++ === 1) await move({ from, to });
    return shards.query(at, name, { ...asked, limit: 1 });
  };
  const metadata = { ...shards, shardCount: 3, query };
  const { signal } = new AbortController();
  const run = new FsckRun({ metadata, chunks: world.chunks, clock, keyIds }, OPTIONS, signal);
  await compareLinks(run, 1);
  expect(walkedCount).toBeGreaterThan(2);
  expect(run.findings).toEqual([]);
  await move({ from: to, to: from });
});

describe('one at a time', () => {
  /** A comparison that stands still in its first query, until it is let go or cancelled. */
  function stalled() {
    const { clock, shards } = world.metadata;
    const gate = Promise.withResolvers<void>();
    const query: MetadataPort['query'] = async (...args) => {
      await gate.promise;
      return shards.query(...args);
    };
    const events: string[] = [];
    const note = (_: object, event: string) => void events.push(event);
    const log = { debug: note, info: note, warn: note, error: note };
    const metadata = { shardCount: 3, query, execute: shards.execute };
    return {
      fsck: createFsck({ metadata, chunks: world.chunks, clock, log, keyIds }),
      go: gate.resolve,
      events,
    };
  }

  test('a second one is refused while the first runs', async () => {
    const { fsck, go, events } = stalled();
    const id = fsck.begin(OPTIONS);
    expect(() => fsck.begin(OPTIONS)).toThrow('A comparison is under way.');
    expect(fsck.look(id, 0)).toMatchObject({ state: 'running', findings: [], pending: [] });
    expect(() => fsck.look(id + 1, 0)).toThrow('There is no such comparison.');
    go();
    await expect.poll(() => fsck.look(id, 0).state).toBe('done');
    expect(fsck.look(id, 0)).toMatchObject({ counts: {}, readData: false });
    expect(events).toEqual(['fsck-ended']);
    expect(fsck.begin(OPTIONS)).toBe(id + 1);
    await fsck.stop();
    expect(fsck.look(id + 1, 0).state).toBe('cancelled');
  });

  test('it ends when it is cancelled', async () => {
    const { fsck, go } = stalled();
    const id = fsck.begin(OPTIONS);
    fsck.cancel(id);
    go();
    await expect.poll(() => fsck.look(id, 0).state).toBe('cancelled');
  });

  test('it ends when nobody looks any more', async () => {
    const { fsck, go } = stalled();
    const id = fsck.begin(OPTIONS);
    world.metadata.clock.advance(31_000);
    go();
    await expect.poll(() => fsck.look(id, 0).state).toBe('cancelled');
  });
});

test('a shard that does not answer: it cannot be said', async () => {
  const { shards, clock } = world.metadata;
  const query = async () => ({ kind: 'unknown' }) as const;
  const metadata = { shardCount: 3, query, execute: shards.execute };
  const { signal } = new AbortController();
  const run = new FsckRun({ metadata, chunks: world.chunks, clock, keyIds }, OPTIONS, signal);
  await expect(compareAll(run)).rejects.toThrow('shard 0 does not answer (unknown)');
});

test.each([
  ['rests four times as long as it worked', false, 400],
  ['takes no rests at full speed', true, 0],
])('%s', async (_, fullSpeed, restedMs) => {
  let [nowMs, sleptMs, turns] = [0, 0, 0];
  const clock = {
    ...world.metadata.clock,
    monotonicMs: () => nowMs,
    async sleep(ms: number) {
      sleptMs += ms;
      turns++;
    },
  };
  const deps = { metadata: world.metadata.shards, chunks: world.chunks, clock, keyIds };
  const run = new FsckRun(deps, { readData: false, fullSpeed }, new AbortController().signal);
  const work = async () => {
    nowMs += 10;
  };
  for (let turn = 0; turn < 11; turn++) await run.paced(work);
  expect([sleptMs, turns]).toEqual([restedMs, 10]);
});

test('every table is compared', () => {
  const apart = ['bodies', 'pieces', 'ticks', 'history', 'homeHistories', 'scans'];
  const tables = Object.keys(TABLES).filter((name) => !apart.includes(name));
  expect([...COMPARED_TABLES].sort()).toEqual(tables.sort());
});

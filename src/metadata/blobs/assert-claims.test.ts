import { beforeEach, describe, expect, test } from 'vitest';
import {
  BUCKET,
  BUCKET_NAME,
  dataOf,
  etagOf,
  type MetadataShards,
  type NewData,
  OWNER,
} from '../../../tests/support/metadata/metadata-shards.ts';
import {
  type Background,
  DAY,
  MINUTE,
  openBackground,
} from '../../../tests/support/metadata/metadata-workers.ts';
import { must } from '../../base/assert.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BlobId, ObjectKey } from '../../types/names.ts';
import { NO_ORIGINALS } from '../../types/originals.ts';
import { foreignCodec } from '../../types/records/rows.ts';
import { COPIES_UNKNOWN } from '../../types/repair-entries.ts';
import { ENGINE_TABLES, rowKey } from '../engine/row-keys.ts';
import { blobRow, foreignRow, HISTORY_ROW, linkRow } from '../schema/keyspace.ts';
import { historyRow } from './history.ts';

const HOME = 1;
/** Holds a copy of what HOME has. */
const HOLDER = 0;

let world: MetadataShards;
let background: Background;
let data: NewData;
const blobOf = ({ uses }: NewData) => uses[0]?.blobId as BlobId;
const run: Background['run'] = (...names) => background.run(...names);

beforeEach(async () => {
  background = await openBackground(2);
  ({ world } = background);
  await world.execute('create-bucket', { bucketId: BUCKET, name: BUCKET_NAME, owner: OWNER }, HOME);
  data = await background.newStored(1, HOME);
  const { sizeBytes, manifest, grant } = data;
  const version = { sizeBytes, manifest, etag: etagOf('src'), owner: OWNER, originals: NO_ORIGINALS };
  const source = { bucketId: BUCKET, key: 'src' as ObjectKey, version, data: grant };
  await world.execute('commit-version', source, HOME);
});

async function claim(): Promise<NewData> {
  const linkId = world.newLinkId();
  const outcome = await world.execute(
    'claim-links',
    { shard: HOLDER, linkId, blobIds: [blobOf(data)] },
    HOME,
  );
  if (outcome.kind !== 'claimed') throw new Error(outcome.kind);
  const uses = data.uses.map((use) => ({ ...use, linkId }));
  const links = [{ blobId: blobOf(data), linkId, claim: outcome.layouts[0] as never }];
  return dataOf(uses, { births: [], links });
}

async function removeSource(): Promise<void> {
  const command = { bucketId: BUCKET, owner: OWNER, items: [{ key: 'src' as ObjectKey }] };
  await world.execute('delete-versions', command, HOME);
}

/** What a history begins with that one replica had left: `lost` rows of HOME are gone, and it knows that it may be so. */
async function loseHistory(lost: { table: { id: number; column: 'rows' | 'bodies' }; key: Uint8Array }[]) {
  const { table, key } = HISTORY_ROW;
  await world.kv.commit([
    ...lost.map((row) => ({ column: row.table.column, key: rowKey(HOME, row.table, row.key), value: null })),
    { column: 'rows', key: rowKey(HOME, table, key), value: historyRow.begin(2, world.clock.wallMs()) },
  ]);
}

const linkOf = ({ uses }: NewData) => linkRow(blobOf(data), uses[0]?.linkId as never);

async function allElse(): Promise<void> {
  await run('mark', 'deliver', 'mark');
  world.clock.advance(11 * MINUTE);
  await run('release');
}

const confirm = (shard = HOME) => world.execute('confirm-history', {}, shard);
const historyOf = async (shard = HOME) => (await world.query('get-history', {}, shard)).history;

describe('a home that has lost the end of its history', () => {
  test('marks and erases nothing before the operator has confirmed it', async () => {
    await removeSource();
    await run('mark');
    world.clock.advance(11 * MINUTE);
    await loseHistory([]);
    const second = await background.newStored(1, HOME);
    await world.execute(
      'commit-version',
      {
        bucketId: BUCKET,
        key: 'src' as ObjectKey,
        version: {
          sizeBytes: 1,
          manifest: second.manifest,
          etag: etagOf('two'),
          owner: OWNER,
          originals: NO_ORIGINALS,
        },
        data: second.grant,
      },
      HOME,
    );
    await removeSource();
    await allElse();
    expect(await background.chunksLeft()).toBe(2);
    const command = { blobIds: [blobOf(data)] };
    expect(await world.execute('erase-blobs', command, HOME)).toEqual({ kind: 'unconfirmed' });
    await run('assert');
    await allElse();
    expect(await background.chunksLeft()).toBe(2);
    expect(await confirm()).toMatchObject({ kind: 'confirmed', history: { assertedBy: [0, 1] } });
    await allElse();
    expect(await background.chunksLeft()).toBe(0);
  });

  test('learns lost links and blobs again from the shards that hold them', async () => {
    const copy = await claim();
    await world.put('copy', { data: copy });
    const blobId = blobOf(data);
    await loseHistory([
      blobRow(blobId),
      linkOf(copy),
      linkOf(data),
      { table: ENGINE_TABLES.counters, key: Buffer.from('x') },
    ]);
    await run('assert');
    expect(await historyOf()).toMatchObject({ linkCount: 1, blobCount: 1, assertedBy: [0, 1] });
    const { blobs } = await world.query('get-blobs', { blobIds: [blobId] }, HOME);
    expect(blobs).toEqual([{ kind: 'data', isShared: true, ...layoutOf(data) }]);
    expect(await linksOf(copy)).toEqual([{ state: 'confirmed', shard: HOLDER }]);
    expect((await confirm()).kind).toBe('confirmed');
    await allElse();
    expect(await background.chunksLeft()).toBe(1);
    await world.remove('copy');
    await allElse();
    expect(await background.chunksLeft()).toBe(0);
  });

  test('reverts a mark for deletion that is in its last entries and not in others’', async () => {
    const copy = await claim();
    await world.put('copy', { data: copy });
    // In the history that was given up the claim came before the deletion of the source; here it was not there.
    await loseHistory([linkOf(copy)]);
    await world.kv.commit([
      { column: 'rows', key: rowKey(HOME, HISTORY_ROW.table, HISTORY_ROW.key), value: null },
    ]);
    await removeSource();
    const blob = await world.query('get-blobs', { blobIds: [blobOf(data)] }, HOME);
    expect(blob.blobs[0]?.isShared).toBe(true);
    await run('mark');
    expect((await world.query('list-condemned', { olderThanMs: 0, limit: 9 }, HOME)).totalCount).toBe(1);
    await loseHistory([]);
    await run('assert');
    expect((await confirm()).kind).toBe('confirmed');
    expect((await world.query('list-condemned', { olderThanMs: 0, limit: 9 }, HOME)).totalCount).toBe(0);
    // No audit has found it meanwhile.
    const { debts } = await world.query('list-debts', { limit: 9 }, HOME);
    expect(debts).toMatchObject([{ blobId: blobOf(data), debt: { copies: COPIES_UNKNOWN } }]);
    await allElse();
    expect(await background.chunksLeft()).toBe(1);
  });

  test('no commit uses an earlier claim once its holder has asserted everything', async () => {
    const late = await claim();
    await loseHistory([linkOf(late)]);
    await run('assert');
    expect((await confirm()).kind).toBe('confirmed');
    expect(await world.put('late', { data: late })).toEqual({ kind: 'gone', blobIds: [blobOf(data)] });
    expect((await world.put('again', { data: await claim() })).kind).toBe('committed');
  });

  test.each([
    ['', 0],
    [', nor if it was made before what was looked at', 4],
  ])('a claim that was released while it was told does not stay%s', async (_, halfDays) => {
    const copy = await claim();
    await world.put('copy', { data: copy });
    // A longer jump is not believed at once.
    for (let passed = 0; passed < halfDays; passed++) {
      world.clock.advance(DAY / 2);
      await world.execute('tick', {}, HOME);
    }
    await loseHistory([linkOf(copy)]);
    await run('resolve');
    const held = [
      {
        blobId: blobOf(data),
        linkId: copy.uses[0]?.linkId as never,
        layout: { kind: 'data' as const, ...layoutOf(data) },
      },
    ];
    // Told, then released, then told again by a message that was late.
    await world.remove('copy');
    await run('mark', 'deliver');
    await world.execute('assert-links', { shard: HOLDER, claims: held }, HOME);
    await run('assert');
    expect((await confirm()).kind).toBe('confirmed');
    await removeSource();
    // Once a day all of them are looked at.
    world.clock.advance(LIMITS.linkIdAgeMaxMs + DAY);
    await run('resolve', 'resolve');
    await allElse();
    expect(await background.chunksLeft()).toBe(0);
  });

  /** What befalls before the next command or query of this name. */
  function justBefore(name: string, act: () => Promise<unknown>): void {
    const { execute, query } = world.shards;
    const isNow = (asked: string) => {
      if (asked !== name) return false;
      Object.assign(world.shards, { execute, query });
      return true;
    };
    world.shards.execute = async (envelope, asked, command) => {
      if (isNow(asked)) await act();
      return execute(envelope, asked, command);
    };
    world.shards.query = async (envelope, asked, query_) => {
      if (isNow(asked)) await act();
      return query(envelope, asked, query_);
    };
  }

  async function giveBack(): Promise<void> {
    await world.remove('copy');
    await run('mark', 'deliver');
  }

  test('an assertion confirms no later claim with the same id', async () => {
    const copy = await claim();
    await world.put('copy', { data: copy });
    await loseHistory([linkOf(copy)]);
    justBefore('settle-claims', async () => {
      await giveBack();
      // A message that was sent twice.
      const { linkId } = must(copy.uses[0], 'one');
      await world.execute('claim-links', { shard: HOLDER, linkId, blobIds: [blobOf(data)] }, HOME);
    });
    await run('assert');
    expect(await linksOf(copy)).toMatchObject([{ state: 'pending', shard: HOLDER }]);
    expect((await confirm()).kind).toBe('confirmed');
    await removeSource();
    world.clock.advance(LIMITS.linkIdAgeMaxMs + 1);
    await run('resolve');
    expect(await linksOf(copy)).toEqual([null]);
    await allElse();
    expect(await background.chunksLeft()).toBe(0);
  });

  test('a pending claim is confirmed by what its holder has when it is asked', async () => {
    const copy = await claim();
    await world.put('copy', { data: copy });
    await loseHistory([]);
    justBefore('assert-links', giveBack);
    await run('assert');
    expect(await linksOf(copy)).toMatchObject([{ state: 'pending', shard: HOLDER }]);
    const again = await claim();
    await world.put('copy', { data: again });
    expect(await linksOf(again)).toMatchObject([{ state: 'pending' }]);
    await loseHistory([]);
    await run('assert');
    expect(await linksOf(again)).toEqual([{ state: 'confirmed', shard: HOLDER }]);
  });

  test('a link that is not held any more is dropped only when no commit can use it (R30)', async () => {
    const copy = await claim();
    await world.put('copy', { data: copy });
    await loseHistory([linkOf(copy)]);
    justBefore('resolve-claims', async () => {
      await world.remove('copy');
      await run('mark');
    });
    await run('assert');
    expect(await linksOf(copy)).toMatchObject([{ state: 'pending', shard: HOLDER }]);
    await run('deliver');
    expect(await linksOf(copy)).toEqual([null]);
  });

  test('cannot be confirmed before all have asserted, and need not be twice', async () => {
    await loseHistory([]);
    expect(await confirm()).toEqual({ kind: 'waiting', shards: [0, 1] });
    const { history } = await world.query('get-history', {}, HOME);
    const incarnation = must(history, 'it began anew').incarnation;
    // Of a former history: what is late.
    await world.execute('note-asserted', { shard: 1, incarnation: incarnation - 1 }, HOME);
    expect(await confirm()).toEqual({ kind: 'waiting', shards: [0, 1] });
    await world.execute('note-asserted', { shard: 1, incarnation }, HOME);
    expect(await confirm()).toEqual({ kind: 'waiting', shards: [0] });
    await run('assert');
    expect((await confirm()).kind).toBe('confirmed');
    expect(await confirm()).toEqual({ kind: 'no-doubt' });
    expect(await confirm(HOLDER)).toEqual({ kind: 'no-doubt' });
  });

  test('is not asked by a sweep about blobs that it does not know', async () => {
    await loseHistory([blobRow(blobOf(data))]);
    expect(await world.query('get-blobs', { blobIds: [blobOf(data)] }, HOME)).toEqual({
      blobs: [null],
      isUnconfirmed: true,
    });
  });
});

describe('a holder that has lost the end of its history', () => {
  /** HOLDER has forgotten that it gave its claim back, and HOME has not. */
  async function holdAgain(): Promise<NewData> {
    const copy = await claim();
    await world.put('copy', { data: copy });
    const foreign = rowKey(HOLDER, foreignRow(blobOf(data)).table, foreignRow(blobOf(data)).key);
    const link = rowKey(HOLDER, linkOf(copy).table, linkOf(copy).key);
    const [foreignValue, linkValue] = await world.kv.getMany('rows', [foreign, link]);
    await world.remove('copy');
    await run('mark', 'deliver', 'mark');
    await world.kv.commit([
      { column: 'rows', key: foreign, value: foreignValue ?? null },
      { column: 'rows', key: link, value: linkValue ?? null },
      {
        column: 'rows',
        key: rowKey(HOLDER, HISTORY_ROW.table, HISTORY_ROW.key),
        value: historyRow.begin(2, world.clock.wallMs()),
      },
    ]);
    return copy;
  }

  test('claims what it holds again, where the data still exists', async () => {
    const copy = await holdAgain();
    expect(await linksOf(copy)).toEqual([null]);
    await run('assert');
    expect(await linksOf(copy)).toEqual([{ state: 'confirmed', shard: HOLDER }]);
    expect(background.warnings).toEqual([]);
  });

  test('learns which blobs are gone', async () => {
    const copy = await holdAgain();
    await removeSource();
    await allElse();
    expect(await background.chunksLeft()).toBe(0);
    await run('assert');
    expect(await linksOf(copy)).toEqual([null]);
    expect((await world.query('get-blobs', { blobIds: [blobOf(data)] }, HOME)).blobs).toEqual([null]);
    expect(background.warnings).toEqual(['held-blobs-are-gone']);
  });
});

test('claims name the history of their home', async () => {
  expect((await claim()).uses).toHaveLength(1);
  await loseHistory([]);
  const copy = await claim();
  await world.put('copy', { data: copy });
  const { table, key } = foreignRow(blobOf(data));
  const [row] = await world.kv.getMany('rows', [rowKey(HOLDER, table, key)]);
  expect(row && foreignCodec.decode(row)).toMatchObject({ homeShard: HOME, incarnation: 2 });
});

function layoutOf({ uses: [use] }: NewData) {
  if (use === undefined) throw new Error('no use');
  const { sizeBytes, storage, chunkSizeBytes } = use;
  return { sizeBytes, storage, chunkSizeBytes };
}

async function linksOf({ uses }: NewData) {
  const links = uses.map(({ linkId }) => ({ blobId: blobOf(data), linkId }));
  return (await world.query('get-links', { links }, HOME)).links;
}

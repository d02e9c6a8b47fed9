// What is charged of compositions and of what was appended to, against a calculation of its own: random changes over many days,
// with the worker that closes days. Each piece of data is charged once on each day: by the object that it came with, as deleted
// until its minimum duration has passed, then as orphaned for as long as a composition keeps it.
import { expect, test } from 'vitest';
import {
  BUCKET,
  etagOf,
  kek,
  type MetadataShards,
  OWNER,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { runUntilIdle } from '../../../tests/support/metadata/run-worker.ts';
import { createSeededRandom } from '../../../tests/support/run/simulated.ts';
import { createUsages } from '../../accounts/usages.ts';
import type { ObjectKey } from '../../types/names.ts';
import { packOriginals } from '../../types/originals.ts';
import { DAY_MS } from '../../types/usage.ts';
import type { BlobUse, ManifestBody, VersionRecord } from '../../types/version.ts';
import { createMeteredMachine } from '../state-machine.ts';
import { CLOSED_AFTER_MS, createUsageCloser } from './close-usage-worker.ts';

const MINIMUM_DAYS = 20;
const KEYS = ['a', 'b', 'c', 'd'] as const;
const today = ({ clock }: MetadataShards) => Math.floor(clock.wallMs() / DAY_MS);
const original = (sizeBytes: number) => packOriginals({ sizeBytes, md5: etagOf('data') });

/** Closes all days that are over, some minutes after midnight. */
async function closeDays({ shards, clock }: MetadataShards): Promise<void> {
  clock.advance(CLOSED_AFTER_MS);
  const metering = { minimumDays: MINIMUM_DAYS };
  await runUntilIdle(
    createUsageCloser({ metadata: shards, shards: () => [0], metering, clock, telemetry: { gauge() {} } }),
  );
  clock.advance(-CLOSED_AFTER_MS);
}

async function current(world: MetadataShards, key: string): Promise<VersionRecord> {
  const query = { bucketId: BUCKET, key: key as ObjectKey, includeBody: false };
  const found = await world.query('get-version', query);
  if (found.kind !== 'found') throw new Error(found.kind);
  return found.version;
}

function put(world: MetadataShards, key: string, sizeBytes: number) {
  const data = world.newData({ sizeBytes, storage: 'chunks' });
  return world.put(key, { data, version: { originals: original(sizeBytes) } });
}

async function append(world: MetadataShards, key: string, sizeBytes: number) {
  const { births } = world.newData({ sizeBytes, storage: 'chunks' }).grant;
  const outcome = await world.execute('append-version', {
    bucketId: BUCKET,
    key: key as ObjectKey,
    piece: { sizeBytes, md5: etagOf('piece'), births, crcs: {} },
    kek: { found: kek, renewed: kek },
    linkId: world.newLinkId(),
  });
  expect(outcome).toMatchObject({ kind: 'committed' });
}

async function compose(world: MetadataShards, key: string, sources: readonly string[]) {
  const linkId = world.newLinkId();
  const uses: BlobUse[] = [];
  const body: ManifestBody = { uses, segments: [] };
  for (const source of sources) {
    const { manifest } = await current(world, source);
    if (manifest.kind !== 'direct') throw new Error('a few pieces are in the row');
    for (const used of manifest.uses) {
      let use = uses.findIndex(({ blobId }) => blobId === used.blobId);
      if (use === -1) use = uses.push({ ...used, linkId }) - 1;
      body.segments.push({ use, offsetBytes: 0, sizeBytes: used.sizeBytes });
    }
  }
  const sizeBytes = body.segments.reduce((sum, segment) => sum + segment.sizeBytes, 0);
  const outcome = await world.execute('compose-version', {
    bucketId: BUCKET,
    key: key as ObjectKey,
    version: { sizeBytes, etag: `${etagOf(key)}-1`, owner: OWNER, kek, originals: original(sizeBytes) },
    body,
    data: { births: [], links: uses.map(({ blobId }) => ({ blobId, linkId })) },
  });
  expect(outcome).toMatchObject({ kind: 'committed' });
}

/** One upload. */
interface Piece {
  charged: number;
  bornOn: number;
}

/** An object: what it is charged for itself, and what it only shows. */
interface Shown {
  own: Piece[];
  shared: Piece[];
  sinceDay: number;
}

class Ledger {
  readonly objects = new Map<string, Shown>();
  readonly gone: { charged: number; untilDay: number }[] = [];

  put(key: string, sizeBytes: number, day: number): void {
    this.remove(key, day);
    this.objects.set(key, { own: [piece(sizeBytes, day)], shared: [], sinceDay: day });
  }

  append(key: string, sizeBytes: number, day: number): void {
    const found = this.objects.get(key);
    found?.own.push(piece(sizeBytes, day));
    if (found) found.sinceDay = day;
  }

  compose(key: string, sources: readonly string[], day: number): void {
    const shared = sources.flatMap((source) => {
      const found = this.objects.get(source);
      return found === undefined ? [] : [...found.own, ...found.shared];
    });
    this.remove(key, day);
    this.objects.set(key, { own: [], shared, sinceDay: day });
  }

  remove(key: string, day: number): void {
    const found = this.objects.get(key);
    this.objects.delete(key);
    if (found === undefined) return;
    const charged = found.own.reduce((sum, each) => sum + each.charged, 0);
    const untilDay = found.sinceDay + MINIMUM_DAYS;
    if (day < untilDay) this.gone.push({ charged, untilDay });
  }

  atEndOf(day: number) {
    const sum = (all: readonly { charged: number }[]) =>
      all.reduce((total, { charged }) => total + charged, 0);
    const shown = [...this.objects.values()];
    const owned = new Set(shown.flatMap(({ own }) => own));
    const kept = new Set(shown.flatMap(({ shared }) => shared));
    const orphans = [...kept].filter((each) => !owned.has(each) && each.bornOn + MINIMUM_DAYS <= day);
    return {
      objects: shown.length,
      paddedBytes: sum([...owned]),
      orphanedBytes: sum(orphans),
      deletedBytes: sum(this.gone.filter(({ untilDay }) => day < untilDay)),
    };
  }
}

function piece(sizeBytes: number, bornOn: number): Piece {
  return { charged: Math.max(sizeBytes, 4096), bornOn };
}

test('records of 120 days charge each upload once: with its object, as deleted, or as orphaned', async () => {
  const seed = 5;
  const random = createSeededRandom(seed);
  const pick = (count: number) => (random.bytes(1)[0] ?? 0) % count;
  const world = await openMetadata({ machine: createMeteredMachine({ minimumDays: MINIMUM_DAYS }) });
  await world.createBucket();
  const first = today(world);
  const ledger = new Ledger();
  const wanted = new Map<number, object>();
  let orphanDays = 0;
  for (let day = first; day < first + 120; day++) {
    for (let step = pick(3); step > 0; step--) {
      const key = KEYS[pick(KEYS.length)] ?? 'a';
      const sizeBytes = 1 + pick(4) * 3000;
      const sources = [...ledger.objects.keys()].slice(0, 2);
      const kind = pick(6);
      if (kind <= 1) {
        await put(world, key, sizeBytes);
        ledger.put(key, sizeBytes, day);
      } else if (kind === 2 && sources.length > 0) {
        await compose(world, key, sources);
        ledger.compose(key, sources, day);
      } else if (kind === 3 && ledger.objects.has(key)) {
        await append(world, key, sizeBytes);
        ledger.append(key, sizeBytes, day);
      } else if (kind === 4) {
        await world.remove(key);
        ledger.remove(key, day);
      }
    }
    const figures = ledger.atEndOf(day);
    if (figures.orphanedBytes > 0) orphanDays++;
    wanted.set(day, figures);
    world.clock.advance(DAY_MS);
    await closeDays(world);
  }
  expect(orphanDays).toBeGreaterThan(5);
  const range = { fromDay: first, toDay: first + 119 };
  const days = await createUsages(world.shards, world.clock).byAccount([OWNER], range);
  expect(days).toHaveLength(120);
  for (const day of days) expect(day, `seed ${seed}`).toMatchObject(wanted.get(day.day) ?? {});
  expect(await world.query('recount-usage', { bucketId: BUCKET })).toMatchObject({ missing: [0, 0, 0, 0] });
});

/** Appends a small piece, which comes into the blob of pieces that the object ends with, if it does. */
async function appendSmall(world: MetadataShards, key: string): Promise<void> {
  const { manifest } = await current(world, key);
  const last = manifest.kind === 'direct' ? manifest.uses.at(-1) : undefined;
  const { births } = world.newData({ sizeBytes: 100, storage: 'inline' }).grant;
  const outcome = await world.execute('append-version', {
    bucketId: BUCKET,
    key: key as ObjectKey,
    piece: { sizeBytes: 100, md5: etagOf('piece'), births, crcs: {} },
    kek: { found: kek, renewed: kek },
    linkId: world.newLinkId(),
    ...(last?.storage === 'pieces' && { growingId: last.blobId }),
  });
  expect(outcome).toMatchObject({ kind: 'committed' });
}

test('a piece that is appended to a copy is charged with the copy alone, though it shares the blob of pieces', async () => {
  const world = await openMetadata({ machine: createMeteredMachine({ minimumDays: MINIMUM_DAYS }) });
  await world.createBucket();
  await put(world, 'log', 10);
  await appendSmall(world, 'log');
  const { manifest, originals, sizeBytes, appendCount = 0 } = await current(world, 'log');
  if (manifest.kind !== 'direct') throw new Error('a few pieces are in the row');
  const linkId = world.newLinkId();
  const uses = manifest.uses.map((use) => ({ ...use, linkId }));
  const data = {
    uses,
    sizeBytes,
    manifest: { ...manifest, uses },
    grant: { births: [], links: uses.map(({ blobId }) => ({ blobId, linkId })) },
  };
  await world.put('copy', { data, version: { originals, appendCount } });
  await world.remove('log');
  await appendSmall(world, 'copy');
  for (let passed = 0; passed <= MINIMUM_DAYS; passed++) {
    world.clock.advance(DAY_MS);
    await closeDays(world);
  }
  const day = today(world);
  const [last] = await createUsages(world.shards, world.clock).byAccount([OWNER], {
    fromDay: day - 1,
    toDay: day - 1,
  });
  // The data of `log`, and the piece of the copy; the piece of `log` is in the blob that the copy is charged for.
  expect(last).toMatchObject({ paddedBytes: 4096, orphanedBytes: 4096, deletedBytes: 0 });
});

test('small pieces that were appended are charged each by itself, also once their object is gone', async () => {
  const world = await openMetadata({ machine: createMeteredMachine({ minimumDays: MINIMUM_DAYS }) });
  await world.createBucket();
  const day = today(world);
  await put(world, 'log', 10);
  for (let at = 0; at < 3; at++) await appendSmall(world, 'log');
  await compose(world, 'whole', ['log']);
  await world.remove('log');
  for (let passed = 0; passed <= MINIMUM_DAYS; passed++) {
    world.clock.advance(DAY_MS);
    await closeDays(world);
  }
  const range = { fromDay: day, toDay: day + MINIMUM_DAYS };
  const days = await createUsages(world.shards, world.clock).byAccount([OWNER], range);
  const charged = 4 * 4096;
  expect(days.at(0)).toMatchObject({ paddedBytes: 0, deletedBytes: charged, orphanedBytes: 0 });
  expect(days.at(-2)).toMatchObject({ deletedBytes: charged, orphanedBytes: 0 });
  expect(days.at(-1)).toMatchObject({ deletedBytes: 0, orphanedBytes: charged });
});

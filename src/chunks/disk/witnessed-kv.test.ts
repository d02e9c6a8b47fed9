import { mkdtemp, readdir, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { must } from '../../base/assert.ts';
import { DriveHangs } from '../../base/drive-hangs.ts';
import { openWitnessFile } from '../../platform/disk/witness-file.ts';
import { createMemoryKv } from '../../platform/memory/memory-kv.ts';
import { openMemoryWitness, WitnessMedium } from '../../platform/memory/memory-witness.ts';
import { openRocksdbKv } from '../../platform/rocksdb/rocksdb-kv.ts';
import { CHUNK_COLUMNS, COMMITS_KEY, encodeCommits } from './keyspace.ts';
import { openWitnessedKv } from './witnessed-kv.ts';

const clock = createManualClock(1_700_000_000_000);
const row = (at: number) => ({ column: 'index', key: Uint8Array.of(1, at), value: new Uint8Array(1000) });

let folder: string | undefined;
afterEach(async () => {
  if (folder !== undefined) await rm(folder, { recursive: true });
  folder = undefined;
});

async function openBoth(path: string) {
  const columns = {
    data: { reads: 'async', content: 'ciphertext', isPrefixFree: true },
    index: { reads: 'sync', content: 'rows' },
  } as const;
  const kv = await openRocksdbKv({ folder: join(path, 'chunks'), columns });
  return openWitnessedKv(kv, await openWitnessFile(join(path, 'witness'), clock));
}

test('the witness shows that a store was cut; a store that was closed or is new is whole', async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-cut-'));
  const first = await openBoth(folder);
  expect(first.isCut).toBe(false);
  for (let at = 0; at < 20; at++) await first.kv.commit([row(at)]);
  await first.kv.close();
  const chunks = join(folder, 'chunks');
  const logs = (await readdir(chunks)).filter((name) => name.endsWith('.log'));
  const log = join(chunks, must(logs.sort().at(-1), 'a log'));
  await truncate(log, Math.floor((await stat(log)).size / 2));
  const cut = await openBoth(folder);
  expect(cut.isCut).toBe(true);
  await cut.kv.commit([row(30)]);
  await cut.kv.close();
  const again = await openBoth(folder);
  expect(again.isCut).toBe(false);
  await again.kv.close();
});

test('commits that end out of order leave the highest number', async () => {
  const medium = new WitnessMedium();
  const kv = createMemoryKv(CHUNK_COLUMNS);
  const waits: (() => void)[] = [];
  const commit = (...args: Parameters<typeof kv.commit>) =>
    kv.commit(...args).then(() => new Promise<void>((resolve) => waits.push(resolve)));
  const { kv: counted } = await openWitnessedKv({ ...kv, commit }, openMemoryWitness(medium, clock));
  const both = [counted.commit([row(1)]), counted.commit([row(2)])];
  while (waits.length < 2) await new Promise((resolve) => setImmediate(resolve));
  waits[1]?.();
  await both[1];
  expect(medium.get(0)).toMatchObject({ seq: 2 });
  waits[0]?.();
  await both[0];
  expect(medium.get(0)).toMatchObject({ seq: 2 });
});

test('commits without sync do not count, and an unreadable witness proves nothing', async () => {
  const medium = new WitnessMedium();
  const kv = createMemoryKv(CHUNK_COLUMNS);
  const { kv: counted } = await openWitnessedKv(kv, openMemoryWitness(medium, clock));
  await counted.commit([row(1)], { sync: false, isPatient: true });
  expect(medium.get(0)).toBeUndefined();
  await counted.commit([row(2)]);
  expect(await kv.getMany('index', [COMMITS_KEY])).toEqual([encodeCommits(1)]);
  medium.damage(0);
  expect(await openWitnessedKv(kv, openMemoryWitness(medium, clock))).toMatchObject({ isCut: true });
});

test('a failed witness fails the store', async () => {
  const witness = openMemoryWitness(new WitnessMedium(), clock);
  const { kv } = await openWitnessedKv(createMemoryKv(CHUNK_COLUMNS), witness);
  const error = new Error('no disk');
  witness.fail(error);
  expect(await kv.failed).toBe(error);
});

const HANG = new DriveHangs('no answer');
const LOST = new Error('bad sector');
type End = { failure?: Error; close?: Error };

test.each<[string, { kv: End; witness: End }, Error | undefined]>([
  ['that answered well', { kv: { failure: HANG }, witness: {} }, undefined],
  ['that answered with an error', { kv: { failure: HANG, close: LOST }, witness: {} }, LOST],
  [
    'that hung once more behind its error',
    { kv: { failure: HANG, close: LOST }, witness: { close: HANG } },
    LOST,
  ],
  ['that hung once more', { kv: { failure: HANG }, witness: { close: HANG } }, HANG],
  ['whose witness answered with an error', { kv: { failure: HANG }, witness: { failure: LOST } }, LOST],
  ['whose database answered with an error', { kv: { failure: LOST }, witness: { failure: HANG } }, LOST],
])('the end of a store with a drive %s', async (_, { kv, witness }, expected) => {
  const medium = openMemoryWitness(new WitnessMedium(), clock);
  const failures = { kv: Promise.withResolvers<Error>(), witness: Promise.withResolvers<Error>() };
  const closing = ({ close }: End) => (close === undefined ? Promise.resolve() : Promise.reject(close));
  const { kv: store } = await openWitnessedKv(
    { ...createMemoryKv(CHUNK_COLUMNS), failed: failures.kv.promise, close: () => closing(kv) },
    {
      read: (shard) => medium.read(shard),
      write: (shard, position) => medium.write(shard, position),
      lower: (shard, position) => medium.lower(shard, position),
      failed: failures.witness.promise,
      close: () => closing(witness),
    },
  );
  // The drive hung first; the error is its late answer.
  const order = witness.failure === HANG ? (['witness', 'kv'] as const) : (['kv', 'witness'] as const);
  for (const name of order) {
    const { failure } = { kv, witness }[name];
    if (failure !== undefined) failures[name].resolve(failure);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const [outcome] = await Promise.allSettled([store.close()]);
  expect(outcome?.status === 'rejected' ? outcome.reason : undefined).toBe(expected);
});

test('a clean close is clean even if the store failed before', async () => {
  const { kv } = await openWitnessedKv(
    { ...createMemoryKv(CHUNK_COLUMNS), failed: Promise.resolve(LOST) },
    openMemoryWitness(new WitnessMedium(), clock),
  );
  expect(await kv.failed).toBe(LOST);
  await kv.close();
});

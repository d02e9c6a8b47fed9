// holdfast salvage: makes the chunk store of a single node open again after some of its tables were lost. It shows what is
// lost, and removes it when the operator confirms that; the rest is served, and `holdfast fsck` names the objects to upload
// again. There is no such command for metadata: objects would be missing, or deleted ones would return, and nobody could
// say which.
import { existsSync } from 'node:fs';
import { copyFile, mkdir, rename, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Corruption } from '../../base/corruption.ts';
import { Refusal } from '../../base/refusal.ts';
import { type JoinedHalves, joinHalves } from '../../chunks/disk/join-halves.ts';
import { CHUNK_PLACES } from '../../chunks/disk/keyspace.ts';
import { formatBytes, formatCount } from '../../cli/format.ts';
import { lockDataDir, readDataDirShards } from '../../platform/disk/data-dir-lock.ts';
import { syncFolder } from '../../platform/disk/durable-file.ts';
import { EXTENTS_FOLDER, openSeparatedKv } from '../../platform/extents/open-separated.ts';
import { markForRegain } from '../../platform/extents/regain-places.ts';
import { KvOpenError } from '../../platform/rocksdb/rocksdb-kv.ts';
import { Manifest, type TableFile } from '../../platform/rocksdb/rocksdb-manifest.ts';
import { systemClock } from '../../platform/system-clock.ts';
import { refuseNodeFolder } from '../node-folder.ts';
import { CHUNK_COLUMNS, CHUNKS_FOLDER } from '../open-databases.ts';

/** Existing tables that cannot be opened are found one by one. */
const TRIES_MAX = 100;
export const LOST_FOLDER = 'chunks.lost';

export interface SalvageOptions {
  dataDir: string;
  /** Does it; otherwise it only shows what it would do. */
  yes?: boolean;
  print(line: string): void;
}

/** The data folder of a single node, which no server opens until the lock is closed. Throws {@link Refusal}. */
export async function lockSingleNode(dataDir: string): Promise<{ folder: string; lock: { close(): void } }> {
  const folder = resolve(dataDir);
  if ((await readDataDirShards(folder)) === undefined)
    throw new Refusal(`${folder} is not the data folder of a single node`);
  await refuseNodeFolder(folder);
  return { folder, lock: await lockDataDir(folder) };
}

/** Returns the exit code: 0 when nothing is lost or all is done, 2 when something is lost and nothing was changed. */
export async function salvage({ dataDir, yes = false, print }: SalvageOptions): Promise<number> {
  const { folder, lock } = await lockSingleNode(dataDir);
  try {
    const chunks = join(folder, CHUNKS_FOLDER);
    const lost = await findLost(chunks);
    for (const table of lost) print(describe(table));
    if (!yes) {
      if (lost.length > 0) print('Nothing was changed. --yes takes these tables out, for good.');
      else print('No table is missing. --yes also tries to open all of them.');
      return lost.length > 0 ? 2 : 0;
    }
    await takeOut(folder, lost);
    const { lostCount, regainedCount } = await joinWithout(folder, print);
    print(
      `Of ${formatCount(lostCount)} chunks a row was left, without bytes; ${formatCount(regainedCount)} got a new row.`,
    );
    print(
      'Start the server: `holdfast fsck` finds what is lost, and names the objects to be uploaded again.',
    );
    return 0;
  } finally {
    lock.close();
  }
}

interface LostTable extends TableFile {
  why: string;
}

async function findLost(chunks: string): Promise<LostTable[]> {
  const lost: LostTable[] = [];
  for (const table of (await readManifest(chunks)).tables()) {
    const found = await stat(join(chunks, table.name)).catch(() => undefined);
    if (found === undefined) lost.push({ ...table, why: 'is missing' });
    else if (found.size !== table.sizeBytes) lost.push({ ...table, why: `has ${found.size} bytes` });
  }
  return lost;
}

async function readManifest(chunks: string): Promise<Manifest> {
  try {
    return await Manifest.read(chunks);
  } catch (error) {
    if (!(error instanceof Corruption) && (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new Refusal(`${chunks} cannot be salvaged: ${(error as Error).message}. Restore it from a backup.`);
  }
}

function describe({ name, column, sizeBytes, why }: LostTable): string {
  const what = column === 'default' ? 'bytes of chunks' : 'rows of chunks';
  return `${name} ${why}: ${formatBytes(sizeBytes)} of ${what}`;
}

/**
 * The remains, and the original manifest, stay in a folder beside. What rows of it named in extents is looked for in these, at the
 * next opening, whoever does it.
 */
async function takeOut(folder: string, lost: readonly TableFile[]): Promise<void> {
  if (lost.length === 0) return;
  const chunks = join(folder, CHUNKS_FOLDER);
  const lostFolder = join(folder, LOST_FOLDER);
  await mkdir(lostFolder, { recursive: true, mode: 0o700 });
  const extents = join(chunks, EXTENTS_FOLDER);
  if (existsSync(extents)) await markForRegain(extents);
  const manifest = await readManifest(chunks);
  await copyFile(manifest.path, join(lostFolder, `MANIFEST-${systemClock.wallMs()}`));
  await manifest.remove(lost.map(({ number }) => number));
  for (const { name } of lost)
    await rename(join(chunks, name), join(lostFolder, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
  for (const each of [chunks, lostFolder]) await syncFolder(each);
}

/** Removes tables that turn out to be unreadable, too: those that do not open, and those of rows that have lost a block. */
async function joinWithout(folder: string, print: SalvageOptions['print']): Promise<JoinedHalves> {
  const chunks = join(folder, CHUNKS_FOLDER);
  for (let tries = 0; ; tries++) {
    try {
      const kv = await openSeparatedKv({
        folder: chunks,
        columns: CHUNK_COLUMNS,
        separated: CHUNK_PLACES,
        separateFromBytes: 0,
        onRegained: ({ regainedCount, lostFileCount }) => {
          print(`${formatCount(regainedCount)} chunks were found in the extents.`);
          if (lostFileCount > 0) print(`${formatCount(lostFileCount)} extent files could not be read.`);
        },
      });
      const joined = await joinHalves(kv, systemClock).catch(async (error: unknown) => {
        await kv.close().catch(() => {});
        throw error;
      });
      await kv.close();
      return joined;
    } catch (error) {
      const isUnreadable = error instanceof Corruption;
      if (!isUnreadable && !(error instanceof KvOpenError)) throw error;
      const [, digits] = /(\d{6,})\.sst/.exec(error.message) ?? [];
      const table = (await readManifest(chunks)).tables().find(({ number }) => number === Number(digits));
      if (table === undefined || tries >= TRIES_MAX)
        throw new Refusal(`${chunks} cannot be salvaged: ${error.message}. Restore it from a backup.`);
      print(describe({ ...table, why: isUnreadable ? 'has lost bytes' : 'cannot be opened' }));
      await takeOut(folder, [table]);
    }
  }
}

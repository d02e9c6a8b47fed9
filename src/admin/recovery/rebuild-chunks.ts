// holdfast fsck --rebuild-chunks: of a single node that does not run, makes the chunk store's database anew from the extents alone,
// where it is lost or cannot be salvaged. The heads in the extents say whose bytes follow; chunks that lay in the database itself
// are in no extent, so `holdfast fsck` names the objects to upload again. Disks of a cluster are filled from other copies instead.
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { Refusal } from '../../base/refusal.ts';
import { joinHalves } from '../../chunks/disk/join-halves.ts';
import { CHUNK_PLACES } from '../../chunks/disk/keyspace.ts';
import { formatBytes, formatCount } from '../../cli/format.ts';
import { syncFolder } from '../../platform/disk/durable-file.ts';
import { openExtentFolder } from '../../platform/extents/extent-io.ts';
import { EXTENTS_FOLDER, openSeparatedKv } from '../../platform/extents/open-separated.ts';
import { markForRegain, type RegainedPlaces } from '../../platform/extents/regain-places.ts';
import { systemClock } from '../../platform/system-clock.ts';
import { CHUNK_COLUMNS, CHUNKS_FOLDER } from '../open-databases.ts';
import { LOST_FOLDER, lockSingleNode, type SalvageOptions } from './salvage.ts';

/** Returns the exit code: 0 when all is done, 2 when nothing was changed. */
export async function rebuildChunks({ dataDir, yes = false, print }: SalvageOptions): Promise<number> {
  const { folder, lock } = await lockSingleNode(dataDir);
  try {
    const chunks = join(folder, CHUNKS_FOLDER);
    const extents = join(chunks, EXTENTS_FOLDER);
    if (!existsSync(extents))
      throw new Refusal(`${extents} is not there: without extents there is nothing to rebuild from`);
    const files = await (await openExtentFolder(extents)).list();
    const sizeBytes = files.reduce((sum, file) => sum + file.sizeBytes, 0);
    print(`${formatCount(files.length)} extent files, ${formatBytes(sizeBytes)}.`);
    if (!yes) {
      print('Chunks below storage.separateFrom, and older ones that were not moved yet, are not in them.');
      print(
        `Nothing was changed. --yes puts the database aside, into ${LOST_FOLDER}, and makes another one.`,
      );
      return 2;
    }
    await putAside(folder, extents);
    await rebuild(chunks, print);
    return 0;
  } finally {
    lock.close();
  }
}

/** The database without its extents; where an earlier call was cut short, what it has made. */
async function putAside(folder: string, extents: string): Promise<void> {
  const chunks = join(folder, CHUNKS_FOLDER);
  await markForRegain(extents);
  const aside = join(folder, LOST_FOLDER, `database-${systemClock.wallMs()}`);
  await mkdir(aside, { recursive: true, mode: 0o700 });
  const names = (await readdir(chunks)).filter((name) => name !== EXTENTS_FOLDER);
  // What a database needs first goes last: until then it is seen that it is not whole.
  for (const name of names.sort((a, b) => Number(a === 'CURRENT') - Number(b === 'CURRENT')))
    await rename(join(chunks, name), join(aside, name));
  for (const path of [aside, join(folder, LOST_FOLDER), folder, chunks]) await syncFolder(path);
}

async function rebuild(chunks: string, print: SalvageOptions['print']): Promise<void> {
  let regained: RegainedPlaces = { regainedCount: 0, lostFileCount: 0 };
  const kv = await openSeparatedKv({
    folder: chunks,
    columns: CHUNK_COLUMNS,
    separated: CHUNK_PLACES,
    separateFromBytes: 0,
    onRegained: (found) => {
      regained = found;
    },
  });
  try {
    await joinHalves(kv, systemClock);
  } finally {
    await kv.close();
  }
  print(`${formatCount(regained.regainedCount)} chunks were found, and have rows again.`);
  if (regained.lostFileCount > 0)
    print(`${formatCount(regained.lostFileCount)} extent files could not be read to their ends.`);
  print(
    'Start the server: `holdfast fsck` names the objects to be uploaded again. What was deleted of late is back, and goes by itself.',
  );
}

// Rows of places that were lost, made anew from the heads of records. What was deleted, and is not overwritten yet, comes back with
// them: whoever owns the values finds it as what nothing names. A mark in the folder of extents asks for it at the next opening:
// it is there before any row is taken away, because a file that no row names is used again.
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { concatBytes } from '../../base/bytes/bytes.ts';
import { Corruption } from '../../base/corruption.ts';
import type { KvPort, KvPut } from '../../ports/kv.ts';
import { syncFolder, writeDurableFile } from '../disk/durable-file.ts';
import type { ExtentIo } from './extent-io.ts';
import { encodePlace } from './extent-record.ts';
import { recordsOf } from './extents.ts';
import type { SeparatedColumns } from './separated-kv.ts';

const MARK = 'regain';

export interface RegainedPlaces {
  /** Values that have a row again. */
  regainedCount: number;
  /** Files of which the disk has lost so much that they were not looked through to their end. */
  lostFileCount: number;
}

/** Durable when it resolves. `folder`: of extents. */
export async function markForRegain(folder: string): Promise<void> {
  await writeDurableFile(join(folder, MARK), 'Rows of places are to be made anew from the extents beside.\n');
}

export function isMarkedForRegain(folder: string): boolean {
  return existsSync(join(folder, MARK));
}

/** Durable when it resolves. */
export async function unmarkForRegain(folder: string): Promise<void> {
  await rm(join(folder, MARK), { force: true });
  await syncFolder(folder);
}

/**
 * Before the extents are opened. Durable when it resolves. Of two records of a key the first one found will do: they are alike.
 * Rows that are there, and values in the database itself, stay.
 */
export async function regainPlaces(
  kv: KvPort,
  io: ExtentIo,
  { column, placeColumn, placePrefix }: SeparatedColumns,
): Promise<RegainedPlaces> {
  const found = { regainedCount: 0, lostFileCount: 0 };
  for (const { id } of await io.list()) {
    const file = io.file(id);
    try {
      for await (const { head, offset } of recordsOf(file)) {
        const { key, bodyBytes, sequence, bodyCrc32 } = head;
        const placeKey = concatBytes(placePrefix, key);
        if ((await hasValue(kv, placeColumn, placeKey)) || (await hasValue(kv, column, key))) continue;
        const at = encodePlace({ fileId: id, offset, bodyBytes, sequence, bodyCrc32 });
        const row: KvPut = { column: placeColumn, key: placeKey, value: at };
        await kv.commit([row], { sync: false });
        found.regainedCount++;
      }
    } catch (error) {
      if (!(error instanceof Corruption)) throw error;
      found.lostFileCount++;
    } finally {
      await file.close();
    }
  }
  await kv.commit([]);
  return found;
}

/** One that the disk has lost counts as none. */
async function hasValue(kv: KvPort, column: string, key: Uint8Array): Promise<boolean> {
  try {
    return (await kv.getMany(column, [key]))[0] !== undefined;
  } catch (error) {
    if (error instanceof Corruption) return false;
    throw error;
  }
}

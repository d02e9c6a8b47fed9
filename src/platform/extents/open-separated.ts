// Opens a database of chunks whose large values may lie in extents, in the folder `extents` of the database's own: so both are
// moved, copied and found together.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ClockPort } from '../../ports/clock.ts';
import type { KvPort } from '../../ports/kv.ts';
import { openRocksdbKv, type RocksdbKvOptions } from '../rocksdb/rocksdb-kv.ts';
import { systemClock } from '../system-clock.ts';
import { AlignedMemory } from './aligned-memory.ts';
import { openExtentFolder } from './extent-io.ts';
import { Extents } from './extents.ts';
import type { RecordMemory } from './record-memory.ts';
import { isMarkedForRegain, type RegainedPlaces, regainPlaces, unmarkForRegain } from './regain-places.ts';
import { livePlaces, type SeparatedColumns, SeparatedKv } from './separated-kv.ts';

export const EXTENTS_FOLDER = 'extents';

const MiB = 1024 * 1024;
const EXTENT_BYTES = 256 * MiB;
/** Of records that are being written, and of those that are read past the page cache. */
const WRITE_MEMORY_BYTES = 32 * MiB;
const READ_MEMORY_BYTES = 16 * MiB;

export interface SeparatedDatabase extends RocksdbKvOptions {
  separated: SeparatedColumns;
  /** Values from so many bytes on go into extents. 0: none does; those that are there are read, and go with their rows. */
  separateFromBytes: number;
  /** Where large values may lie already when they are committed. */
  received?: RecordMemory;
  /** By which sparse extents are copied forward, and the pauses between. Default: the machine's. */
  clock?: Pick<ClockPort, 'monotonicMs' | 'sleep'>;
  /** Called where rows of places cannot be read: what they name is not readable, and no extent file is used again. */
  onLostPlaces?: () => void;
  /** Called where such rows were made anew from the extents (regain-places.ts). */
  onRegained?: (regained: RegainedPlaces) => void;
}

/** Whether values of the database lie in extents, or may come to lie there. */
export function usesExtents(database: { folder: string; separateFromBytes: number }): boolean {
  return database.separateFromBytes > 0 || existsSync(join(database.folder, EXTENTS_FOLDER));
}

/** Throws KvOpenError, as opening the database does. */
export async function openSeparatedKv(options: SeparatedDatabase): Promise<KvPort> {
  const { separated, separateFromBytes, received, clock = systemClock, ...others } = options;
  const { onLostPlaces, onRegained, ...database } = others;
  const folder = join(database.folder, EXTENTS_FOLDER);
  const kv = await openRocksdbKv(database);
  if (!usesExtents(options)) return kv;
  try {
    const io = await openExtentFolder(folder);
    // First: a file that no row names is free space.
    if (isMarkedForRegain(folder)) {
      const regained = await regainPlaces(kv, io, separated);
      onRegained?.(regained);
      await unmarkForRegain(folder);
    }
    const extents = await Extents.open({
      io,
      memory: new AlignedMemory(WRITE_MEMORY_BYTES),
      readMemory: new AlignedMemory(READ_MEMORY_BYTES),
      fileBytes: EXTENT_BYTES,
      ...(received && { received }),
      ...(database.hangs && { writesMax: writesOfDrive(Number(process.env.UV_THREADPOOL_SIZE)) }),
      live: livePlaces(kv, separated),
    });
    if (extents.isHeld) onLostPlaces?.();
    const { onReleased, hangs } = database;
    const how = {
      fromBytes: separateFromBytes === 0 ? Number.POSITIVE_INFINITY : separateFromBytes,
      clock,
      ...(onReleased && { onReleased }),
      ...(hangs && { hangs }),
    };
    return new SeparatedKv(kv, { extents, columns: separated, options: how });
  } catch (error) {
    await kv.close().catch(() => {});
    throw error;
  }
}

/**
 * Writes of a drive that may hang, with so many threads for all file work of the process: others and reads are to have most of
 * them. Node has four where nobody says.
 */
export function writesOfDrive(threadCount: number): number {
  return Math.max(1, Math.min(4, Math.floor((threadCount || 4) / 8)));
}

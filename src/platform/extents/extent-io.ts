// Extent files on a file system: writes go past the page cache and are durable when they resolve. Where the file system knows no
// direct I/O (tmpfs, some network and overlay file systems), they go through the cache, and are synced.
import { constants, type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Corruption } from '../../base/corruption.ts';
import { syncFolder } from '../disk/durable-file.ts';
import { AlignedMemory } from './aligned-memory.ts';
import { BLOCK_BYTES } from './extent-record.ts';

const { O_CREAT, O_DIRECT, O_DSYNC, O_RDONLY, O_WRONLY } = constants;
const NAME = /^(\d{10})\.extent$/;
const nameOf = (id: number) => `${String(id).padStart(10, '0')}.extent`;
/** Files that are open for reads at once: a large disk has thousands. */
const OPEN_READS_MAX = 256;
/**
 * By number: not all have a name in Node. EIO, ENODATA, EBADMSG, EILSEQ and EUCLEAN: the medium, its checksums or the structures
 * that lead to the bytes have lost them (rocksdb-corruption.ts).
 */
const LOST_BYTES: ReadonlySet<number> = new Set([5, 61, 74, 84, 117]);

export interface ExtentFile {
  /** Durable when it resolves. All buffers and the offset are in whole, aligned blocks. */
  write(buffers: readonly Buffer[], offset: number): Promise<void>;
  /** Into one buffer after the other. Fewer bytes than they hold only at the end of the file: none of one that is not there. */
  read(into: readonly Buffer[], offset: number, how?: ReadHow): Promise<number>;
  /** Nothing more is written to it for now; reads go on. */
  seal(): Promise<void>;
  close(): Promise<void>;
}

export interface ReadHow {
  /** Past the page cache, where the folder has direct I/O: the buffers and the offset are in whole, aligned blocks. */
  isDirect: boolean;
}

export interface ListedExtent {
  id: number;
  sizeBytes: number;
}

export interface ExtentIo {
  /** False: writes go through the page cache. */
  readonly isDirect: boolean;
  /** By id. */
  list(): Promise<ListedExtent[]>;
  /** The file, which is made, durably, by its first write. */
  file(id: number): ExtentFile;
  remove(id: number): Promise<void>;
}

export async function openExtentFolder(folder: string): Promise<ExtentIo> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await syncFolder(dirname(folder));
  const isDirect = await hasDirectIo(folder);
  const reads = new OpenReads(O_RDONLY);
  const directReads = new OpenReads(O_RDONLY | O_DIRECT);
  return {
    isDirect,
    async list() {
      const ids = (await readdir(folder)).flatMap((name) => NAME.exec(name)?.slice(1).map(Number) ?? []);
      const sizes = ids.map(async (id) => ({ id, sizeBytes: (await stat(join(folder, nameOf(id)))).size }));
      return (await Promise.all(sizes)).sort((a, b) => a.id - b.id);
    },
    file: (id) => new FolderExtent({ folder, path: join(folder, nameOf(id)), isDirect, reads, directReads }),
    async remove(id) {
      await rm(join(folder, nameOf(id)), { force: true });
    },
  };
}

interface FilePlace {
  folder: string;
  path: string;
  isDirect: boolean;
  reads: OpenReads;
  directReads: OpenReads;
}

class FolderExtent implements ExtentFile {
  readonly #place: FilePlace;
  #writes: Promise<FileHandle> | undefined;

  constructor(place: FilePlace) {
    this.#place = place;
  }

  async write(buffers: readonly Buffer[], offset: number): Promise<void> {
    this.#writes ??= this.#openForWrites();
    const handle = await this.#writes;
    const wanted = buffers.reduce((sum, { length }) => sum + length, 0);
    const { bytesWritten } = await handle.writev(buffers, offset);
    // A direct write that is cut short has met the end of the disk.
    if (bytesWritten !== wanted) throw new Error(`${bytesWritten} of ${wanted} bytes were written`);
  }

  async #openForWrites(): Promise<FileHandle> {
    const { folder, path, isDirect } = this.#place;
    const flags = O_WRONLY | O_CREAT | O_DSYNC | (isDirect ? O_DIRECT : 0);
    const handle = await open(path, flags, 0o600);
    await syncFolder(folder);
    return handle;
  }

  async read(into: readonly Buffer[], offset: number, how?: ReadHow): Promise<number> {
    const { path, reads, directReads, isDirect } = this.#place;
    const opened = how?.isDirect === true && isDirect ? directReads : reads;
    const reading = opened.with(path, async (handle) => {
      let done = 0;
      for (let rest = into; rest.length > 0; ) {
        const { bytesRead } = await handle.readv(rest, offset + done);
        if (bytesRead === 0) break;
        done += bytesRead;
        rest = behind(rest, bytesRead);
      }
      return done;
    });
    return reading.catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return 0;
      throw LOST_BYTES.has(-(error.errno ?? 0)) ? new Corruption(error.message, { cause: error }) : error;
    });
  }

  async seal(): Promise<void> {
    const opening = this.#writes;
    this.#writes = undefined;
    await (await opening)?.close();
  }

  async close(): Promise<void> {
    const { path, reads, directReads } = this.#place;
    await Promise.all([this.seal(), reads.forget(path), directReads.forget(path)]);
  }
}

/** What is left of the buffers behind their first bytes. */
function behind(buffers: readonly Buffer[], sizeBytes: number): Buffer[] {
  let filledBytes = sizeBytes;
  return buffers.flatMap((buffer) => {
    const rest = buffer.subarray(Math.min(filledBytes, buffer.length));
    filledBytes -= buffer.length - rest.length;
    return rest.length > 0 ? [rest] : [];
  });
}

interface OpenRead {
  handle: Promise<FileHandle>;
  userCount: number;
  /** Closed by its last user. */
  isForgotten: boolean;
}

/** Handles for reads, the least recently used of which is closed for another. */
class OpenReads {
  readonly #open = new Map<string, OpenRead>();
  readonly #flags: number;

  constructor(flags: number) {
    this.#flags = flags;
  }

  async with<T>(path: string, use: (handle: FileHandle) => Promise<T>): Promise<T> {
    const found = this.#open.get(path) ?? {
      handle: open(path, this.#flags),
      userCount: 0,
      isForgotten: false,
    };
    this.#open.delete(path);
    this.#open.set(path, found);
    found.userCount++;
    this.#makeRoom();
    try {
      return await use(await found.handle);
    } catch (error) {
      // One that could not be opened is tried again.
      if (this.#open.get(path) === found) this.#open.delete(path);
      found.isForgotten = true;
      throw error;
    } finally {
      found.userCount--;
      if (found.isForgotten && found.userCount === 0) await closeHandle(found);
    }
  }

  async forget(path: string): Promise<void> {
    const found = this.#open.get(path);
    if (found === undefined) return;
    this.#open.delete(path);
    found.isForgotten = true;
    if (found.userCount === 0) await closeHandle(found);
  }

  #makeRoom(): void {
    if (this.#open.size <= OPEN_READS_MAX) return;
    for (const [path, { userCount }] of this.#open) {
      if (userCount > 0) continue;
      void this.forget(path);
      return;
    }
  }
}

async function closeHandle({ handle }: OpenRead): Promise<void> {
  await handle.then((opened) => opened.close()).catch(() => {});
}

/** Some file systems open a file for it, and refuse the write. */
async function hasDirectIo(folder: string): Promise<boolean> {
  const path = join(folder, 'direct-io');
  const piece = await new AlignedMemory(BLOCK_BYTES).take(BLOCK_BYTES);
  try {
    await using file = await open(path, O_WRONLY | O_CREAT | O_DIRECT, 0o600);
    await file.write(piece.bytes, 0, BLOCK_BYTES, 0);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EINVAL') return false;
    throw error;
  } finally {
    await rm(path, { force: true });
  }
}

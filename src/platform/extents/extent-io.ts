// Extent files on a file system: writes go past the page cache and are durable when they resolve. Where the file system knows no
// direct I/O (tmpfs, some network and overlay file systems), they go through the cache, and are synced.
import { constants, type FileHandle, mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

const { O_CREAT, O_DIRECT, O_DSYNC, O_RDONLY, O_WRONLY } = constants;
const NAME = /^(\d{10})\.extent$/;
const nameOf = (id: number) => `${String(id).padStart(10, '0')}.extent`;

/** One file, open for as long as it is there. */
export interface ExtentFile {
  /** Durable when it resolves. All buffers and the offset are in whole, aligned blocks. */
  write(buffers: readonly Buffer[], offset: number): Promise<void>;
  /** Fewer bytes than asked for only at the end of the file. */
  read(into: Buffer, offset: number): Promise<number>;
  close(): Promise<void>;
}

export interface ExtentIo {
  /** False: writes go through the page cache. */
  readonly isDirect: boolean;
  list(): Promise<number[]>;
  /** A file that is not there is made, and its name is durable. */
  open(id: number): Promise<ExtentFile>;
  remove(id: number): Promise<void>;
}

export async function openExtentFolder(folder: string): Promise<ExtentIo> {
  await mkdir(folder, { recursive: true });
  const isDirect = await hasDirectIo(folder);
  return {
    isDirect,
    async list() {
      const names = await readdir(folder);
      return names.flatMap((name) => NAME.exec(name)?.slice(1).map(Number) ?? []).sort((a, b) => a - b);
    },
    async open(id) {
      const path = join(folder, nameOf(id));
      const flags = O_WRONLY | O_CREAT | O_DSYNC | (isDirect ? O_DIRECT : 0);
      const writes = await open(path, flags, 0o600);
      const reads = await open(path, O_RDONLY);
      await syncFolder(folder);
      return new OpenExtent(writes, reads);
    },
    remove: (id) => rm(join(folder, nameOf(id)), { force: true }),
  };
}

class OpenExtent implements ExtentFile {
  readonly #writes: FileHandle;
  readonly #reads: FileHandle;

  constructor(writes: FileHandle, reads: FileHandle) {
    this.#writes = writes;
    this.#reads = reads;
  }

  async write(buffers: readonly Buffer[], offset: number): Promise<void> {
    const wanted = buffers.reduce((sum, { length }) => sum + length, 0);
    const { bytesWritten } = await this.#writes.writev(buffers, offset);
    // A direct write that is cut short has met the end of the disk.
    if (bytesWritten !== wanted) throw new Error(`${bytesWritten} of ${wanted} bytes were written`);
  }

  async read(into: Buffer, offset: number): Promise<number> {
    let done = 0;
    while (done < into.length) {
      const { bytesRead } = await this.#reads.read(into, done, into.length - done, offset + done);
      if (bytesRead === 0) break;
      done += bytesRead;
    }
    return done;
  }

  async close(): Promise<void> {
    await Promise.all([this.#writes.close(), this.#reads.close()]);
  }
}

async function hasDirectIo(folder: string): Promise<boolean> {
  const path = join(folder, 'direct-io');
  try {
    const file = await open(path, O_WRONLY | O_CREAT | O_DIRECT, 0o600);
    await file.close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EINVAL') return false;
    throw error;
  } finally {
    await rm(path, { force: true });
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

// Small files of the data folder that must be complete or absent after a crash: written to a temporary file, synced,
// renamed, and the folder synced. Readable by their owner only. Not for chunks or metadata, which live in RocksDB.
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Whose a file is, and who may read it, as stat gives it. */
export interface FileOwner {
  uid: number;
  gid: number;
  mode: number;
}

/**
 * Writes `text` to `path`, replacing what was there. Durable once it resolves. `writer`: names this one of several that may
 * write at the same time. `like`: it stays the file of this owner, where this process may give it away.
 */
export async function writeDurableFile(
  path: string,
  text: string,
  { writer = '', like }: { writer?: string | undefined; like?: FileOwner | undefined } = {},
): Promise<void> {
  const temporary = `${path}${writer && `.${writer}`}.new`;
  try {
    // A temporary file left by a crash may have other rights: mode applies to new files only.
    await using file = await open(temporary, 'w', 0o600);
    await file.chmod(0o600);
    await file.writeFile(text);
    if (like !== undefined) await giveTo(file, like);
    await file.sync();
    await rename(temporary, path);
  } catch (error) {
    // It may hold secrets.
    await rm(temporary, { force: true }).catch(() => {});
    throw error;
  }
  await syncFolder(dirname(path));
}

async function giveTo(file: FileHandle, { uid, gid, mode }: FileOwner): Promise<void> {
  if (uid === process.getuid?.()) return;
  try {
    await file.chown(uid, gid);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPERM') return;
    throw error;
  }
  await file.chmod(mode & 0o777);
}

/** Makes entries of a folder durable: new names, renames and removals. */
export async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r');
  await folder.sync();
}

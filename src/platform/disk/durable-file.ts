// Small files of the data folder that must be complete or absent after a crash: written to a temporary file, synced,
// renamed, and the folder synced. Readable by their owner only. Not for chunks or metadata, which live in RocksDB.
import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Writes `text` to `path`, replacing what was there. Durable once it resolves. `writer`: names this one of several that may
 * write at the same time.
 */
export async function writeDurableFile(path: string, text: string, writer = ''): Promise<void> {
  const temporary = `${path}${writer && `.${writer}`}.new`;
  {
    // A temporary file left by a crash may have other rights: mode applies to new files only.
    await using file = await open(temporary, 'w', 0o600);
    await file.chmod(0o600);
    await file.writeFile(text);
    await file.sync();
  }
  await rename(temporary, path);
  await syncFolder(dirname(path));
}

/** Makes entries of a folder durable: new names, renames and removals. */
export async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r');
  await folder.sync();
}

// Makes folders of data. Not with mkdir's own `recursive`: below /proc, where nobody can make anything, that of Node 24
// repeats itself for ever and takes a whole CPU.
import { mkdir, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/** Somebody else may make, or remove, the folders above meanwhile. */
const TRIES_MAX = 3;

/**
 * Makes a folder, and those above it that are missing, with this mode. Resolves with the first one that it made; undefined
 * when the folder was there. Rejects with the system's error.
 */
export async function makeFolder(path: string, mode = 0o777): Promise<string | undefined> {
  const folder = resolve(path);
  let madeFirst: string | undefined;
  for (let tries = 1; ; tries++) {
    try {
      await mkdir(folder, { mode });
      return madeFirst ?? folder;
    } catch (error) {
      // A file system for reading only refuses folders that are there, too.
      if (await isFolder(folder)) return madeFirst;
      const above = dirname(folder);
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || above === folder || tries === TRIES_MAX)
        throw error;
      madeFirst ??= await makeFolder(above, mode);
    }
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

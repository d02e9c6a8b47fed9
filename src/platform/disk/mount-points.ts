// Folders of disks that are file systems of their own. One that is not mounted leaves an empty folder, which would be taken
// for a new disk, and fill the file system below it; so what was a mount point once is remembered.
import type { Stats } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createSequence } from '../../base/async/sequence.ts';
import { writeDurableFile } from './durable-file.ts';

export interface MountMemory {
  /** Rejects when `folder` is missing, or was a mount point and is none now. A hanging one delays no other. */
  assertMounted(folder: string): Promise<void>;
}

/** `path`: the file that remembers. */
export function createMountMemory(path: string): MountMemory {
  const inSequence = createSequence();
  return {
    async assertMounted(folder) {
      const isMounted = await isMountPoint(folder);
      await inSequence(async () => {
        const known = await readFolders(path);
        const isKnown = known.includes(folder);
        if (isKnown && !isMounted)
          throw new Error(
            `${folder} has been a file system of its own, and is not mounted: mount it, or take it out of ${path}`,
          );
        if (isMounted && !isKnown) await writeDurableFile(path, JSON.stringify([...known, folder]));
      });
    },
  };
}

async function readFolders(path: string): Promise<string[]> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as string[];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

async function isMountPoint(folder: string): Promise<boolean> {
  const [own, above] = await Promise.all([statFolder(folder), stat(dirname(folder))]);
  return own.dev !== above.dev;
}

async function statFolder(folder: string): Promise<Stats> {
  try {
    return await stat(folder);
  } catch (error) {
    throw new Error(`there is no folder ${folder}`, { cause: error });
  }
}

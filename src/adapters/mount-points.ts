// Folders of disks that are file systems of their own. One that is not mounted leaves an empty folder, which would be taken
// for a new disk, and fill the file system below it; so what was a mount point once is remembered.
import type { Stats } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { writeDurableFile } from './durable-file.ts';

/** `memoryPath`: the file that remembers. Rejects when `folder` is not there, or was a mount point and is none now. */
export async function assertMounted(memoryPath: string, folder: string): Promise<void> {
  const known = await readFolders(memoryPath);
  const isKnown = known.includes(folder);
  const isMounted = await isMountPoint(folder);
  if (isKnown && !isMounted)
    throw new Error(
      `${folder} has been a file system of its own, and is not mounted: mount it, or take it out of ${memoryPath}`,
    );
  if (isMounted && !isKnown) await writeDurableFile(memoryPath, JSON.stringify([...known, folder]));
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

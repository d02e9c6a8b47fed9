// How much room a folder's file system has. What too little of it means is for its users to say.
import { statfs } from 'node:fs/promises';
import type { DiskSpace } from '../../ports/disk-reserve.ts';

export async function readDiskSpace(folder: string): Promise<DiskSpace> {
  const { bavail, blocks, bsize } = await statfs(folder);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

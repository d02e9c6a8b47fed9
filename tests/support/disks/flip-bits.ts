// Flips bits in the tables of a database that nobody has open, and in its extents, as a disk does that loses bytes without
// saying so.
import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { EXTENTS_FOLDER } from '../../../src/platform/extents/open-separated.ts';

/** Of smaller ones more is index and footer than rows. */
const TABLE_BYTES_MIN = 8 * 1024;

/**
 * One bit at each of these places of every table and extent file of at least `tableBytesMin`; resolves with how many. Where a column of few
 * rows is not meant, its tables are the small ones.
 */
export async function flipBits(
  folder: string,
  { shares, tableBytesMin = TABLE_BYTES_MIN }: { shares: readonly number[]; tableBytesMin?: number },
): Promise<number> {
  let count = 0;
  const extents = await readdir(join(folder, EXTENTS_FOLDER)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const names = [...(await readdir(folder)), ...extents.map((name) => join(EXTENTS_FOLDER, name))];
  for (const name of names) {
    if (!name.endsWith('.sst') && !name.endsWith('.extent')) continue;
    const path = join(folder, name);
    const { size } = await stat(path);
    if (size < tableBytesMin) continue;
    const file = await open(path, 'r+');
    for (const share of shares) {
      const at = Math.floor(size * share);
      const byte = Buffer.alloc(1);
      await file.read(byte, 0, 1, at);
      byte[0] = (byte[0] ?? 0) ^ 1;
      await file.write(byte, 0, 1, at);
      count++;
    }
    await file.close();
  }
  return count;
}

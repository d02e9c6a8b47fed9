import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { must } from '../../base/assert.ts';
import { utf8 } from '../../base/bytes/bytes.ts';
import { Corruption } from '../../base/corruption.ts';
import { AlignedMemory } from './aligned-memory.ts';
import { type ExtentFile, type ExtentIo, openExtentFolder, type ReadHow } from './extent-io.ts';
import { BLOCK_BYTES, recordBytes } from './extent-record.ts';
import { Extents } from './extents.ts';
import { FirstReads } from './first-reads.ts';

const key = utf8('key');
const BODY_BYTES = 100_000;

test('what was read lately is known, and forgotten behind many others', () => {
  const reads = new FirstReads();
  expect([reads.isFirst(-1), reads.isFirst(-1)]).toEqual([true, false]);
  for (let other = 0; other < 16 * 1024; other++) reads.isFirst(other);
  // It is known again from here on.
  expect(reads.isFirst(-1)).toBe(false);
  for (let other = 0; other < 40 * 1024; other++) reads.isFirst(other);
  expect(reads.isFirst(-1)).toBe(true);
});

/** Extents on the disk, with how each read was made. */
async function openOnDisk() {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-first-reads-'));
  const io = await openExtentFolder(join(folder, 'extents'));
  const directReads: boolean[] = [];
  const watch = (file: ExtentFile): ExtentFile => ({
    write: (buffers, offset) => file.write(buffers, offset),
    read(into, offset, how?: ReadHow) {
      directReads.push(how?.isDirect === true);
      return file.read(into, offset, how);
    },
    seal: () => file.seal(),
    close: () => file.close(),
  });
  const watched: ExtentIo = {
    // A file system without it reads through the cache all the same.
    isDirect: true,
    list: () => io.list(),
    remove: (id) => io.remove(id),
    file: (id) => watch(io.file(id)),
  };
  const memory = new AlignedMemory(1024 * 1024);
  const readMemory = new AlignedMemory(recordBytes(BODY_BYTES));
  const extents = await Extents.open({ io: watched, memory, readMemory, fileBytes: 1024 * 1024, live: [] });
  const close = async () => {
    await extents.close();
    await rm(folder, { recursive: true });
  };
  return { extents, readMemory, directReads, path: (id: number) => pathOf(folder, id), close };
}

const pathOf = (folder: string, id: number) =>
  join(folder, 'extents', `${String(id).padStart(10, '0')}.extent`);

test('a record goes past the page cache when it is read first, and through it from then on', async () => {
  const { extents, readMemory, directReads, close } = await openOnDisk();
  const bodies = [randomBytes(BODY_BYTES), randomBytes(BODY_BYTES), randomBytes(1)];
  const places = await Promise.all(bodies.map((body) => extents.append({ key, body })));
  const read = async (at: number) => {
    const found = await extents.read(key, must(places[at], 'a place'));
    expect(found?.equals(must(bodies[at], 'a body'))).toBe(true);
  };
  await read(0);
  await read(0);
  await read(2);
  expect(directReads.splice(0)).toEqual([true, false, true]);
  // While there is no memory for it, none waits.
  const taken = must(readMemory.takeNow(readMemory.sizeBytes), 'all of it');
  await read(1);
  expect(directReads.splice(0)).toEqual([false]);
  taken.release();
  await close();
});

test('one that is cut off is damaged, and its memory is used again', async () => {
  const { extents, readMemory, path, close } = await openOnDisk();
  const place = await extents.append({ key, body: randomBytes(BODY_BYTES) });
  await truncate(path(place.fileId), place.offset + 2 * BLOCK_BYTES);
  await expect(extents.read(key, place)).rejects.toThrow(Corruption);
  readMemory.takeNow(readMemory.sizeBytes)?.release();
  expect(readMemory.takeNow(readMemory.sizeBytes)).toBeDefined();
  await close();
});

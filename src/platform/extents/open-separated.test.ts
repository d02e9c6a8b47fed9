import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { utf8 } from '../../base/bytes/bytes.ts';
import { openRocksdbKv } from '../rocksdb/rocksdb-kv.ts';
import { EXTENTS_FOLDER, openSeparatedKv, writesOfDrive } from './open-separated.ts';
import { isMarkedForRegain, markForRegain } from './regain-places.ts';

const COLUMNS = {
  data: { reads: 'async', content: 'ciphertext' },
  index: { reads: 'sync', content: 'rows' },
} as const;
const SEPARATED = { column: 'data', placeColumn: 'index', placePrefix: Uint8Array.of(9) };

test('values whose rows of places are lost are regained from the extents at the next opening, and others stay', async () => {
  const parent = await mkdtemp(join(tmpdir(), 'holdfast-separated-'));
  const database = { folder: join(parent, 'chunks'), columns: COLUMNS };
  const separated = { ...database, separated: SEPARATED, separateFromBytes: 1000 };
  try {
    const bodies = new Map(
      ['lost 1', 'lost 2', 'lost 3', 'small', 'there'].map((name) => [
        name,
        randomBytes(name === 'small' ? 10 : 5000),
      ]),
    );
    const before = await openSeparatedKv(separated);
    for (const [name, body] of bodies)
      await before.commit([{ column: 'data', key: utf8(name), value: Uint8Array.from(body) }]);
    await before.close();

    const damaged = await openRocksdbKv(database);
    const lost = { gte: Buffer.concat([SEPARATED.placePrefix, utf8('l')]), lt: Buffer.from([9, 0x6d]) };
    await damaged.clear({ column: 'index', ...lost });
    await damaged.commit([]);
    await markForRegain(join(database.folder, EXTENTS_FOLDER));
    await damaged.close();

    const counts: number[] = [];
    const regained = await openSeparatedKv({
      ...separated,
      onRegained: ({ regainedCount }) => counts.push(regainedCount),
    });
    expect(counts).toEqual([3]);
    expect(isMarkedForRegain(join(database.folder, EXTENTS_FOLDER))).toBe(false);
    const values = await regained.getMany('data', [...bodies.keys()].map(utf8));
    expect(values.map((value) => value && Buffer.from(value))).toEqual([...bodies.values()]);
    await regained.close();
  } finally {
    await rm(parent, { recursive: true });
  }
});

test('a drive that hangs holds few of the threads of its process', () => {
  expect([Number.NaN, 4, 8, 32, 128].map(writesOfDrive)).toEqual([1, 1, 1, 4, 4]);
});

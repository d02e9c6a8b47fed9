import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { RocksLevel } from '@nxtedition/rocksdb';
import { expect, test, vi } from 'vitest';
import { utf8 } from '../../base/bytes/bytes.ts';
import { LIMITS } from '../../types/limits.ts';
import { openRocksdbKv } from './rocksdb-kv.ts';

test('many large rows are read on another thread, all of them', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'holdfast-large-reads-'));
  const kv = await openRocksdbKv({ folder, columns: { rows: { reads: 'sync', content: 'rows' } } });
  const readHere = vi.spyOn(RocksLevel.prototype, '_getManySync');
  try {
    const keys = Array.from({ length: 64 }, (_, at) => utf8(`key ${at}`));
    const largeValue = (at: number) => new Uint8Array(100_000).fill(at);
    await kv.commit(keys.map((key, at) => ({ column: 'rows', key, value: largeValue(at) })));
    const values = await kv.getMany('rows', [...keys, utf8('none')]);
    const readBytes = readHere.mock.results.map(({ value }) => bytesOf(value));
    expect(Math.max(...readBytes)).toBeLessThanOrEqual(LIMITS.syncReadBytesMax + 100_000);
    expect(values.map((value) => value?.[0])).toEqual([...keys.keys(), undefined]);
    // Few of them are read here.
    expect(await kv.getMany('rows', keys.slice(0, 2))).toHaveLength(2);
    expect(bytesOf(readHere.mock.results.at(-1)?.value)).toBe(200_000);
  } finally {
    readHere.mockRestore();
    await kv.close();
    await rm(folder, { recursive: true });
  }
});

function bytesOf(values: readonly (Uint8Array | null | undefined)[]): number {
  return values.reduce((sum, value) => sum + (value?.length ?? 0), 0);
}

// Which master keys the stored data needs, kept in the metadata database itself: so that an older copy of the file with the
// keys, or a database of another time, is noticed at the start and not by each request that cannot read.
import { utf8 } from '../../base/bytes/bytes.ts';
import { defineRecord } from '../../base/record-codec.ts';
import type { KvPort } from '../../ports/kv.ts';

export interface NeededKeys {
  /** Ids in the order of their making; undefined: nothing was recorded yet. */
  read(): Promise<readonly string[] | undefined>;
  /** Durable when it resolves. */
  write(keyIds: readonly string[]): Promise<void>;
}

const codec = defineRecord<{ keyIds: readonly string[] }>({ name: 'needed-keys', version: 1 });

/** Rows of shards begin with their number, of two bytes; this one is above all of them. */
const KEY = Buffer.concat([Buffer.of(0xff, 0xff), utf8('needed-keys')]);

/** In `column` of the metadata database. */
export function createNeededKeys(kv: KvPort, column = 'rows'): NeededKeys {
  return {
    async read() {
      const [row] = await kv.getMany(column, [KEY]);
      return row === undefined ? undefined : codec.decode(row).keyIds;
    },
    write: (keyIds) => kv.commit([{ column, key: KEY, value: codec.encode({ keyIds }) }]),
  };
}

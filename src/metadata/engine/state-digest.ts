// What the replicas of a shard have in common: all rows but those that say who a replica is and how far it has come. And a
// digest of a range of it, by which they are compared (R22).
import { createHash } from 'node:crypto';
import type { KvBounds, KvPort } from '../../ports/kv.ts';
import { ENGINE_TABLES } from './row-keys.ts';

export const STATE_COLUMNS = ['rows', 'bodies'] as const;

const PAGE_ROWS = 1000;
const PAGE_BYTES = 1024 * 1024;

/** Of the column `rows`. */
export function isOwnRow(key: Uint8Array): boolean {
  const { self, replica, base, applied, unlisted } = ENGINE_TABLES;
  return [self, replica, base, applied, unlisted].some(({ id }) => key[2] === id);
}

/** Hex. Nothing may be written into the range until it resolves. */
export async function digestOfState(kv: KvPort, { column, gte, lt }: KvBounds): Promise<string> {
  const hash = createHash('sha256');
  const lengths = Buffer.alloc(8);
  for (let from = gte; ; ) {
    const rows = await kv.range({ column, gte: from, lt, limit: PAGE_ROWS, bytesMax: PAGE_BYTES });
    for (const { key, value } of rows) {
      if (column === 'rows' && isOwnRow(key)) continue;
      lengths.writeUInt32BE(key.length, 0);
      lengths.writeUInt32BE(value.length, 4);
      hash.update(lengths).update(key).update(value);
    }
    const last = rows.at(-1);
    if (last === undefined) return hash.digest('hex');
    from = Buffer.concat([last.key, Uint8Array.of(0)]);
  }
}

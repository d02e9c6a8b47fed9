// Every row and every body of a shard in memory: what a command has changed, whatever it is.
import type { KvPort } from '../../../src/ports/kv.ts';

export async function storedRows(kv: Pick<KvPort, 'range'>): Promise<string[]> {
  const all: string[] = [];
  for (const column of ['rows', 'bodies']) {
    const range = { column, gte: Uint8Array.of(0), lt: new Uint8Array(64).fill(255), limit: 1e6 };
    for (const { key, value } of await kv.range(range))
      all.push(`${column} ${Buffer.from(key).toString('hex')} ${Buffer.from(value).toString('hex')}`);
  }
  return all;
}

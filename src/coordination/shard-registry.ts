// The records by which shards are owned, under `shard/<n>`.
import { assert } from '../base/assert.ts';
import type { RegisteredShard, ShardRegistryPort } from '../ports/shard-registry.ts';
import type { CoordinationContext } from './coordination-context.ts';
import { followKeys } from './follow-keys.ts';
import { shardRecord, UnreadableRecord } from './records.ts';
import { skipUnreadable } from './skip-unreadable.ts';
import type { StoredKey } from './store.ts';

const SHARD_NUMBER = /^(?:0|[1-9]\d*)$/;

export function createShardRegistry(context: CoordinationContext): ShardRegistryPort {
  const { store, clock, log } = context;
  const prefix = `${context.prefix}shard/`;

  const registered = (row: StoredKey, registryRevision: number): RegisteredShard => ({
    record: shardRecord.decode(row.key, row.value),
    revision: row.modRevision,
    registryRevision,
  });

  return {
    async read(shard) {
      const { row, revision } = await store.get(prefix + shard);
      return row && registered(row, revision);
    },
    async swap(shard, { expected, record }) {
      assert(Number.isSafeInteger(shard) && shard >= 0, `no shard: ${shard}`);
      return store.put({ key: prefix + shard, value: shardRecord.encode(record), expected });
    },
    watch(onChange, signal) {
      const report = (row: StoredKey, revision: number) => {
        const shard = row.key.slice(prefix.length);
        skipUnreadable(log, () => {
          if (!SHARD_NUMBER.test(shard)) throw new UnreadableRecord(`${row.key}: no shard`);
          onChange(Number(shard), registered(row, revision));
        });
      };
      void followKeys({
        store,
        clock,
        log,
        prefix,
        onState: (rows, revision) => {
          for (const row of rows) report(row, revision);
        },
        onChange: ({ row, revision }) => {
          if (row !== undefined) report(row, revision);
        },
        signal,
      });
    },
  };
}

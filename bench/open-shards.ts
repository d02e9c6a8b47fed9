// Shards of a single node over RocksDB, without HTTP, as the benches of metadata measure them.
import { METADATA_COLUMNS } from '../src/admin/open-databases.ts';
import { createShards, type Shards } from '../src/metadata/engine/shards.ts';
import { createLocalCoordinator } from '../src/platform/local-coordinator.ts';
import { openRocksdbKv } from '../src/platform/rocksdb/rocksdb-kv.ts';
import { systemClock, systemRandom } from '../src/platform/system-clock.ts';
import type { KvPort } from '../src/ports/kv.ts';
import type { StateMachine } from '../src/ports/state-machine.ts';

export interface OpenedShards {
  kv: KvPort;
  shards: Shards;
  close(): Promise<void>;
}

/** `folder`: of the database, which is made there. A store that fails ends the bench. */
export async function openShards(options: {
  folder: string;
  machine: StateMachine;
  shardCount: number;
}): Promise<OpenedShards> {
  const { folder, machine, shardCount } = options;
  const kv = await openRocksdbKv({ folder, columns: METADATA_COLUMNS });
  const shards = await createShards({
    kv,
    machine,
    shardCount,
    clock: systemClock,
    random: systemRandom,
    coordinator: createLocalCoordinator(kv),
    onFatal: (error) => {
      throw error;
    },
  });
  return {
    kv,
    shards,
    async close() {
      await shards.close();
      await kv.close();
    },
  };
}

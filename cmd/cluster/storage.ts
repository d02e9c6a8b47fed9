// The role storage: the chunks of one disk or several, served to the cluster. Wiring only.
import { join } from 'node:path';
import { createChunkServer } from '../../src/adapters/chunk-http/server.ts';
import { readDiskSpace } from '../../src/adapters/disk-space.ts';
import { openRocksdbKv } from '../../src/adapters/rocksdb-kv.ts';
import { createWorkerRunner } from '../../src/adapters/worker-runner.ts';
import { createDiskReserve } from '../../src/storage/disk-reserve.ts';
import { createReclaim } from '../../src/storage/reclaim.ts';
import { createStorageNode } from '../../src/storage/storage-node.ts';
import { CHUNK_COLUMNS } from '../open-databases.ts';
import type { Surroundings } from '../surroundings.ts';
import { joinCluster } from './join.ts';
import { openNodeFolder } from './node-folder.ts';
import { chunkCredentials, watchPlacement } from './open-chunks.ts';
import type { RunningRole } from './run-role.ts';

export async function startStorage(surroundings: Surroundings): Promise<RunningRole> {
  const { config, log, telemetry, clock, random, closing } = surroundings;
  const { folder, nodeId } = await openNodeFolder(surroundings, 'storage');
  const joined = await joinCluster(surroundings, { nodeId, role: 'storage' });
  const { clusterId } = joined.identity;
  const failure = Promise.withResolvers<Error>();
  const kv = await openRocksdbKv({ folder: join(folder, 'chunks'), columns: CHUNK_COLUMNS });
  closing.defer(() => kv.close());
  kv.failed.then(failure.resolve);
  const reserve = createDiskReserve({ readSpace: () => readDiskSpace(folder), clock });
  const credentials = await chunkCredentials(config);
  const server = createChunkServer({ listen: config.node.listen, clusterId, credentials, clock, log });
  const node = createStorageNode({
    ...{ clusterId, nodeId, clock, random, log, server },
    placement: watchPlacement(joined),
    disks: [{ kv, reserve }],
  });
  const { address, disks } = await node.start();
  closing.defer(() => node.stop());
  const { totalBytes } = await readDiskSpace(folder);
  joined.announce(
    address,
    disks.map(({ diskId }) => ({ diskId, capacityBytes: totalBytes })),
  );
  const reclaim = createReclaim({
    ...{ name: 'reclaim-chunks', kv, reserve, clock, log },
    pendingBytes: async () => kv.usage().pendingReclaimBytes,
    afterBytes: config.storage.reclaimAfterBytes,
    delayMs: config.storage.reclaimDelayMs,
  });
  const runner = createWorkerRunner({ workers: [reclaim], clock, log, telemetry });
  runner.start();
  closing.defer(() => runner.stop());
  return { address, nodeId, clusterId, failed: failure.promise };
}

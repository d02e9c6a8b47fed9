// A gateway of the simulated world below its HTTP: the product's router, caches, feed of identities and data path, in
// the process of a gateway site and gone with it.

import { toHex } from '../../src/base/bytes/bytes.ts';
import { createReplicatedChunks } from '../../src/chunks/copies/replicated-chunks.ts';
import type { KnownPlacement } from '../../src/chunks/placement/known-placement.ts';
import { createIdentityFeed } from '../../src/coordination/identity-feed.ts';
import { createMetadataRouter, type MetadataRouter } from '../../src/coordination/route-metadata.ts';
import { createIdentities, type Identities } from '../../src/gateway/auth/identities.ts';
import { type BucketCache, createBucketCache } from '../../src/gateway/s3/buckets/bucket-cache.ts';
import { reauthorise } from '../../src/gateway/s3/reauthorise.ts';
import { createChunkBuffers } from '../../src/objects/chunk-buffers.ts';
import { createObjectStore } from '../../src/objects/create-object-store.ts';
import { createMetadataCalls } from '../../src/objects/metadata-calls.ts';
import type { MetadataCalls, ObjectStore } from '../../src/objects/object-store.ts';
import { createShardTimes, type ShardTimes } from '../../src/objects/shard-times.ts';
import { inlineCodecPool } from '../../src/platform/codec/inline-codec-pool.ts';
import { createKeyring } from '../../src/platform/memory/memory-keyring.ts';
import type { ChunkPort, Fence } from '../../src/ports/chunks.ts';
import type { DiskDirectory } from '../../src/ports/disk-chunks.ts';
import type { IdentityFeed } from '../../src/ports/identity-feed.ts';
import type { KeyringPort } from '../../src/ports/keyring.ts';
import type { MetadataPort } from '../../src/ports/metadata/port.ts';
import type { ShardCallPort } from '../../src/ports/shard-calls.ts';
import type { RegisteredShard, ShardRegistryPort } from '../../src/ports/shard-registry.ts';
import { AppError } from '../../src/types/errors.ts';
import type { ChunkNetwork } from './chunk-network.ts';
import type { SimulatedProcess } from './clock.ts';
import type { PlacementBoard } from './placement-board.ts';
import { type Ground, loggerOf } from './sites.ts';

/** Not one for all: whoever listens to it would outlive its world. */
const never = () => new AbortController().signal;
const READ_AGAIN_MS = 300;
const NAME_BYTES = 8;
const MASTER_KEY = { activeKeyId: 'k1', keys: new Map([['k1', Buffer.alloc(32, 7)]]) };
const BODY_BUFFER_BYTES = 64 * 1024 * 1024;
export const CHUNK_BYTES = 96;
/** A body that is folded is as long as its pieces. */
const INLINE_CHUNKS = 16;

const SILENT = {
  count: () => undefined,
  observe: () => undefined,
  gauge: () => undefined,
  gaugeAll: () => undefined,
};

export interface ProductGateway {
  readonly process: SimulatedProcess;
  readonly router: MetadataRouter;
  /** As the router; shard time is learnt from its replies. */
  readonly metadata: MetadataPort;
  readonly times: ShardTimes;
  readonly keyring: KeyringPort;
  readonly buckets: BucketCache;
  /** Metadata calls of one request: a bucket that has changed is looked up again (R45). */
  calls(metadata?: MetadataPort): MetadataCalls;
}

export function openGateway(process: SimulatedProcess, ground: Ground, shardCount: number): ProductGateway {
  const { random } = process;
  const address = process.host.name;
  const router = openRouter(process, {
    shardCount,
    registry: ground.registry.port(process),
    calls: ground.calls.port(address, process),
  });
  const times = createShardTimes(process.clock);
  const metadata = times.learnFrom(router);
  const buckets = createBucketCache(metadata);
  return {
    process,
    router,
    metadata,
    buckets,
    times,
    keyring: createKeyring({ initial: MASTER_KEY, random }),
    calls: (through = metadata) =>
      createMetadataCalls({
        metadata: through,
        reauthorise(claim) {
          ground.counts.add('names: bucket looked up again');
          return reauthorise(buckets, claim, async () => undefined);
        },
      }),
  };
}

/** The router of a process, which learns of primaries from the registry. */
export function openRouter(
  process: SimulatedProcess,
  { shardCount, registry, calls }: { shardCount: number; registry: ShardRegistryPort; calls: ShardCallPort },
): MetadataRouter {
  const { clock, random } = process;
  const router = createMetadataRouter({ shardCount, calls, clock, random });
  const onRegistered = (shard: number, registered: RegisteredShard) => router.onRegistered(shard, registered);
  registry.watch(onRegistered, never());
  const read = async (shard: number) => {
    for (;;) {
      const registered = await registry.read(shard).catch(() => undefined);
      if (registered !== undefined) return router.onRegistered(shard, registered);
      await clock.sleep(READ_AGAIN_MS);
    }
  };
  for (let shard = 0; shard < shardCount; shard++) void read(shard);
  return router;
}

/** What it knows of keys and their owners, and whether that still counts (R46). */
export function openIdentities(
  { process, metadata, keyring }: ProductGateway,
  ground: Ground,
): { identities: Identities; feed: IdentityFeed; metadata: MetadataPort } {
  const { clock, random } = process;
  const log = loggerOf(process, ground.scheduler);
  const gateway = toHex(random.bytes(NAME_BYTES));
  const feed = createIdentityFeed({ metadata, clock, log, gateway });
  void feed.follow(never());
  const identities = createIdentities({ metadata: feed.metadata, keyring, random, feed });
  return { feed, identities, metadata: feed.metadata };
}

export interface OpenChunks {
  chunks: ChunkPort;
  placement: KnownPlacement;
  directory: DiskDirectory;
  /** Who takes back the memory of chunks that are written. */
  onReleased(give: (buffer: ArrayBuffer) => void): void;
}

/** Chunks over the disks of the cluster, as one process sees them. */
export function openChunks(
  process: SimulatedProcess,
  parts: { ground: Ground; chunks: ChunkNetwork; board: PlacementBoard },
): OpenChunks {
  const { ground, board } = parts;
  const placement = board.known(process);
  const directory = parts.chunks.directory({
    process,
    address: process.host.name,
    onMapVersion: (version) => placement.noteVersion(version),
  });
  let give: (buffer: ArrayBuffer) => void = () => undefined;
  const log = loggerOf(process, ground.scheduler);
  const chunks = createReplicatedChunks({
    placement,
    directory,
    clock: process.clock,
    log: {
      ...log,
      error(fields, event) {
        if (event === 'copy-damaged') ground.counts.add('chunks: damaged copy met');
        log.error(fields, event);
      },
    },
    onReleased: (buffer) => give(buffer),
  });
  return {
    chunks,
    placement,
    directory,
    onReleased(to) {
      give = to;
    },
  };
}

/** Where nothing is put, and nothing gone. */
export const NO_CHUNKS = {
  async put(): Promise<never> {
    throw new AppError('ServiceUnavailable');
  },
  async drop() {},
} as unknown as ChunkPort;

/** The data path: bodies go to chunks, every one of them, or none. */
export function openObjects(
  { process, keyring, times }: ProductGateway,
  parts: {
    ground: Ground;
    chunks?: ChunkPort;
    onReleased: OpenChunks['onReleased'];
    isInline?: boolean;
  },
): ObjectStore {
  const { clock, random } = process;
  const buffers = createChunkBuffers({ chunkSizeBytes: CHUNK_BYTES, pooledBytesMax: 1024 });
  parts.onReleased((buffer) => buffers.give(buffer));
  return createObjectStore({
    chunks: parts.chunks ?? NO_CHUNKS,
    codecs: inlineCodecPool,
    keyring,
    clock,
    random,
    buffers,
    times,
    log: loggerOf(process, parts.ground.scheduler),
    telemetry: SILENT,
    settings: {
      inlineBodyBytesMax: parts.isInline ? CHUNK_BYTES * INLINE_CHUNKS : 0,
      chunkSizeBytes: CHUNK_BYTES,
    },
    bodyBufferBytes: BODY_BUFFER_BYTES,
    fenceOf: (shard): Fence => {
      const record = parts.ground.registry.get(shard)?.record;
      return { shard, incarnation: record?.incarnation ?? 0, epoch: record?.epoch ?? 0 };
    },
  });
}

// The whole data path over memory, for tests: real shards, a real chunk store and the object store on top. Bodies go in
// and come out as Buffers; every byte that is stored can be looked at, chunks can be lost or damaged.

import { openChunkStore } from '../../../src/chunks/disk/chunk-store.ts';
import { createDiskReserve } from '../../../src/chunks/disk/disk-reserve.ts';
import { CHUNK_COLUMNS } from '../../../src/chunks/disk/keyspace.ts';
import { type ChunkRecords, createChunkBuffers } from '../../../src/objects/chunk-buffers.ts';
import { createObjectStore } from '../../../src/objects/create-object-store.ts';
import type { CustomerKey } from '../../../src/objects/customer-keys.ts';
import { createMetadataCalls } from '../../../src/objects/metadata-calls.ts';
import type {
  BodySource,
  BucketTarget,
  ByteRange,
  CopyObject,
  MetadataCalls,
  ObjectStore,
  PutObject,
  Written,
} from '../../../src/objects/object-store.ts';
import { createShardTimes, type ShardTimes } from '../../../src/objects/shard-times.ts';
import { inlineCodecPool } from '../../../src/platform/codec/inline-codec-pool.ts';
import { createKeyring } from '../../../src/platform/memory/memory-keyring.ts';
import { createMemoryKv, type MemoryKv } from '../../../src/platform/memory/memory-kv.ts';
import type { ChunkPort } from '../../../src/ports/chunks.ts';
import type { RandomPort } from '../../../src/ports/clock.ts';
import type { CodecPoolPort } from '../../../src/ports/codec-pool.ts';
import type { KeyringPort } from '../../../src/ports/keyring.ts';
import type { MetadataPort } from '../../../src/ports/metadata/port.ts';
import type { FoundVersion } from '../../../src/ports/metadata/versions.ts';
import type { StateMachine } from '../../../src/ports/state-machine.ts';
import type { AppError } from '../../../src/types/errors.ts';
import type { BucketId, BucketName, ObjectKey, VersionId } from '../../../src/types/names.ts';
import type { ObjectHeaders } from '../../../src/types/version.ts';
import { type MetadataShards, OWNER, openMetadata } from '../metadata/metadata-shards.ts';
import { createSeededRandom, type ManualClock } from '../run/simulated.ts';

const MiB = 1024 * 1024;
export const CHUNK_BYTES = 512 * 1024;
export const INLINE_BYTES_MAX = 4096;
export const HEADERS: ObjectHeaders = {
  contentType: 'text/plain',
  userMetadata: { colour: 'readable-blue' },
};

export interface ObjectWorld {
  metadata: MetadataShards;
  chunkKv: MemoryKv;
  chunks: ChunkPort;
  store: ObjectStore;
  /** Another store over the same shards, as another gateway has it. */
  anotherStore(): ObjectStore;
  /** Of the store: what it asks goes through them, and so must what a gateway over it asks. */
  times: ShardTimes;
  calls: MetadataCalls;
  /** Event names of the log. */
  events: string[];
  /** The highest that was held for bodies at any moment. */
  heldBytesMax(): number;
  heldBytes(): number;
  /** A bucket in this shard. */
  bucket(shard?: number): BucketTarget;
  put(key: string, body: Buffer, options?: PutOptions): Promise<Written>;
  find(key: string, options?: { bucket?: BucketTarget; versionId?: VersionId }): Promise<FoundVersion>;
  get(
    key: string,
    options?: { bucket?: BucketTarget; range?: ByteRange; customerKey?: CustomerKey },
  ): Promise<Buffer>;
  /** Deletes the latest version. */
  remove(key: string, options?: { bucket?: BucketTarget }): Promise<void>;
  copy(
    from: string,
    to: string,
    options?: Partial<CopyObject> & { fromBucket?: BucketTarget },
  ): Promise<Written>;
  masterKeyIds(): readonly string[];
  chunkCount(): Promise<number>;
  /** All keys and values of both stores, one after another. */
  everythingStored(): Promise<Buffer>;
}

export interface PutOptions extends Partial<Omit<PutObject, 'body'>> {
  said?: Partial<BodySource>;
  /** Sizes of the pieces that the body comes in. */
  blockBytes?: number;
}

export interface WorldOptions {
  codecs?: CodecPoolPort;
  /** Default: none. */
  records?: ChunkRecords;
  /** Default: CHUNK_BYTES. */
  largeChunkSizeBytes?: number;
  bodyBufferBytes?: number;
  /** Stands between the object store and the shards. */
  intercept?(metadata: MetadataPort): MetadataPort;
  interceptChunks?(chunks: ChunkPort): ChunkPort;
  /** Of an earlier world, as after a restart. */
  stores?: { kv: MemoryKv; chunkKv: MemoryKv; clock: ManualClock; keyring: KeyringPort };
  /** In the place of the product's. */
  machine?: StateMachine;
  /** Of its chance; after a restart another one, lest ids come back. */
  seed?: number;
}

export function sourceOf(
  body: Buffer,
  options: { blockBytes?: number; said?: Partial<BodySource> } = {},
): BodySource {
  const { blockBytes = 64 * 1024, said } = options;
  async function* pieces() {
    for (let at = 0; at < body.length; at += blockBytes)
      yield Buffer.from(body.subarray(at, at + blockBytes));
  }
  return {
    stream: pieces(),
    sizeBytes: body.length,
    awaitsContinue: false,
    trailerChecksum: () => undefined,
    ...said,
  };
}

export async function readAll(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}

/** The code of the AppError that `promise` rejects with. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'no error',
    (error: AppError) => error.code ?? String(error),
  );
}

export async function openObjectWorld(options: WorldOptions = {}): Promise<ObjectWorld> {
  const { kv, clock: given } = options.stores ?? {};
  const metadata = await openMetadata({
    shardCount: 3,
    ...(kv && { kv }),
    ...(given && { clock: given }),
    ...(options.machine && { machine: options.machine }),
    seed: options.seed ?? 1,
  });
  const { clock } = metadata;
  const events: string[] = [];
  const note = (_fields: object, event: string) => void events.push(event);
  const log = { debug: note, info: note, warn: note, error: note };
  const random: RandomPort = createSeededRandom(3 + (options.seed ?? 0));
  const chunkKv = options.stores?.chunkKv ?? createMemoryKv(CHUNK_COLUMNS);
  const reserve = createDiskReserve({
    readSpace: async () => ({ freeBytes: 1e12, totalBytes: 1e12 }),
    clock,
  });
  const chunks = await openChunkStore({ kv: chunkKv, reserve, clock, log });
  const times = createShardTimes(clock);
  const port = times.learnFrom(options.intercept?.(metadata.shards) ?? metadata.shards);
  const calls = createMetadataCalls({
    metadata: port,
    async reauthorise() {
      throw new Error('no bucket changes here');
    },
  });
  const keyring = options.stores?.keyring ?? createKeyring();
  let heldBytes = 0;
  let heldBytesMax = 0;
  const telemetry = {
    count() {},
    observe() {},
    gaugeAll() {},
    gauge(name: string, value: number) {
      if (name !== 'holdfast_body_buffer_bytes') return;
      heldBytes = value;
      heldBytesMax = Math.max(heldBytesMax, value);
    },
  };
  const { largeChunkSizeBytes } = options;
  const largeChunks = largeChunkSizeBytes === undefined ? {} : { largeChunkSizeBytes };
  const anotherStore = () =>
    createObjectStore({
      chunks: options.interceptChunks?.(chunks) ?? chunks,
      codecs: options.codecs ?? inlineCodecPool,
      keyring,
      clock,
      random,
      log,
      telemetry,
      buffers: createChunkBuffers({
        chunkSizeBytes: CHUNK_BYTES,
        ...largeChunks,
        pooledBytesMax: 8 * MiB,
        ...(options.records && { records: options.records }),
      }),
      settings: { inlineBodyBytesMax: INLINE_BYTES_MAX, chunkSizeBytes: CHUNK_BYTES, ...largeChunks },
      bodyBufferBytes: options.bodyBufferBytes ?? 64 * MiB,
      times,
      fenceOf: (shard) => ({ shard, incarnation: 1, epoch: 1 }),
    });
  const store = anotherStore();

  const buckets: BucketTarget[] = [];
  for (const shard of [0, 1, 2]) {
    const name = `bucket-${shard}` as BucketName;
    const bucketId = `b00000000000000${shard}` as BucketId;
    const created = await metadata.execute('create-bucket', { bucketId, name, owner: OWNER }, shard);
    if (created.kind !== 'created') throw new Error(created.kind);
    buckets.push({ homeShard: shard, believed: { bucketId, name, cfgVersion: created.bucket.cfgVersion } });
  }

  const world: ObjectWorld = {
    metadata,
    chunkKv,
    chunks,
    store,
    anotherStore,
    times,
    calls,
    events,
    heldBytes: () => heldBytes,
    heldBytesMax: () => heldBytesMax,
    bucket(shard = 0) {
      const bucket = buckets[shard];
      if (bucket === undefined) throw new Error(`no shard ${shard}`);
      return bucket;
    },
    put(key, body, { said, blockBytes, ...input } = {}) {
      const source = { ...(said && { said }), ...(blockBytes !== undefined && { blockBytes }) };
      return store.putObject({
        calls,
        bucket: world.bucket(),
        key: key as ObjectKey,
        owner: OWNER,
        headers: HEADERS,
        body: sourceOf(body, source),
        signal: new AbortController().signal,
        ...input,
      });
    },
    async find(key, { bucket = world.bucket(), versionId } = {}) {
      const { value } = await calls.query(
        { shard: bucket.homeShard, bucket: bucket.believed },
        'get-version',
        {
          bucketId: bucket.believed.bucketId,
          key: key as ObjectKey,
          includeBody: true,
          ...(versionId && { versionId }),
        },
      );
      if (value.kind !== 'found') throw new Error(value.kind);
      return value;
    },
    async remove(key, { bucket = world.bucket() } = {}) {
      const items = [{ key: key as ObjectKey }];
      const command = { bucketId: bucket.believed.bucketId, owner: OWNER, items };
      await metadata.execute('delete-versions', command, bucket.homeShard);
    },
    async get(key, { bucket = world.bucket(), range, customerKey } = {}) {
      const found = await world.find(key, { bucket });
      const opened = await store.openObject({
        calls,
        bucket,
        key: key as ObjectKey,
        found,
        customerKey,
        range: range ?? { offsetBytes: 0, sizeBytes: found.version.sizeBytes },
        signal: new AbortController().signal,
      });
      return opened.kind === 'bytes' ? opened.bytes : readAll(opened.stream);
    },
    async copy(from, to, { fromBucket = world.bucket(), ...input } = {}) {
      const key = from as ObjectKey;
      const source = { bucket: fromBucket, key, found: await world.find(from, { bucket: fromBucket }) };
      return store.copyObject({
        calls,
        source,
        bucket: world.bucket(),
        key: to as ObjectKey,
        owner: OWNER,
        signal: new AbortController().signal,
        ...input,
      });
    },
    masterKeyIds: () => keyring.keyIds(),
    chunkCount: async () => (await chunks.usage()).chunkCount,
    async everythingStored() {
      const all: Uint8Array[] = [];
      for (const [kv, columns] of [
        [chunkKv, CHUNK_COLUMNS],
        [metadata.kv, ['rows', 'bodies']],
      ] as const)
        for (const column of columns) {
          const rows = await kv.range({
            column,
            gte: Uint8Array.of(0),
            lt: new Uint8Array(64).fill(255),
            limit: 1e9,
          });
          for (const { key, value } of rows) all.push(key, value);
        }
      return Buffer.concat(all);
    },
  };
  return world;
}

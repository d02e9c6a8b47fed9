// Metadata shards over a memory store, for tests of commands, queries and background work: with short ways to make
// buckets, versions and parts, and to see which blobs live.

import type { FairTurns } from '../../../src/base/async/fair-turns.ts';
import { createShards, SHARD_COLUMNS, type Shards } from '../../../src/metadata/engine/shards.ts';
import { metadataMachine } from '../../../src/metadata/state-machine.ts';
import { createLocalCoordinator } from '../../../src/platform/local-coordinator.ts';
import { createMemoryKv, type MemoryKv } from '../../../src/platform/memory/memory-kv.ts';
import type { DataGrant, NewBlob } from '../../../src/ports/metadata/blobs.ts';
import type {
  CommandName,
  CommandOf,
  OutcomeOf,
  QueryName,
  QueryOf,
  ResultOf,
} from '../../../src/ports/metadata/port.ts';
import type { NewVersion } from '../../../src/ports/metadata/versions.ts';
import type { StateMachine } from '../../../src/ports/state-machine.ts';
import {
  type AccountId,
  type BlobId,
  type BucketId,
  type BucketName,
  type LinkId,
  makeBlobId,
  makeLinkId,
  type ObjectKey,
  type UploadId,
} from '../../../src/types/names.ts';
import { packOriginals } from '../../../src/types/originals.ts';
import type { WriteConditions } from '../../../src/types/preconditions.ts';
import type { BlobUse, Manifest } from '../../../src/types/version.ts';
import { createManualClock, createSeededRandom, type ManualClock } from '../run/simulated.ts';

export const OWNER = '000000000001' as AccountId;
export const BUCKET = 'b000000000000001' as BucketId;
export const BUCKET_NAME = 'bucket' as BucketName;

/** Bytes of a version or part to be: a grant, and the manifest that it is for. */
export interface NewData {
  sizeBytes: number;
  grant: DataGrant;
  uses: BlobUse[];
  manifest: Manifest;
}

export interface MetadataShards {
  kv: MemoryKv;
  clock: ManualClock;
  shards: Shards;
  /** Of shard 0 by default; throws unless the reply is `done`. */
  execute<N extends CommandName>(name: N, command: CommandOf<N>, shard?: number): Promise<OutcomeOf<N>>;
  query<N extends QueryName>(name: N, query: QueryOf<N>, shard?: number): Promise<ResultOf<N>>;
  /** BUCKET, in this versioning state. */
  createBucket(versioning?: 'unversioned' | 'enabled' | 'suspended'): Promise<void>;
  /** A new blob of shard 0 (or another), not committed by anybody yet. */
  newData(options?: { sizeBytes?: number; homeShard?: number; storage?: 'inline' | 'chunks' }): NewData;
  newLinkId(): LinkId;
  put(key: string, options?: PutOptions): Promise<OutcomeOf<'commit-version'>>;
  remove(key: string, versionId?: string): Promise<OutcomeOf<'delete-versions'>['items'][number]>;
  /** Runs condemn-blobs over all links that have ended. */
  markUnlinked(shard?: number): Promise<void>;
  /** Whether each blob is live, condemned, or not known (undefined). */
  stateOf(...blobIds: BlobId[]): Promise<('live' | 'condemned' | undefined)[]>;
  /** Key and version id (short: "v" and its order) of each version, as listed; "*" marks the latest, "-" a marker. */
  versions(): Promise<string[]>;
}

export interface PutOptions {
  data?: NewData;
  conditions?: WriteConditions;
  etag?: string;
  bucketId?: BucketId;
  version?: Partial<NewVersion>;
}

export const kek = { by: 'master' as const, keyId: 'k1', wrapped: Uint8Array.of(1, 2, 3) };

export function etagOf(text: string): string {
  return Buffer.from(text).toString('hex').padEnd(32, '0').slice(0, 32);
}

/** `kv` and `clock` of an earlier world: the shards as they are after a restart. */
export async function openMetadata(
  options: {
    shardCount?: number;
    kv?: MemoryKv;
    clock?: ManualClock;
    machine?: StateMachine;
    seed?: number;
    turns?: FairTurns;
  } = {},
): Promise<MetadataShards> {
  const { shardCount = 1 } = options;
  const kv = options.kv ?? createMemoryKv(SHARD_COLUMNS);
  const clock = options.clock ?? createManualClock(Date.parse('2024-01-01'));
  const shards = await createShards({
    kv,
    machine: options.machine ?? metadataMachine,
    shardCount,
    clock,
    // Of a restarted process another one: ids must not come back.
    random: createSeededRandom(options.seed ?? 1),
    coordinator: createLocalCoordinator(kv),
    ...(options.turns && { turns: options.turns }),
    onFatal(error) {
      throw error;
    },
  });
  const chance = createSeededRandom(2);

  const world: MetadataShards = {
    kv,
    clock,
    shards,
    async execute(name, command, shard = 0) {
      const reply = await shards.execute({ shard }, name, command);
      if (reply.kind !== 'done') throw new Error(`${name}: ${reply.kind}`);
      return reply.value;
    },
    async query(name, query, shard = 0) {
      const reply = await shards.query({ shard }, name, query);
      if (reply.kind !== 'done') throw new Error(`${name}: ${reply.kind}`);
      return reply.value;
    },
    async createBucket(versioning = 'unversioned') {
      await world.execute('create-bucket', { bucketId: BUCKET, name: BUCKET_NAME, owner: OWNER });
      if (versioning !== 'unversioned')
        await world.execute('set-bucket-config', {
          bucketId: BUCKET,
          kind: 'versioning',
          document: { status: versioning },
        });
    },
    newData({ sizeBytes = 10, homeShard = 0, storage = 'chunks' } = {}) {
      const blobId = makeBlobId({ timeMs: clock.wallMs(), homeShard, random: chance.bytes(8) });
      const use: BlobUse = {
        blobId,
        linkId: world.newLinkId(),
        sizeBytes,
        storage,
        chunkSizeBytes: 1024 * 1024,
        wrappedDataKey: Uint8Array.of(7),
      };
      const birth: NewBlob = { use, ...(storage === 'inline' && { body: new Uint8Array(sizeBytes) }) };
      return dataOf([use], { births: [birth], links: [] });
    },
    newLinkId: () => makeLinkId({ timeMs: clock.wallMs(), random: chance.bytes(10) }),
    put(key, { data = world.newData(), conditions, etag = etagOf(key), bucketId = BUCKET, version } = {}) {
      const command: CommandOf<'commit-version'> = {
        bucketId,
        key: key as ObjectKey,
        version: {
          sizeBytes: data.sizeBytes,
          etag,
          owner: OWNER,
          kek,
          sealedHeaders: Uint8Array.of(9),
          originals: packOriginals({ sizeBytes: data.sizeBytes, md5: etag.slice(0, 32) }),
          manifest: data.manifest,
          ...version,
        },
        data: data.grant,
        ...(conditions && { conditions }),
      };
      return world.execute('commit-version', command);
    },
    async remove(key, versionId) {
      const item = { key, ...(versionId !== undefined && { versionId }) } as never;
      const outcome = await world.execute('delete-versions', {
        bucketId: BUCKET,
        owner: OWNER,
        items: [item],
      });
      return outcome.items[0] as never;
    },
    async markUnlinked(shard = 0) {
      const { ended } = await world.query('list-ended-links', { limit: 1000 }, shard);
      if (ended.length > 0) await world.execute('condemn-blobs', { ended }, shard);
    },
    async stateOf(...blobIds) {
      const { blobs } = await world.query('get-blobs', { blobIds });
      return blobs.map((blob) => {
        if (blob === null) return undefined;
        return blob.condemnedAtMs === undefined ? 'live' : 'condemned';
      });
    },
    async versions() {
      const page = await world.query('list-versions', { bucketId: BUCKET, prefix: '', max: 1000 });
      return page.versions.map(({ key, versionId, isLatest, summary }) => {
        const id = versionId === 'null' ? 'null' : `v${summary.order}`;
        return `${key} ${id}${isLatest ? '*' : ''}${summary.isDeleteMarker ? '-' : ''}`;
      });
    },
  };
  return world;
}

/** The data of a version whose bytes are those of its uses, one after another. */
export function dataOf(uses: BlobUse[], grant: DataGrant): NewData {
  const segments = uses.map(({ sizeBytes }, use) => ({ use, offsetBytes: 0, sizeBytes }));
  const sizeBytes = uses.reduce((sum, use) => sum + use.sizeBytes, 0);
  return { sizeBytes, grant, uses, manifest: { kind: 'direct', uses, segments, parts: [] } };
}

/** The same bytes under a new link: what a copy within the shard commits. */
export function copyOf(data: NewData, linkId: LinkId): NewData {
  const uses = data.uses.map((use) => ({ ...use, linkId }));
  return dataOf(uses, { births: [], links: uses.map(({ blobId }) => ({ blobId, linkId })) });
}

/** An upload of `key` in BUCKET. */
export async function beginUpload(
  world: MetadataShards,
  key: string,
  checksum?: CommandOf<'create-upload'>['upload']['checksum'],
  tags?: CommandOf<'create-upload'>['upload']['tags'],
  more: Partial<CommandOf<'create-upload'>['upload']> = {},
): Promise<UploadId> {
  const outcome = await world.execute('create-upload', {
    bucketId: BUCKET,
    upload: {
      key: key as ObjectKey,
      initiator: OWNER,
      owner: OWNER,
      kek,
      sealedHeaders: Uint8Array.of(9),
      ...(checksum && { checksum }),
      ...(tags && { tags }),
      ...more,
    },
  });
  if (outcome.kind !== 'created') throw new Error(outcome.kind);
  return outcome.upload.uploadId;
}

export interface PartOptions {
  partNumber: number;
  data?: NewData;
  etag?: string;
  checksum?: CommandOf<'commit-part'>['part']['checksum'];
}

export async function putPart(
  world: MetadataShards,
  target: { key: string; uploadId: UploadId },
  options: PartOptions,
): Promise<OutcomeOf<'commit-part'>> {
  const { partNumber, data = world.newData(), etag = etagOf(`part ${partNumber}`), checksum } = options;
  const segments = data.manifest.kind === 'direct' ? data.manifest.segments : [];
  return world.execute('commit-part', {
    bucketId: BUCKET,
    key: target.key as ObjectKey,
    uploadId: target.uploadId,
    part: {
      partNumber,
      sizeBytes: data.sizeBytes,
      etag,
      uses: data.uses,
      segments,
      ...(checksum && { checksum }),
    },
    data: data.grant,
  });
}

/** An account that may own ten buckets. */
export async function createAccount(world: MetadataShards, accountId: AccountId): Promise<void> {
  const account = { accountId, name: 'n', email: 'e', canonicalId: 'c', state: 'paid' as const };
  await world.execute('create-account', {
    account: { ...account, bucketsMax: 10, isRoot: false },
    accessKey: { accessKey: 'AK', sealedSecret: kek },
  });
}

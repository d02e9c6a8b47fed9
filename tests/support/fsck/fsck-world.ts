// A world for fsck: the object world of object-world.ts with its buckets' names and their owner, something of every kind
// stored in it, and ways to damage rows beneath the shards, to mend them again, and to compare all.

import { must } from '../../../src/base/assert.ts';
import { compareAll } from '../../../src/fsck/compare-all.ts';
import { type FsckOptions, FsckRun } from '../../../src/fsck/run.ts';
import { keyOfRow, rowKey } from '../../../src/metadata/engine/row-keys.ts';
import {
  accountBucketRow,
  accountRow,
  bucketRow,
  nameRow,
  TABLES,
} from '../../../src/metadata/schema/keyspace.ts';
import type { Row, RowAddress } from '../../../src/ports/state-machine.ts';
import type { Finding, FindingKind, FindingPlace } from '../../../src/types/findings.ts';
import {
  type BlobId,
  type BucketId,
  makeBlobId,
  type ObjectKey,
  type UploadId,
} from '../../../src/types/names.ts';
import { accountCodec, bucketCodec, nameCodec } from '../../../src/types/records/rows.ts';
import type { BlobUse, VersionRecord } from '../../../src/types/version.ts';
import { createAccount, kek, OWNER } from '../metadata/metadata-shards.ts';
import { append } from '../objects/appends.ts';
import { beginUpload, uploadCopies } from '../objects/object-uploads.ts';
import {
  CHUNK_BYTES,
  type ObjectWorld,
  openObjectWorld,
  sourceOf,
  type WorldOptions,
} from '../objects/object-world.ts';

const MiB = 1024 * 1024;

export interface FsckWorldOptions extends WorldOptions {
  /** Its buckets have their names, and nothing is in them. */
  isEmpty?: boolean;
  /** Over the stores of an earlier one. */
  isRestarted?: boolean;
}

/** What is planted, what fsck must count then, kind by kind, and where it must see some of it. */
export type Damage = [
  what: string,
  counts: Partial<Record<FindingKind, number>>,
  plant: (world: FsckWorld) => Promise<[kind: FindingKind, place: FindingPlace][]>,
];

/** The latest version of a key, where a finding would place it, and the first use of its data. */
export interface SeenVersion {
  version: VersionRecord;
  bucketId: BucketId;
  key: ObjectKey;
  use: BlobUse;
  place: FindingPlace;
}

export interface FsckWorld extends ObjectWorld {
  seen(key: string, shard?: number): Promise<SeenVersion>;
  /** Of a blob that nobody knows. */
  newBlobId(ageMs?: number, homeShard?: number): BlobId;
  /** Open, of bucket 0, with two parts. */
  uploadId: UploadId;
  fsck(options?: Partial<FsckOptions>): Promise<{ findings: Finding[]; pending: string[]; run: FsckRun }>;
  /** Rows of a table of a shard, by their own keys. */
  rows(table: keyof typeof TABLES, shard?: number): Promise<Row[]>;
  /** Puts (or removes) rows beneath the shards, until `mend`. */
  plant(address: RowAddress, value: Uint8Array | null, shard?: number): Promise<void>;
  plantChunk(column: 'data' | 'index', key: Uint8Array, value: Uint8Array | null): Promise<void>;
  mend(): Promise<void>;
}

/**
 * Bucket 0 is unversioned, 1 has versions, 2 is in yet another shard. In each: an inline object, one of three chunks,
 * copies of both from elsewhere; in bucket 0 an object of a paged manifest, one of small appends and an open upload; in bucket 1 older versions
 * and a marker. The claims that shard 1 holds are confirmed, the others pending; one blob is condemned.
 */
export async function openFsckWorld(options: FsckWorldOptions = {}): Promise<FsckWorld> {
  const world = await openObjectWorld(options);
  const { metadata } = world;
  let undo: (() => Promise<void>)[] = [];
  async function replace(
    kv: ObjectWorld['chunkKv'],
    row: { column: string; key: Uint8Array; value: Uint8Array | null },
  ): Promise<void> {
    const [before] = await kv.getMany(row.column, [row.key]);
    undo.push(() => kv.commit([{ ...row, value: before ?? null }]));
    await kv.commit([row]);
  }
  const fsckWorld: FsckWorld = {
    ...world,
    uploadId: '' as UploadId,
    async fsck({ readData = false, fullSpeed = false } = {}) {
      const { signal } = new AbortController();
      // The world's accounts are under a key of their own.
      const keyIds = () => [kek.keyId, ...world.masterKeyIds()];
      const deps = { metadata: metadata.shards, chunks: world.chunks, clock: metadata.clock, keyIds };
      const run = new FsckRun(deps, { readData, fullSpeed }, signal);
      await compareAll(run);
      const pending = [...run.pending.values()].map(({ kind, count }) => `${kind} ${count}`);
      return { findings: run.findings, pending, run };
    },
    async seen(key, shard = 0) {
      const bucket = world.bucket(shard);
      const { version } = await world.find(key, { bucket });
      const { bucketId, name } = bucket.believed;
      const uses = version.manifest.kind === 'direct' ? version.manifest.uses : [];
      const place = { shard, bucket: name, key, version: version.versionId };
      return { version, bucketId, key: key as ObjectKey, use: uses[0] as BlobUse, place };
    },
    newBlobId(ageMs = 0, homeShard = 0) {
      const timeMs = metadata.clock.wallMs() - ageMs;
      return makeBlobId({ timeMs, homeShard, random: new Uint8Array(8).fill(7) });
    },
    async rows(table, shard = 0) {
      const { column } = TABLES[table];
      const gte = rowKey(shard, TABLES[table], new Uint8Array(0));
      const lt = rowKey(shard, TABLES[table], new Uint8Array(64).fill(0xff));
      const rows = await metadata.kv.range({ column, gte, lt, limit: 1e6 });
      return rows.map(({ key, value }) => ({ key: keyOfRow(key), value }));
    },
    plant: ({ table, key }, value, shard = 0) =>
      replace(metadata.kv, { column: table.column, key: rowKey(shard, table, key), value }),
    plantChunk: (column, key, value) => replace(world.chunkKv, { column, key, value }),
    async mend() {
      for (const step of undo.reverse()) await step();
      undo = [];
    },
  };
  if (options.isRestarted !== true) await nameBuckets(fsckWorld);
  if (options.isRestarted !== true && options.isEmpty !== true) await store(fsckWorld);
  undo = [];
  return fsckWorld;
}

async function nameBuckets({ metadata, bucket, rows, plant }: FsckWorld): Promise<void> {
  await createAccount(metadata, OWNER);
  const account = accountCodec.decode(must((await rows('accounts'))[0], 'an account').value);
  await plant(accountRow(OWNER), accountCodec.encode({ ...account, bucketCount: 3 }));
  for (const shard of [0, 1, 2]) {
    const { bucketId, name } = bucket(shard).believed;
    const place = { bucketId, homeShard: shard, owner: OWNER };
    const record = nameCodec.encode({ ...place, state: 'active', createdAtMs: 0 });
    await plant(nameRow(name), record);
    await plant(accountBucketRow(OWNER, name), record);
  }
}

async function store(world: FsckWorld): Promise<void> {
  const { metadata, bucket, put, copy } = world;
  const versions = bucket(1).believed.bucketId;
  const row = must((await world.rows('buckets', 1))[0], 'a bucket').value;
  // Beneath the shard, because that leaves the claims of the world's buckets as they are.
  const enabled = bucketCodec.encode({ ...bucketCodec.decode(row), versioning: 'enabled' });
  await world.plant(bucketRow(versions), enabled, 1);
  for (const shard of [0, 1, 2]) {
    await put('inline', Buffer.alloc(100, 'i'), { bucket: bucket(shard) });
    await put('chunked', Buffer.alloc(3 * CHUNK_BYTES - 5, 'c'), { bucket: bucket(shard) });
  }
  for (const shard of [1, 2]) {
    await copy('chunked', 'from 0', { bucket: bucket(shard) });
    await copy('inline', 'inline from 0', { bucket: bucket(shard) });
    await copy('inline', 'replaced', { bucket: bucket(shard) });
    await put('replaced', Buffer.alloc(10, 'r'), { bucket: bucket(shard) });
  }
  await copy('chunked', 'beside');
  // A copy in another shard, and more behind what that has.
  await put('grown', Buffer.alloc(10, 'g'));
  for (const target of ['first', 'second', 'third']) await append(world, 'grown', Buffer.from(target));
  await copy('grown', 'grown from 0', { bucket: bucket(1) });
  await append(world, 'grown', Buffer.from('fourth'));
  await put('five', Buffer.alloc(5 * MiB, '5'));
  const range = { offsetBytes: 0, sizeBytes: 5 * MiB };
  await uploadCopies(world, { from: 'five', to: 'paged', ranges: new Array(65).fill(range) });
  await put('gone', Buffer.alloc(CHUNK_BYTES, 'g'));
  const owner = OWNER;
  const items = [{ key: 'gone' as ObjectKey }];
  await metadata.execute('delete-versions', { bucketId: bucket().believed.bucketId, owner, items });
  await put('marked', Buffer.alloc(10, 'm'), { bucket: bucket(1) });
  const marked = [{ key: 'marked' as ObjectKey }];
  await metadata.execute('delete-versions', { bucketId: versions, owner, items: marked }, 1);
  const part = await beginUpload(world, 'upload');
  for (const partNumber of [1, 2]) {
    await world.store.putPart({ ...part(partNumber), body: sourceOf(Buffer.alloc(CHUNK_BYTES, 'p')) });
  }
  world.uploadId = part(1).upload.uploadId;
  for (const shard of [0, 1, 2]) await metadata.markUnlinked(shard);
  const { claims } = await metadata.query('list-pending-claims', { olderThanMs: -1, limit: 100 });
  const ofOne = claims.filter(({ shard }) => shard === 1);
  const { held } = await metadata.query('resolve-claims', { claims: ofOne }, 1);
  const settled = ofOne.flatMap((claim, at) =>
    held[at] ? [{ ...claim, verdict: 'confirmed' as const }] : [],
  );
  await metadata.execute('settle-claims', { claims: settled });
}

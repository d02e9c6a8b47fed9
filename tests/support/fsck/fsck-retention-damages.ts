// Damage among what protects versions, for src/fsck/fsck.test.ts.
import { must } from '../../../src/base/assert.ts';
import { bucketConfigRow, bucketRow, currentRow, TABLES } from '../../../src/metadata/schema/keyspace.ts';
import type { FindingKind, FindingPlace } from '../../../src/types/findings.ts';
import type { VersionProtection } from '../../../src/types/protection.ts';
import {
  type BucketRecord,
  bucketCodec,
  bucketConfigCodec,
  uploadCodec,
} from '../../../src/types/records/rows.ts';
import { encodeVersion } from '../../../src/types/records/version-record.ts';
import type { Damage, FsckWorld } from './fsck-world.ts';

type Places = [kind: FindingKind, place: FindingPlace][];
const FAR_MS = Date.UTC(10_000, 0, 1);

/** The row of the bucket in shard 2, with changes; where one of its finding places is. */
async function changeBucket(world: FsckWorld, changes: Partial<BucketRecord>): Promise<FindingPlace> {
  const { bucketId } = world.bucket(2).believed;
  const { bucket } = await world.metadata.query('get-bucket', { bucketId }, 2);
  const changed = { ...must(bucket, 'a bucket'), ...changes };
  await world.plant(bucketRow(bucketId), bucketCodec.encode(changed), 2);
  return { shard: 2, bucket: changed.name, table: 'buckets' };
}

async function plantDocument(world: FsckWorld, document: object): Promise<void> {
  const { bucketId } = world.bucket(2).believed;
  const row = bucketConfigCodec.encode({ document, changedAtMs: 1 });
  await world.plant(bucketConfigRow(bucketId, 'objectLock'), row, 2);
}

/** A version in shard 2 is protected like this. */
async function protect(world: FsckWorld, protection: VersionProtection): Promise<FindingPlace> {
  const { version, bucketId, key, place } = await world.seen('inline', 2);
  await world.plant(currentRow(bucketId, key), encodeVersion({ ...version, protection }), 2);
  return place;
}

const PROTECTIONS: readonly VersionProtection[] = [
  { legalHold: true },
  { retention: { mode: 'COMPLIANCE', untilMs: 1 } },
  { compliance: { conditionalHold: true } },
];

export const RETENTION_DAMAGES: readonly Damage[] = [
  ...PROTECTIONS.map(
    (protection): Damage => [
      `a protected version that nothing asks for: ${JSON.stringify(protection)}`,
      { 'retention-unasked': 1 },
      async (world): Promise<Places> => [['retention-unasked', await protect(world, protection)]],
    ],
  ),
  [
    'an upload of a protected version that nothing would ask for',
    { 'retention-unasked': 1 },
    async (world) => {
      const { key, value } = must((await world.rows('uploads'))[0], 'an upload');
      const upload = uploadCodec.decode(value);
      const row = uploadCodec.encode({ ...upload, protection: { legalHold: true } });
      await world.plant({ table: TABLES.uploads, key }, row);
      return [['retention-unasked', { shard: 0, upload: upload.uploadId }]];
    },
  ],
  [
    'a bucket with object lock that is not marked for it',
    { 'retention-unasked': 1, 'broken-row': 1 },
    async (world) => {
      const place = await changeBucket(world, { versioning: 'enabled', objectLock: {} });
      await plantDocument(world, {});
      return [['retention-unasked', place]];
    },
  ],
  [
    'object lock where versions are replaced',
    { 'lock-misplaced': 1 },
    async (world) => {
      const place = await changeBucket(world, { mayProtect: true, objectLock: {} });
      await plantDocument(world, {});
      return [['lock-misplaced', { ...place, note: 'unversioned' }]];
    },
  ],
  [
    'object lock without its document',
    { 'config-missing': 1 },
    async (world) => {
      const place = await changeBucket(world, { mayProtect: true, versioning: 'enabled', objectLock: {} });
      return [['config-missing', { ...place, note: 'objectLock' }]];
    },
  ],
  [
    'object lock and compliance at once, without their documents',
    { 'config-missing': 2, 'lock-misplaced': 1 },
    async (world) => {
      const settings = { retentionDays: 1, conditionalHold: false, deleteAfterRetention: false };
      const compliance = { isEnabled: true, ...settings };
      const rules = { versioning: 'enabled' as const, objectLock: {}, compliance };
      const place = await changeBucket(world, { mayProtect: true, ...rules });
      return [['lock-misplaced', { ...place, note: 'compliance' }]];
    },
  ],
  [
    'a default retention of more than a hundred years',
    { 'retention-far': 1 },
    async (world) => {
      const objectLock = { defaultRetention: { mode: 'COMPLIANCE' as const, days: 36_501 } };
      const place = await changeBucket(world, { mayProtect: true, versioning: 'enabled', objectLock });
      await plantDocument(world, objectLock);
      return [['retention-far', place]];
    },
  ],
  [
    'retention of a version behind the last date that there is',
    { 'retention-far': 1 },
    async (world) => {
      await changeBucket(world, { mayProtect: true });
      const place = await protect(world, { retention: { mode: 'COMPLIANCE', untilMs: FAR_MS } });
      return [['retention-far', place]];
    },
  ],
];

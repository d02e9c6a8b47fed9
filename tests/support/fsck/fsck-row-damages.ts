// Damage among rows, for src/fsck/fsck.test.ts: versions, counters, uploads, names, accounts. Of what is kept of requests:
// fsck-outcome-damages.ts.
import { must } from '../../../src/base/assert.ts';
import { utf8 } from '../../../src/base/bytes/bytes.ts';
import { identityChangeRow } from '../../../src/metadata/accounts/identity-changes.ts';
import { ENGINE_TABLES } from '../../../src/metadata/engine/row-keys.ts';
import { eventCursorRow, eventRow } from '../../../src/metadata/events/event-rows.ts';
import { jobRow, markOf, openJobRow } from '../../../src/metadata/jobs/jobs.ts';
import { u48 } from '../../../src/metadata/schema/key-parts.ts';
import {
  accountBucketRow,
  accountEmailRow,
  accountRow,
  bucketConfigRow,
  bucketRow,
  currentRow,
  customerInvoiceRow,
  identityRow,
  invoiceRow,
  lifecycleRow,
  lifecycleTimeRow,
  markerRow,
  nameRow,
  outboxRow,
  PRESENT,
  TABLES,
  uploadRow,
  uploadTimeRow,
  versionIdRow,
  versionRow,
} from '../../../src/metadata/schema/keyspace.ts';
import type { BucketId, BucketName, JobId, ObjectKey, OutboxId } from '../../../src/types/names.ts';
import { NO_ORIGINALS } from '../../../src/types/originals.ts';
import { invoiceCodec } from '../../../src/types/records/billing-records.ts';
import { eventCodec, eventCursorCodec } from '../../../src/types/records/event-record.ts';
import { identityCodec, identityKeys } from '../../../src/types/records/identity-records.ts';
import { jobCodec, type MovePrefixJob } from '../../../src/types/records/job-record.ts';
import { lifecycleCodec } from '../../../src/types/records/lifecycle-record.ts';
import {
  type BucketRecord,
  bucketCodec,
  bucketConfigCodec,
  identityChangeCodec,
  type NameRecord,
  nameCodec,
  outboxCodec,
} from '../../../src/types/records/rows.ts';
import { encodeVersion } from '../../../src/types/records/version-record.ts';
import type { VersionRecord } from '../../../src/types/version.ts';
import { OWNER } from '../metadata/metadata-shards.ts';
import type { Damage, FsckWorld } from './fsck-world.ts';

/** The name's row of the bucket in this shard, with changes. */
async function nameOf(world: FsckWorld, shard: number, changes: Partial<NameRecord> = {}) {
  const { name } = world.bucket(shard).believed;
  const { record } = await world.metadata.query('find-name', { name });
  return nameCodec.encode({ ...must(record, 'a name'), ...changes });
}

/** The row of the bucket in shard 2, with changes. */
async function changeBucket(world: FsckWorld, changes: Partial<BucketRecord>): Promise<BucketRecord> {
  const { bucketId } = world.bucket(2).believed;
  const { bucket } = await world.metadata.query('get-bucket', { bucketId }, 2);
  const changed = { ...must(bucket, 'a bucket'), ...changes };
  await world.plant(bucketRow(bucketId), bucketCodec.encode(changed), 2);
  return changed;
}

/** A job in shard 2 that renames a key of its bucket in several entries, and its mark while it is under way. */
async function plantKeyMove(
  world: FsckWorld,
  ended: { endedAtMs?: number } = {},
): Promise<Pick<MovePrefixJob, 'jobId'> & { from: ObjectKey; to: ObjectKey }> {
  const { bucketId } = world.bucket(2).believed;
  const jobId = '04'.repeat(14) as JobId;
  const keys = { from: 'a' as ObjectKey, to: 'b' as ObjectKey };
  const hasEnded = ended.endedAtMs !== undefined;
  const job: MovePrefixJob = {
    kind: 'move-prefix',
    isKey: true,
    jobId,
    bucketId,
    ...keys,
    overwrites: true,
    beganAtMs: 1,
    steppedAtMs: 1,
    stepCount: 0,
    ...ended,
    leg: 0,
    movedCount: 1,
    errorCount: 0,
    errors: [],
    ...(!hasEnded && { within: { ...keys, base: 0 } }),
  };
  await world.plant(jobRow(jobId), jobCodec.encode(job), 2);
  if (!hasEnded) await world.plant(openJobRow(job), markOf(job), 2);
  return { jobId, ...keys };
}

export const ROW_DAMAGES: readonly Damage[] = [
  [
    'a document of versioning that its bucket does not follow',
    { 'broken-row': 1 },
    async (world) => {
      const { bucketId, name } = await changeBucket(world, {});
      const row = bucketConfigCodec.encode({ document: { status: 'suspended' }, changedAtMs: 1 });
      await world.plant(bucketConfigRow(bucketId, 'versioning'), row, 2);
      return [['broken-row', { shard: 2, bucket: name, table: 'bucketConfigs', note: 'versioning' }]];
    },
  ],
  [
    'a document of a bucket that is gone',
    { 'queue-orphaned': 1 },
    async (world) => {
      const bucketId = 'ff'.repeat(8) as BucketId;
      const row = bucketConfigCodec.encode({ document: { status: 'enabled' }, changedAtMs: 1 });
      await world.plant(bucketConfigRow(bucketId, 'versioning'), row, 2);
      return [['queue-orphaned', { shard: 2, bucket: bucketId, table: 'bucketConfigs', note: 'versioning' }]];
    },
  ],
  [
    'a bucket that is closing, whose job is gone',
    { 'queue-missing': 1 },
    async (world) => {
      const { name } = await changeBucket(world, { state: 'closing', jobId: '01'.repeat(14) as JobId });
      return [['queue-missing', { shard: 2, bucket: name, table: 'jobs' }]];
    },
  ],
  [
    'the job of a forced deletion of which its bucket knows nothing',
    { 'queue-orphaned': 1, 'counter-wrong': 1 },
    async (world) => {
      const { bucketId, name } = await changeBucket(world, {});
      const jobId = '02'.repeat(14) as JobId;
      const times = { beganAtMs: 1, steppedAtMs: 1, stepCount: 0 };
      const counts = { totalCount: 0, removedCount: 0 };
      const job = {
        kind: 'empty-bucket',
        stage: 'look',
        jobId,
        bucketId,
        name,
        ...times,
        ...counts,
      } as const;
      await world.plant(jobRow(jobId), jobCodec.encode(job), 2);
      await world.plant(openJobRow(job), PRESENT, 2);
      return [['queue-orphaned', { shard: 2, bucket: name, table: 'jobs', note: jobId }]];
    },
  ],
  [
    'a key that is being renamed, whose job is gone',
    { 'queue-missing': 1 },
    async (world) => {
      const rename = { jobId: '03'.repeat(14) as JobId, from: 'a' as ObjectKey, to: 'b' as ObjectKey };
      const { name } = await changeBucket(world, { keyRenames: [rename] });
      return [['queue-missing', { shard: 2, bucket: name, key: 'a', table: 'jobs', note: rename.jobId }]];
    },
  ],
  [
    'a key that is being renamed, whose job has ended',
    { 'queue-missing': 1, 'counter-wrong': 1 },
    async (world) => {
      const { jobId, from, to } = await plantKeyMove(world, { endedAtMs: 2 });
      const { name } = await changeBucket(world, { keyRenames: [{ jobId, from, to }] });
      return [['queue-missing', { shard: 2, bucket: name, key: from, table: 'jobs', note: jobId }]];
    },
  ],
  [
    'the job of a key that is being renamed, of which its bucket knows nothing',
    { 'queue-orphaned': 1, 'counter-wrong': 1 },
    async (world) => {
      const { name } = await changeBucket(world, {});
      const { jobId } = await plantKeyMove(world);
      return [['queue-orphaned', { shard: 2, bucket: name, key: 'a', table: 'jobs', note: jobId }]];
    },
  ],
  [
    'the job of a key that is being renamed, whose bucket knows another key',
    { 'queue-orphaned': 1, 'queue-missing': 1, 'counter-wrong': 1 },
    async (world) => {
      const { jobId, from } = await plantKeyMove(world);
      const keyRenames = [{ jobId, from, to: 'c' as ObjectKey }];
      const { name } = await changeBucket(world, { keyRenames });
      return [
        ['queue-orphaned', { shard: 2, bucket: name, key: from, table: 'jobs', note: jobId }],
        ['queue-missing', { shard: 2, bucket: name, key: from, table: 'jobs', note: jobId }],
      ];
    },
  ],
  [
    'the objects of a bucket miscounted',
    { 'counter-wrong': 1 },
    async (world) => {
      const { bucketId, name } = world.bucket(2).believed;
      const key = utf8(`bucket/${bucketId}/objects`);
      await world.plant({ table: ENGINE_TABLES.counters, key }, null, 2);
      return [['counter-wrong', { shard: 2, bucket: name, note: '0 objects, is 5' }]];
    },
  ],
  [
    'the bytes of a shard miscounted',
    { 'counter-wrong': 1 },
    async (world) => {
      await world.plant({ table: ENGINE_TABLES.counters, key: utf8('bytes') }, null, 2);
      return [['counter-wrong', { shard: 2 }]];
    },
  ],
  [
    'two latest versions of a key',
    { 'two-latest': 2 },
    async (world) => {
      const { bucketId, key, place } = await world.seen('inline', 1);
      const manifest: VersionRecord['manifest'] = { kind: 'direct', uses: [], segments: [], parts: [] };
      const { version } = await world.seen('inline', 1);
      const { checksum: _, kek: __, sealedHeaders: ___, ...rest } = version;
      const marker = {
        ...rest,
        isDeleteMarker: true,
        etag: '',
        sizeBytes: 0,
        originals: NO_ORIGINALS,
        manifest,
      };
      await world.plant(markerRow(bucketId, key), encodeVersion(marker), 1);
      return [['two-latest', place]];
    },
  ],
  [
    'an object among the markers',
    { 'version-misplaced': 1 },
    async (world) => {
      const { bucketId, key, version, place } = await world.seen('inline', 1);
      await world.plant(currentRow(bucketId, key), null, 1);
      await world.plant(markerRow(bucketId, key), encodeVersion(version), 1);
      return [['version-misplaced', place]];
    },
  ],
  [
    'the latest version gone from above an older one',
    { 'no-latest': 1, 'link-orphaned': 1, 'counter-wrong': 6 },
    async (world) => {
      const { bucketId, key, use } = await world.seen('replaced', 1);
      await world.plant(currentRow(bucketId, key), null, 1);
      return [
        ['no-latest', { shard: 1, bucket: 'bucket-1', key }],
        ['link-orphaned', { shard: 1, blob: use.blobId, link: use.linkId }],
      ];
    },
  ],
  [
    'an older version that is newer',
    { 'order-wrong': 1, 'index-missing': 1, 'counter-wrong': 6 },
    async (world) => {
      const { bucketId, key, version, place } = await world.seen('inline', 1);
      const newer = { ...version, order: version.order + 1 };
      await world.plant(versionRow(bucketId, key, newer.order), encodeVersion(newer), 1);
      return [['order-wrong', place]];
    },
  ],
  [
    'an index row of a version gone',
    { 'index-missing': 1 },
    async (world) => {
      const [row] = await world.rows('versionIds', 1);
      await world.plant({ table: TABLES.versionIds, key: must(row, 'a row').key }, null, 1);
      return [['index-missing', { shard: 1, bucket: 'bucket-1' }]];
    },
  ],
  [
    'an index row of no version',
    { 'index-orphaned': 1 },
    async (world) => {
      const { bucketId, key, version } = await world.seen('inline', 1);
      await world.plant(versionIdRow(bucketId, key, version.versionId), u48(17), 1);
      return [['index-orphaned', { shard: 1, key, version: version.versionId }]];
    },
  ],
  [
    'the time of an upload gone',
    { 'index-missing': 1, 'upload-missing': 2 },
    async (world) => {
      const { uploadId: upload } = world;
      await world.plant(uploadTimeRow(upload), null);
      return [
        ['index-missing', { shard: 0, bucket: 'bucket-0', key: 'upload', upload }],
        ['upload-missing', { shard: 0, upload, part: 1 }],
      ];
    },
  ],
  [
    'an upload gone',
    { 'index-orphaned': 1 },
    async (world) => {
      const { uploadId: upload } = world;
      await world.plant(uploadRow(world.bucket().believed.bucketId, 'upload' as ObjectKey, upload), null);
      return [['index-orphaned', { shard: 0, upload, table: 'uploadTimes' }]];
    },
  ],
  [
    'a name gone',
    { 'name-missing': 1, 'index-orphaned': 1, 'counter-wrong': 1 },
    async (world) => {
      const { name, bucketId } = world.bucket(2).believed;
      await world.plant(nameRow(name), null);
      return [['name-missing', { shard: 2, bucket: name, note: bucketId }]];
    },
  ],
  [
    'a bucket gone',
    { 'bucket-missing': 6, 'name-orphaned': 1, 'counter-wrong': 3 },
    async (world) => {
      const { name, bucketId } = world.bucket(2).believed;
      await world.plant(bucketRow(bucketId), null, 2);
      return [
        ['bucket-missing', { shard: 2, bucket: bucketId, key: 'chunked' }],
        ['name-orphaned', { shard: 0, bucket: name, note: bucketId }],
      ];
    },
  ],
  [
    'a rename whose other name is gone',
    { 'rename-broken': 1, 'queue-missing': 1 },
    async (world) => {
      const { name } = world.bucket(1).believed;
      const change = { other: 'b' as BucketName, nameEpoch: 1, itemId: 'f'.repeat(28) as OutboxId };
      await world.plant(nameRow(name), await nameOf(world, 1, { state: 'leaving', change }));
      return [
        ['rename-broken', { shard: 0, bucket: name, note: 'b' }],
        ['queue-missing', { shard: 0, bucket: name }],
      ];
    },
  ],
  [
    'a name that leaves, and nobody knows for which',
    { 'rename-broken': 1 },
    async (world) => {
      const { name } = world.bucket(1).believed;
      await world.plant(nameRow(name), await nameOf(world, 1, { state: 'leaving' }));
      return [['rename-broken', { shard: 0, bucket: name, note: 'leaving' }]];
    },
  ],
  [
    'a message of a rename that is over',
    { 'queue-orphaned': 1 },
    async (world) => {
      const { name, bucketId } = world.bucket(1).believed;
      const to = 'other' as BucketName;
      const item = { kind: 'rename-bucket', homeShard: 1, bucketId, from: name, to, nameEpoch: 1 } as const;
      await world.plant(outboxRow('0'.repeat(28) as OutboxId), outboxCodec.encode(item));
      return [['queue-orphaned', { shard: 0, bucket: name, table: 'outbox', note: to }]];
    },
  ],
  [
    'a bucket under two names',
    { 'name-orphaned': 1, 'counter-wrong': 1 },
    async (world) => {
      const name = 'second' as BucketName;
      const record = await nameOf(world, 1);
      await world.plant(nameRow(name), record);
      await world.plant(accountBucketRow(OWNER, name), record);
      return [['name-orphaned', { shard: 0, bucket: name }]];
    },
  ],
  [
    'a name that its owner sees before it is there',
    { 'index-orphaned': 1, 'name-missing': 1, 'rename-broken': 1, 'queue-missing': 1, 'counter-wrong': 1 },
    async (world) => {
      const { name } = world.bucket(1).believed;
      const change = { other: name, nameEpoch: 1, itemId: 'f'.repeat(28) as OutboxId };
      const entering = 'entering' as BucketName;
      const record = await nameOf(world, 1, { state: 'entering', change });
      await world.plant(nameRow(entering), record);
      await world.plant(nameRow(name), null);
      return [['index-orphaned', { shard: 0, bucket: name, table: 'accountBuckets' }]];
    },
  ],
  [
    'a bucket that its owner does not see',
    { 'index-missing': 1 },
    async (world) => {
      const { name } = world.bucket(1).believed;
      await world.plant(accountBucketRow(OWNER, name), null);
      return [['index-missing', { shard: 0, bucket: name }]];
    },
  ],
  [
    'an account that its e-mail does not find',
    { 'index-missing': 1 },
    async (world) => {
      await world.plant(accountEmailRow('e'), null);
      return [['index-missing', { shard: 0, note: 'email' }]];
    },
  ],
  [
    'a change of identities gone from between two others',
    { 'index-missing': 1 },
    async (world) => {
      for (const seq of [1, 2, 4]) {
        const change = identityChangeCodec.encode({ accountId: OWNER, mark: `${seq}` });
        await world.plant(identityChangeRow(seq), change);
      }
      return [['index-missing', { shard: 0, account: OWNER, table: 'identityChanges' }]];
    },
  ],
  [
    'a user of a group that is gone',
    { 'index-orphaned': 1 },
    async (world) => {
      const holder = { id: 'AIDA', name: 'u', path: '/', createdAtMs: 0, inlinePolicies: [] };
      const user = { ...holder, attachedPolicies: [], tags: [], accessKeys: [], mfaDevices: [] };
      const record = identityCodec.encode({ kind: 'user', ...user, groups: ['AGPAGONE'] });
      const key = identityKeys.user('u');
      await world.plant(identityRow(OWNER, key), record);
      return [['index-orphaned', { shard: 0, account: OWNER, note: key, table: 'identities' }]];
    },
  ],
  [
    'an invoice that its month does not find, beyond the count of invoices, and one that is gone',
    { 'index-missing': 2, 'index-orphaned': 1, 'counter-wrong': 1 },
    async (world) => {
      const party = { id: 5, name: 'n', email: 'e' };
      const line = { quantity: '0', unitCost: '0', totalCost: '0' };
      const record = invoiceCodec.encode({
        id: 9,
        controlInvoiceId: 1,
        month: '2026-04',
        customer: { ...party, accountId: OWNER },
        control: party,
        currency: 'USD',
        total: '0.00',
        lines: {
          activeStorage: line,
          deletedStorage: line,
          apiCalls: line,
          ingress: line,
          egress: line,
          minimumActiveStorage: line,
        },
        segments: [],
        days: { charged: 0, trial: 0, deleted: 0, none: 30, suspended: 0 },
        closedAtMs: 0,
      });
      await world.plant(invoiceRow(9), record);
      await world.plant(customerInvoiceRow('2026-05', 5), u48(10));
      return [
        ['index-missing', { shard: 0, table: 'invoices', note: '9' }],
        ['counter-wrong', { shard: 0, table: 'invoices', note: '9' }],
        ['index-orphaned', { shard: 0, table: 'customerInvoices', note: '10' }],
      ];
    },
  ],
  [
    'a lifecycle of a bucket without rules, and another place in the queue than its own',
    { 'queue-missing': 1, 'queue-orphaned': 2 },
    async (world) => {
      const { bucketId, name } = world.bucket(2).believed;
      const record = lifecycleCodec.encode({ bucketId, stepCount: 1, dueAtMs: 5, changeCount: 0 });
      await world.plant(lifecycleRow(bucketId), record, 2);
      await world.plant(lifecycleTimeRow(6, bucketId), PRESENT, 2);
      const place = { shard: 2, bucket: name, table: 'lifecycles' };
      return [
        ['queue-orphaned', place],
        ['queue-missing', place],
        ['queue-orphaned', { shard: 2, bucket: bucketId, table: 'lifecycleTimes' }],
      ];
    },
  ],
  [
    'an event gone from between two others, and one that is more than there were',
    { 'queue-missing': 1, 'queue-orphaned': 1 },
    async (world) => {
      const { bucketId, name: bucket } = world.bucket(2).believed;
      const type = 's3:ObjectCreated:Put';
      for (const seq of [0, 2, 3]) {
        const key = `${seq}` as ObjectKey;
        const event = eventCodec.encode({ type, bucketId, bucket, key, timeMs: 1 });
        await world.plant(eventRow('feed', seq), event, 2);
      }
      const total = Buffer.alloc(8);
      total.writeDoubleBE(3);
      await world.plant({ table: ENGINE_TABLES.counters, key: utf8('events/feed') }, total, 2);
      const place = { shard: 2, bucket, table: 'events' };
      return [
        ['queue-missing', { ...place, key: '0', note: 'feed 0' }],
        ['queue-orphaned', { ...place, key: '3', note: 'feed 3' }],
      ];
    },
  ],
  [
    'more events taken than there were',
    { 'counter-wrong': 1 },
    async (world) => {
      const cursor = eventCursorCodec.encode({ takenTo: 2, takenAtMs: 1 });
      await world.plant(eventCursorRow('feed'), cursor, 1);
      return [['counter-wrong', { shard: 1, table: 'eventCursors', note: '0, is 2' }]];
    },
  ],
  [
    'a master key gone',
    { 'key-unknown': 1 },
    async (world) => {
      const { bucketId, key, version, place } = await world.seen('inline', 2);
      const lost = { ...must(version.kek, 'a key'), keyId: 'lost' };
      await world.plant(currentRow(bucketId, key), encodeVersion({ ...version, kek: lost }), 2);
      return [['key-unknown', { ...place, note: 'lost' }]];
    },
  ],
  [
    'a row that is none',
    { 'broken-row': 1 },
    async (world) => {
      await world.plant({ table: TABLES.outbox, key: new Uint8Array(14) }, Uint8Array.of(200));
      return [['broken-row', { shard: 0, table: 'outbox' }]];
    },
  ],
  [
    'a version that is none: what depends on versions is not compared',
    { 'unreadable-rows': 1 },
    async (world) => {
      const { bucketId, key } = await world.seen('inline', 2);
      await world.plant(currentRow(bucketId, key), Uint8Array.of(200), 2);
      return [['unreadable-rows', { shard: 2, table: 'objects' }]];
    },
  ],
  [
    'an account gone',
    { 'account-missing': 4, 'index-orphaned': 3 },
    async (world) => {
      await world.plant(accountRow(OWNER), null);
      return [['account-missing', { shard: 0, bucket: 'bucket-0', account: OWNER }]];
    },
  ],
  [
    'an outcome that is never forgotten',
    { 'index-missing': 1 },
    async (world) => {
      await world.plant({ table: ENGINE_TABLES.requests, key: utf8('id') }, Uint8Array.of(1), 1);
      return [['index-missing', { shard: 1, table: 'requests', note: 'of 1 outcomes' }]];
    },
  ],
];

// Damage among what shards keep of requests, for src/fsck/fsck.test.ts: jobs and tokens.
import { utf8 } from '../../../src/base/bytes/bytes.ts';
import { endedJobRow, errorsRow, jobRow, openJobRow } from '../../../src/metadata/jobs/jobs.ts';
import { tokenRow, tokenTimeRow } from '../../../src/metadata/outcomes/tokens.ts';
import { u48 } from '../../../src/metadata/schema/key-parts.ts';
import { PRESENT } from '../../../src/metadata/schema/keyspace.ts';
import type { BucketId, JobId } from '../../../src/types/names.ts';
import { type JobRecord, jobCodec, moveErrorsCodec } from '../../../src/types/records/job-record.ts';
import { tokenCodec } from '../../../src/types/records/rows.ts';
import { OWNER } from '../metadata/metadata-shards.ts';
import type { Damage } from './fsck-world.ts';

export const OUTCOME_DAMAGES: readonly Damage[] = [
  [
    'a job under way that nobody finds',
    { 'index-missing': 1, 'counter-wrong': 1 },
    async (world) => {
      const { bucketId, name } = world.bucket(1).believed;
      const jobId = 'a'.repeat(28) as JobId;
      await world.plant(jobRow(jobId), jobCodec.encode(jobOf(bucketId, jobId)), 1);
      return [['index-missing', { shard: 1, bucket: name, table: 'jobs', note: jobId }]];
    },
  ],
  [
    'a job found under way that has ended, one that is not there, and one that is said to be of another account',
    { 'index-orphaned': 3, 'counter-wrong': 2 },
    async (world) => {
      const { bucketId } = world.bucket(1).believed;
      const [ended, unknown, other] = ['a', 'b', 'c'].map((digit) => digit.repeat(28) as JobId) as [
        JobId,
        JobId,
        JobId,
      ];
      await world.plant(jobRow(ended), jobCodec.encode({ ...jobOf(bucketId, ended), endedAtMs: 1 }), 1);
      await world.plant(jobRow(other), jobCodec.encode(jobOf(bucketId, other)), 1);
      for (const jobId of [ended, unknown, other])
        await world.plant(openJobRow({ kind: 'move-prefix', jobId }), utf8('000000000002'), 1);
      const orphaned = (jobId: JobId) =>
        ['index-orphaned', { shard: 1, table: 'openJobs', note: jobId }] as const;
      return [[...orphaned(unknown)], [...orphaned(other)]];
    },
  ],
  [
    'a token without its time, and the time of another',
    { 'index-missing': 1, 'index-orphaned': 1 },
    async (world) => {
      const { bucketId, name } = world.bucket(1).believed;
      const record = tokenCodec.encode({ digest: 'd', keptAtMs: 1, outcome: null });
      await world.plant(tokenRow(bucketId, 't'), record, 1);
      await world.plant(tokenTimeRow(2, bucketId, 't'), PRESENT, 1);
      return [
        ['index-missing', { shard: 1, bucket: name, table: 'tokens', note: 't' }],
        ['index-orphaned', { shard: 1, bucket: name, table: 'tokenTimes', note: 't' }],
      ];
    },
  ],
  [
    'an ended job that is not listed, one that is listed by another time, and one that a token leads to',
    { 'index-missing': 1, 'index-orphaned': 3, 'counter-wrong': 1 },
    async (world) => {
      const { bucketId, name } = world.bucket(1).believed;
      const [unlisted, late, tokened] = ['a', 'b', 'c'].map((digit) => digit.repeat(28) as JobId) as [
        JobId,
        JobId,
        JobId,
      ];
      const plant = (jobId: JobId, more: Partial<JobRecord>) =>
        world.plant(jobRow(jobId), jobCodec.encode({ ...jobOf(bucketId, jobId), ...more } as JobRecord), 1);
      await plant(unlisted, { endedAtMs: 1, isTokenless: true });
      await plant(late, { endedAtMs: 1, isTokenless: true });
      await plant(tokened, { endedAtMs: 1 });
      await world.plant(endedJobRow({ jobId: late }, 1), u48(512), 1);
      await world.plant(endedJobRow({ jobId: late }, 2), u48(512), 1);
      await world.plant(endedJobRow({ jobId: tokened }, 1), u48(512), 1);
      await world.plant(endedJobRow({ jobId: 'd'.repeat(28) as JobId }, 1), u48(512), 1);
      const orphaned = { shard: 1, table: 'endedJobs' } as const;
      return [
        ['index-missing', { shard: 1, bucket: name, table: 'jobs', note: unlisted }],
        ['index-orphaned', { ...orphaned, note: late }],
        ['index-orphaned', { ...orphaned, note: tokened }],
      ];
    },
  ],
  [
    'a job without one of the rows of its errors, and such a row of no job',
    { 'index-missing': 1, 'index-orphaned': 2, 'counter-wrong': 1 },
    async (world) => {
      const { bucketId, name } = world.bucket(1).believed;
      const [jobId, unknown] = ['a', 'b'].map((digit) => digit.repeat(28) as JobId) as [JobId, JobId];
      const errorRows = { rowCount: 2, errorCount: 0, textBytes: 0 };
      const job = { ...jobOf(bucketId, jobId), endedAtMs: 1, errorRows } as JobRecord;
      await world.plant(jobRow(jobId), jobCodec.encode(job), 1);
      const plant = (of: JobId, at: number) =>
        world.plant(errorsRow(of, at), moveErrorsCodec.encode({ errors: [] }), 1);
      for (const at of [0, 2]) await plant(jobId, at);
      await plant(unknown, 0);
      const orphaned = { shard: 1, table: 'jobErrors' } as const;
      return [
        ['index-missing', { shard: 1, bucket: name, table: 'jobs', note: jobId }],
        ['index-orphaned', { ...orphaned, note: jobId }],
        ['index-orphaned', { ...orphaned, note: unknown }],
      ];
    },
  ],
  [
    'a token and a job that count for more than the counters have',
    { 'counter-wrong': 3 },
    async (world) => {
      const { bucketId } = world.bucket(1).believed;
      const jobId = 'a'.repeat(28) as JobId;
      const job = { ...jobOf(bucketId, jobId), endedAtMs: 1, keptBytes: 600 } as JobRecord;
      await world.plant(jobRow(jobId), jobCodec.encode(job), 1);
      const record = { digest: 'd', keptAtMs: 1, outcome: null, keptBytes: 400 };
      await world.plant(tokenRow(bucketId, 't'), tokenCodec.encode(record), 1);
      await world.plant(tokenTimeRow(1, bucketId, 't'), PRESENT, 1);
      return [
        ['counter-wrong', { shard: 1, note: '0 kept-bytes, is 1000' }],
        ['counter-wrong', { shard: 1, note: `0 kept-bytes/${OWNER}, is 1000` }],
      ];
    },
  ],
];

function jobOf(bucketId: BucketId, jobId: JobId): JobRecord {
  return {
    kind: 'move-prefix',
    owner: OWNER,
    jobId,
    bucketId,
    from: 'a',
    to: 'b',
    overwrites: false,
    beganAtMs: 0,
    steppedAtMs: 0,
    stepCount: 0,
    leg: 0,
    movedCount: 0,
    errorCount: 0,
    errors: [],
  };
}

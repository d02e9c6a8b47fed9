// What `holdfast jobs` shows: the jobs of all shards, newest first: those under way, and of those that have ended what is kept.

import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { BucketId } from '../../types/names.ts';
import { type JobRecord, type JobState, jobState } from '../../types/records/job-record.ts';

/** Records of one page. */
const PAGE = 50;
/** Of one answer; what is left out is counted. */
export const JOBS_SHOWN_MAX = 1000;

export interface ShownJob {
  id: string;
  shard: number;
  kind: JobRecord['kind'];
  /** The bucket's name; its id where it is not known. */
  bucket: string;
  state: JobState;
  /** What it is at, or where it leads. */
  detail: string;
  doneCount: number;
  /** Absent where it is not known before the end. */
  totalCount?: number;
  errorCount: number;
  /** By the clock of its shard. */
  ageMs: number;
  /** Since it was driven on last, or since its end. */
  idleMs: number;
}

export interface JobReport {
  jobs: ShownJob[];
  /** Older ones that are not in the list. */
  leftOutCount: number;
  /** Shards that did not answer: what they have is not here. */
  missingShards: number[];
}

/** Jobs of a shard, of which a page is read ahead. */
interface Ahead {
  shard: number;
  count: number;
  /** Newest first. */
  jobs: (ShownJob & { bucketId?: BucketId })[];
  before?: JobRecord['jobId'];
  isWhole: boolean;
  isMissing: boolean;
}

/** No more is read than is shown, and a page of each shard: somebody may have begun very many within the day. */
export async function readJobs(metadata: MetadataPort): Promise<JobReport> {
  const all = Array.from({ length: metadata.shardCount }, (_, shard) => shard);
  const shards = await Promise.all(all.map((shard) => beginAt(metadata, shard)));
  const merged: Ahead['jobs'] = [];
  while (merged.length < JOBS_SHOWN_MAX) {
    await Promise.all(shards.filter(({ jobs, isWhole }) => jobs.length === 0 && !isWhole).map(readPage));
    const job = youngest(shards)?.jobs.shift();
    if (job === undefined) break;
    merged.push(job);
  }
  const missing = new Set(shards.filter(({ isMissing }) => isMissing).map(({ shard }) => shard));
  const jobs = await named(
    metadata,
    merged.filter(({ shard }) => !missing.has(shard)),
  );
  const count = shards.reduce((sum, { shard, count: some }) => sum + (missing.has(shard) ? 0 : some), 0);
  return { jobs, leftOutCount: Math.max(0, count - jobs.length), missingShards: [...missing] };

  async function readPage(ahead: Ahead): Promise<void> {
    const { shard, before } = ahead;
    const reply = await metadata.query({ shard }, 'list-jobs', { ...(before && { before }), limit: PAGE });
    if (reply.kind !== 'done') {
      Object.assign(ahead, { jobs: [], isWhole: true, isMissing: true });
      return;
    }
    const { jobs: found, nowMs, next } = reply.value;
    ahead.jobs = found.map((job) => showJob(job, { shard, nowMs }));
    ahead.isWhole = next === undefined;
    if (next !== undefined) ahead.before = next;
  }
}

async function beginAt(metadata: MetadataPort, shard: number): Promise<Ahead> {
  const counted = await metadata.query({ shard }, 'count-jobs', {});
  const isMissing = counted.kind !== 'done';
  const counts = isMissing ? [] : counted.value.counts;
  const count = counts.reduce((sum, each) => sum + each.count, 0);
  return { shard, count, jobs: [], isWhole: isMissing, isMissing };
}

function youngest(shards: readonly Ahead[]): Ahead | undefined {
  let found: Ahead | undefined;
  for (const ahead of shards) {
    const [job] = ahead.jobs;
    if (job === undefined) continue;
    if (found === undefined || job.ageMs < (found.jobs[0]?.ageMs ?? Infinity)) found = ahead;
  }
  return found;
}

/** With the names of their buckets, each of which is asked for once. */
async function named(metadata: MetadataPort, jobs: Ahead['jobs']): Promise<ShownJob[]> {
  const buckets = new Map(
    jobs.flatMap(({ bucketId, shard }) => (bucketId === undefined ? [] : [[bucketId, shard]])),
  );
  const names = new Map<BucketId, string>();
  const unnamed = [...buckets];
  for (let at = 0; at < unnamed.length; at += PAGE)
    await Promise.all(
      unnamed.slice(at, at + PAGE).map(async ([bucketId, shard]) => {
        const reply = await metadata.query({ shard }, 'get-bucket', { bucketId, kinds: [] });
        if (reply.kind === 'done' && reply.value.bucket) names.set(bucketId, reply.value.bucket.name);
      }),
    );
  return jobs.map(({ bucketId, ...job }) =>
    bucketId === undefined ? job : { ...job, bucket: names.get(bucketId) ?? bucketId },
  );
}

function showJob(
  job: JobRecord,
  { shard, nowMs }: { shard: number; nowMs: number },
): ShownJob & { bucketId?: BucketId } {
  const { jobId: id, kind, beganAtMs, steppedAtMs, endedAtMs } = job;
  const times = { ageMs: nowMs - beganAtMs, idleMs: nowMs - (endedAtMs ?? steppedAtMs) };
  const head = { id, shard, kind, bucket: '', state: jobState(job), ...times };
  if (job.kind === 'move-prefix') {
    const { from, to, movedCount: doneCount, errorCount, bucketId } = job;
    return { ...head, detail: `${from} to ${to}`, doneCount, errorCount, bucketId };
  }
  const { stage, removedCount, totalCount } = job;
  const isLooking = stage === 'look';
  return {
    ...head,
    bucket: job.name,
    detail: isLooking ? 'looks whether all may go' : stage === 'refused' ? 'something has to stay' : '',
    doneCount: isLooking ? totalCount : removedCount,
    ...(!isLooking && { totalCount }),
    errorCount: 0,
  };
}

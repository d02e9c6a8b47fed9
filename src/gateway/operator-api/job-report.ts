// What `holdfast jobs` shows: the jobs of all shards, newest first: those under way, and of those that have ended what is kept.

import type { MetadataPort } from '../../ports/metadata/port.ts';
import { type JobRecord, type JobState, jobState } from '../../types/records/job-record.ts';

/** Records of one page: those of renames may hold many errors. */
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

export async function readJobs(metadata: MetadataPort): Promise<JobReport> {
  const all = Array.from({ length: metadata.shardCount }, (_, shard) => shard);
  const found = await Promise.all(all.map((shard) => jobsOf(metadata, shard)));
  const jobs = found.flatMap((some) => some?.jobs ?? []).sort((a, b) => a.ageMs - b.ageMs);
  const count = found.reduce((sum, some) => sum + (some?.count ?? 0), 0);
  const shown = jobs.slice(0, JOBS_SHOWN_MAX);
  return {
    jobs: shown,
    leftOutCount: Math.max(0, count - shown.length),
    missingShards: all.filter((shard) => found[shard] === undefined),
  };
}

/** Its last ones, and how many it has in all: somebody may have begun very many within the day. */
async function jobsOf(
  metadata: MetadataPort,
  shard: number,
): Promise<{ jobs: ShownJob[]; count: number } | undefined> {
  const counted = await metadata.query({ shard }, 'count-jobs', {});
  if (counted.kind !== 'done') return undefined;
  const count = counted.value.counts.reduce((sum, each) => sum + each.count, 0);
  const shown: ShownJob[] = [];
  for (let before: JobRecord['jobId'] | undefined, isWhole = false; !isWhole; ) {
    const query = { ...(before && { before }), limit: PAGE };
    const reply = await metadata.query({ shard }, 'list-jobs', query);
    if (reply.kind !== 'done') return undefined;
    const { jobs, nowMs, next } = reply.value;
    for (const job of jobs) {
      const bucket = job.kind === 'empty-bucket' ? job.name : await nameOf(metadata, shard, job);
      shown.push(showJob(job, { shard, bucket, nowMs }));
    }
    [before, isWhole] = [next, next === undefined || shown.length >= JOBS_SHOWN_MAX];
  }
  return { jobs: shown, count };
}

async function nameOf(metadata: MetadataPort, shard: number, { bucketId }: JobRecord): Promise<string> {
  const reply = await metadata.query({ shard }, 'get-bucket', { bucketId, kinds: [] });
  return (reply.kind === 'done' && reply.value.bucket?.name) || bucketId;
}

function showJob(
  job: JobRecord,
  { shard, bucket, nowMs }: { shard: number; bucket: string; nowMs: number },
): ShownJob {
  const { jobId: id, kind, beganAtMs, steppedAtMs, endedAtMs } = job;
  const times = { ageMs: nowMs - beganAtMs, idleMs: nowMs - (endedAtMs ?? steppedAtMs) };
  const head = { id, shard, kind, bucket, state: jobState(job), ...times };
  if (job.kind === 'move-prefix') {
    const { from, to, movedCount: doneCount, errorCount } = job;
    return { ...head, detail: `${from} to ${to}`, doneCount, errorCount };
  }
  const { stage, removedCount, totalCount } = job;
  const isLooking = stage === 'look';
  return {
    ...head,
    detail: isLooking ? 'looks whether all may go' : stage === 'refused' ? 'something has to stay' : '',
    doneCount: isLooking ? totalCount : removedCount,
    ...(!isLooking && { totalCount }),
    errorCount: 0,
  };
}

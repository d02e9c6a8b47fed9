// Shows how far the data of a bucket that was deleted by force has been freed. The bucket is gone already: an error here is
// reported, and is no failure of the deletion.
import type { CliContext } from './connect.ts';
import { formatCount } from './format.ts';
import { type Job, readJobs } from './jobs-command.ts';
import { type OperatorClient, OperatorRefusal } from './operator-client.ts';
import { type Progress, startBar } from './progress.ts';

/** The first looks come sooner: most buckets are emptied soon. */
const POLL_MIN_MS = 100;
const POLL_MAX_MS = 2000;
/** What began or ended this much before the deletion was sent may be of it: the server has a clock of its own. */
const CLOCKS_DIFFER_MS = 1000;
/** A gateway or a shard that is away comes back sooner, if it does at all. */
const PATIENCE_MS = 60_000;

/** `denied`: by these keys nobody may look. `unseen`: there is nothing to be seen of it. */
export type Emptying = { kind: 'emptied'; versionCount: number } | { kind: 'denied' } | { kind: 'unseen' };

export interface WatchOptions {
  bucket: string;
  /** When the deletion was sent: what had ended by then was of an earlier bucket of that name. */
  sentAtMs: number;
  /** As `work`; rejects once nobody wants to wait any more, and ends the watch by that. */
  wait<T>(work: Promise<T>): Promise<T>;
}

/** Shows it on the terminal until everything is freed, or nobody knows. */
export async function watchEmptying(
  context: Pick<CliContext, 'nowMs' | 'sleep'>,
  client: OperatorClient,
  { bucket, sentAtMs, wait }: WatchOptions,
): Promise<Emptying> {
  const beganAtMs = context.nowMs();
  let seen: { job: Job; atMs: number } | undefined;
  let progress: Progress | undefined;
  try {
    for (;;) {
      const sinceMs = context.nowMs() - sentAtMs;
      const job = await wait(findJob(client, { bucket, sinceMs, jobId: seen?.job.id }));
      if (job === 'denied' || job === 'unseen') return { kind: job };
      // What has nothing in it is deleted without a job.
      if (job === 'none') return { kind: 'emptied', versionCount: 0 };
      const nowMs = context.nowMs();
      if (job !== undefined) {
        progress ??= startBar('freed', job.totalCount ?? 0, formatCount);
        // A bar that gets the same number twice takes the rest to be endless.
        if (job.doneCount > (seen?.job.doneCount ?? 0)) progress.at(job.doneCount);
        seen = { job, atMs: nowMs };
        if (job.state !== 'under-way') return { kind: 'emptied', versionCount: job.doneCount };
      } else if (nowMs - (seen?.atMs ?? beganAtMs) >= PATIENCE_MS) return { kind: 'unseen' };
      const pauseMs = POLL_MIN_MS + (nowMs - beganAtMs) / 10;
      await wait(context.sleep(Math.min(pauseMs, POLL_MAX_MS)));
    }
  } finally {
    progress?.end();
  }
}

/** undefined: it may be seen at another time. */
async function findJob(
  client: OperatorClient,
  { bucket, sinceMs, jobId }: { bucket: string; sinceMs: number; jobId: string | undefined },
): Promise<Job | 'denied' | 'unseen' | 'none' | undefined> {
  try {
    const { jobs, missingShards } = await readJobs(client);
    if (jobId !== undefined) return jobs.find(({ id }) => id === jobId);
    // An earlier bucket may have had this name: the latest one is known when all shards have answered.
    if (missingShards.length > 0) return undefined;
    const isOurs = ({ state, idleMs }: Job) =>
      state === 'under-way' || (state !== 'refused' && idleMs <= sinceMs + CLOCKS_DIFFER_MS);
    return jobs.find((job) => job.kind === 'empty-bucket' && job.bucket === bucket && isOurs(job)) ?? 'none';
  } catch (error) {
    const status = error instanceof OperatorRefusal ? error.status : undefined;
    if (status === 403) return 'denied';
    return status !== undefined && status < 500 ? 'unseen' : undefined;
  }
}

// MOVEs of prefixes, and of keys of many versions, as jobs of their shards, as the logs show: whichever process drives one,
// and however often drivers change, it comes by each key of its prefix once between its beginning and its end, a key of
// many versions is renamed entry by entry, and at rest none is under way.
import { TABLES } from '../../src/metadata/schema/keyspace.ts';
import type { BucketId } from '../../src/types/names.ts';
import { jobCodec, type MovePrefixJob } from '../../src/types/records/job-record.ts';
import { bucketCodec } from '../../src/types/records/rows.ts';
import type { BucketRecord, RenamePhase } from './bucket-operations.ts';
import type { ShardHistory } from './shard-history.ts';

/** What somebody asked for, perhaps twice under one token. */
export interface AskedMove {
  shard: number;
  from: string;
  to: string;
  overwrites: boolean;
  /** Step and time of the world in which it was asked for first. */
  askedAt: number;
  askedAtMs: number;
  /** As it was answered; undefined: nobody knows. */
  jobId: string | undefined;
}

interface Moment {
  step: number;
  ms: number;
}

/** An entry by which a job renames some versions of a key. */
interface SeenRename {
  key: string;
  to: string;
  phase: RenamePhase;
  count: number;
  /** When it was not yet there; undefined: it began the job. When it was, at the latest: none has come behind it as yet. */
  after: Moment | undefined;
  before: Moment | undefined;
}

interface SeenJob {
  shard: number;
  job: MovePrefixJob;
  /** Of the world, in which it was seen to have ended. */
  endedAt: number | undefined;
  endedAtMs: number;
  seen: Moment;
  renames: SeenRename[];
}

export class MoveJobs {
  readonly #jobs = new Map<string, SeenJob>();
  /** Of each bucket, how many keys its row says are being renamed. */
  readonly #held = new Map<BucketId, number>();
  readonly #seenSeq = new Map<number, number>();

  /** Takes in what a shard has committed since the last time. */
  follow(history: ShardHistory, now: Moment): void {
    const { shard, lastSeq } = history;
    for (let seq = (this.#seenSeq.get(shard) ?? 0) + 1; seq <= lastSeq; seq++)
      for (const { column, key, value } of history.entry(seq)?.rows ?? []) {
        if (column !== 'rows' || value === null) continue;
        if (key[2] === TABLES.jobs.id) this.#note(shard, value, now);
        if (key[2] === TABLES.buckets.id) this.#noteHeld(value);
      }
    this.#seenSeq.set(shard, lastSeq);
  }

  #note(shard: number, value: Uint8Array, now: Moment): void {
    const job = jobCodec.decode(value);
    if (job.kind !== 'move-prefix') return;
    const before = this.#jobs.get(job.jobId);
    const renames = [...(before?.renames ?? [])];
    const last = renames.at(-1);
    if (last !== undefined) last.before ??= now;
    const rename = renameOf(before?.job, job);
    if (rename !== undefined) renames.push({ ...rename, after: before?.seen, before: undefined });
    const ended = job.endedAtMs === undefined ? undefined : now;
    this.#jobs.set(job.jobId, {
      shard,
      job,
      renames,
      seen: now,
      endedAt: ended?.step,
      endedAtMs: ended?.ms ?? Number.POSITIVE_INFINITY,
    });
  }

  #noteHeld(value: Uint8Array): void {
    const { bucketId, keyRenames = [] } = bucketCodec.decode(value);
    this.#held.set(bucketId, keyRenames.length);
  }

  get endedCount(): number {
    return [...this.#jobs.values()].filter(({ endedAt }) => endedAt !== undefined).length;
  }

  /** I16 */
  unrest(): string[] {
    const jobs = [...this.#jobs.values()]
      .filter(({ endedAt }) => endedAt === undefined)
      .map(
        ({ shard, job }) => `shard ${shard}: the job ${job.jobId} is under way, of ${job.stepCount} steps`,
      );
    const held = [...this.#held].filter(([, count]) => count > 0);
    return [
      ...jobs,
      ...held.map(([bucketId, count]) => `bucket ${bucketId}: ${count} keys are being renamed`),
    ];
  }

  /** What jobs did to these keys: of a prefix, each came by each of them once. */
  sweeps(asked: readonly AskedMove[], keysOf: (shard: number) => readonly string[]): BucketRecord[] {
    return [...this.#jobs.values()].flatMap((seen) => {
      const { shard, job, endedAt = Number.POSITIVE_INFINITY, endedAtMs, renames } = seen;
      const { jobId, from, to, overwrites } = job;
      const { askedAt, askedAtMs } = beginningOf({ shard, job }, asked);
      const inSteps = new Set(renames.map(({ key }) => key));
      const keys = job.isKey ? [] : keysOf(shard).filter((key) => key.startsWith(from) && !inSteps.has(key));
      const sweeps = keys.map((key) => ({
        requestId: `${jobId} ${key}`,
        shard,
        client: -1,
        operation: { kind: 'sweep', key, to: to + key.slice(from.length), overwrites } as const,
        invokedAt: askedAt,
        invokedAtMs: askedAtMs,
        answeredAt: endedAt,
        answeredAtMs: endedAtMs,
        outcome: { kind: 'swept' } as const,
      }));
      const steps = renames.map(({ after, before, ...rename }, at) => ({
        requestId: `${jobId} entry ${at}`,
        shard,
        client: -1,
        operation: { kind: 'rename', overwrites, ...rename } as const,
        invokedAt: after?.step ?? askedAt,
        invokedAtMs: after?.ms ?? askedAtMs,
        answeredAt: before?.step ?? Number.POSITIVE_INFINITY,
        answeredAtMs: before?.ms ?? Number.POSITIVE_INFINITY,
        outcome: { kind: 'renamed' } as const,
      }));
      return [...sweeps, ...steps];
    });
  }
}

/** What the entry that wrote the job did to a key of many versions, if it did anything to one. */
function renameOf(
  before: MovePrefixJob | undefined,
  job: MovePrefixJob,
): Pick<SeenRename, 'key' | 'to' | 'phase' | 'count'> | undefined {
  const within = job.within ?? before?.within;
  // Its driver holds on to it, or leaves.
  if (within === undefined || job.stepCount === before?.stepCount) return undefined;
  const { from: key, to } = within;
  const count = job.movedCount - (before?.movedCount ?? 0);
  if (before?.within === undefined) return { key, to, phase: 'open', count };
  return { key, to, phase: job.within === undefined ? 'close' : 'move', count };
}

/** The first request that may have begun it. */
function beginningOf(
  { shard, job }: Pick<SeenJob, 'shard' | 'job'>,
  asked: readonly AskedMove[],
): Pick<AskedMove, 'askedAt' | 'askedAtMs'> {
  const alike = asked.filter(
    (one) =>
      one.shard === shard && one.from === job.from && one.to === job.to && one.overwrites === job.overwrites,
  );
  const known = alike.find(({ jobId }) => jobId === job.jobId);
  const may = known === undefined ? alike.filter(({ jobId }) => jobId === undefined) : [known];
  const askedAt = Math.min(...may.map((one) => one.askedAt));
  return may.find((one) => one.askedAt === askedAt) ?? { askedAt: 0, askedAtMs: 0 };
}

// MOVEs of prefixes as jobs of their shards, as the logs tell: whoever drives one, and however often drivers change, it
// comes by each key of its prefix once between its beginning and its end, and at rest none is under way.
import { TABLES } from '../../src/metadata/keyspace.ts';
import { jobCodec, type MovePrefixJob } from '../../src/model/records/job-record.ts';
import type { BucketRecord } from './bucket-operations.ts';
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

interface SeenJob {
  shard: number;
  job: MovePrefixJob;
  /** Of the world, in which it was seen to have ended. */
  endedAt: number | undefined;
  endedAtMs: number;
}

export class MoveJobs {
  readonly #jobs = new Map<string, SeenJob>();
  readonly #seenSeq = new Map<number, number>();

  /** Takes in what a shard has committed since the last time. */
  follow(history: ShardHistory, now: { step: number; ms: number }): void {
    const { shard, lastSeq } = history;
    for (let seq = (this.#seenSeq.get(shard) ?? 0) + 1; seq <= lastSeq; seq++)
      for (const { column, key, value } of history.entry(seq)?.rows ?? [])
        if (column === 'rows' && key[2] === TABLES.jobs.id && value !== null) this.#note(shard, value, now);
    this.#seenSeq.set(shard, lastSeq);
  }

  #note(shard: number, value: Uint8Array, now: { step: number; ms: number }): void {
    const job = jobCodec.decode(value);
    if (job.kind !== 'move-prefix') return;
    const ended = job.endedAtMs === undefined ? undefined : now;
    this.#jobs.set(job.jobId, {
      ...{ shard, job, endedAt: ended?.step, endedAtMs: ended?.ms ?? Number.POSITIVE_INFINITY },
    });
  }

  get endedCount(): number {
    return [...this.#jobs.values()].filter(({ endedAt }) => endedAt !== undefined).length;
  }

  /** I16 */
  unrest(): string[] {
    return [...this.#jobs.values()]
      .filter(({ endedAt }) => endedAt === undefined)
      .map(
        ({ shard, job }) => `shard ${shard}: the job ${job.jobId} is under way, of ${job.stepCount} steps`,
      );
  }

  /** What jobs that have ended did to these keys: each came by each of them once. */
  sweeps(asked: readonly AskedMove[], keysOf: (shard: number) => readonly string[]): BucketRecord[] {
    return [...this.#jobs.values()].flatMap(
      ({ shard, job, endedAt = Number.POSITIVE_INFINITY, endedAtMs }) => {
        const { jobId, from, to, overwrites } = job;
        const begun = beginningOf({ shard, job }, asked);
        return keysOf(shard)
          .filter((key) => key.startsWith(from))
          .map((key) => ({
            ...{ requestId: `${jobId} ${key}`, shard, client: -1 },
            operation: { kind: 'sweep', key, to: to + key.slice(from.length), overwrites } as const,
            ...{ invokedAt: begun.askedAt, invokedAtMs: begun.askedAtMs },
            ...{ answeredAt: endedAt, answeredAtMs: endedAtMs, outcome: { kind: 'swept' } as const },
          }));
      },
    );
  }
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

// What is kept for some time after its end and then forgotten: answers of Completes for seven days (s3-behaviour 29),
// idempotency tokens for a day, and jobs for as long as somebody may ask for their outcome (extensions 2.1); and of jobs
// that nobody asks for any more those that newer ones have taken the place of.

import type { CommandOf, MetadataPort } from '../../ports/metadata/port.ts';
import type { TimeJumps } from '../../ports/time-jumps.ts';
import type { Worker } from '../../ports/worker.ts';
import { LIMITS } from '../../types/limits.ts';
import { finishLeft } from './late-items.ts';
import { createQueueCursors, createShardWorker, doneValue, SHARDS_AT_ONCE } from './shard-worker.ts';

const BATCH = 250;
const MINUTE_MS = 60_000;

export interface ForgetterDeps {
  metadata: MetadataPort;
  shards(): readonly number[];
  timeJumps: Pick<TimeJumps, 'mayRemoveByAge'>;
}

/** One kind of what is forgotten. */
interface ForgetSpec<Item> {
  name: string;
  idleMs: number;
  /** What is old enough, oldest first, from a place in the queue on. */
  list(shard: number, page: { fromMs?: number; limit: number }): Promise<Item[]>;
  forget(shard: number, items: Item[]): Promise<void>;
  /** Where it stands in the queue. */
  atMs(item: Item): number;
}

function createForgetter<Item>(
  { shards, timeJumps }: ForgetterDeps,
  { name, idleMs, list, forget, atMs }: ForgetSpec<Item>,
): Worker {
  const cursors = createQueueCursors();
  return createShardWorker({
    name,
    shards,
    idleMs,
    atOnce: SHARDS_AT_ONCE,
    async unit(shard) {
      if (!timeJumps.mayRemoveByAge(shard)) return false;
      const items = await list(shard, { ...cursors.from(shard), limit: BATCH });
      const last = items.at(-1);
      if (last === undefined) return false;
      await forget(shard, items);
      cursors.advance(shard, atMs(last));
      return items.length === BATCH;
    },
  });
}

export function createTokenForgetter(deps: ForgetterDeps): Worker {
  const { metadata } = deps;
  const olderThanMs = LIMITS.idempotencyTokenKeptMs;
  return createForgetter(deps, {
    name: 'forget-tokens',
    idleMs: 10 * MINUTE_MS,
    async list(shard, page) {
      const query = { ...page, olderThanMs };
      return doneValue(await metadata.query({ shard }, 'list-kept-tokens', query)).tokens;
    },
    async forget(shard, tokens) {
      const forget = async (some: CommandOf<'forget-tokens'>) =>
        doneValue(await metadata.execute({ shard }, 'forget-tokens', some));
      const { left = [] } = await forget({ tokens, leavesBusy: true });
      await finishLeft(left, (token) => forget({ tokens: [token] }));
    },
    atMs: ({ keptAtMs }) => keptAtMs,
  });
}

export function createCompletedUploadForgetter(deps: ForgetterDeps): Worker {
  const { metadata } = deps;
  const olderThanMs = LIMITS.completedUploadKeptMs;
  return createForgetter(deps, {
    name: 'forget-completed-uploads',
    idleMs: 60 * MINUTE_MS,
    async list(shard, page) {
      const query = { ...page, olderThanMs };
      return doneValue(await metadata.query({ shard }, 'list-completed-uploads', query)).completed;
    },
    async forget(shard, completed) {
      const uploadIds = completed.map(({ uploadId }) => uploadId);
      const forget = async (some: CommandOf<'forget-completed-uploads'>) =>
        doneValue(await metadata.execute({ shard }, 'forget-completed-uploads', some));
      const { left = [] } = await forget({ uploadIds, leavesBusy: true });
      await finishLeft(left, (uploadId) => forget({ uploadIds: [uploadId] }));
    },
    atMs: ({ completedAtMs }) => completedAtMs,
  });
}

/** Each may have dozens of rows with errors. */
const JOBS_BATCH = 100;

/** Those that are old begin at the oldest each time: among them are some that are under way. */
export function createJobForgetter({ metadata, shards, timeJumps }: ForgetterDeps): Worker {
  const cursors = createQueueCursors();
  return createShardWorker({
    name: 'forget-jobs',
    shards,
    idleMs: MINUTE_MS,
    atOnce: SHARDS_AT_ONCE,
    async unit(shard) {
      if (!timeJumps.mayRemoveByAge(shard)) return false;
      const limit = JOBS_BATCH;
      const old = doneValue(await metadata.query({ shard }, 'list-ended-jobs', { limit }));
      const page = { ...cursors.from(shard), limit };
      const surplus = doneValue(await metadata.query({ shard }, 'list-surplus-jobs', page));
      const jobIds = [...old.jobIds, ...surplus.jobIds];
      if (jobIds.length > 0) doneValue(await metadata.execute({ shard }, 'forget-jobs', { jobIds }));
      if (surplus.shownFromMs !== undefined) cursors.advance(shard, surplus.shownFromMs);
      // A page of old ones may have ended by its bytes.
      return old.jobIds.length > 0 || surplus.jobIds.length === limit;
    },
  });
}

// One step of a prefix's MOVE: keys bear other ones, each with all of its versions, and the job's row says how far the
// walk has come, in the same entry. Bucket and settings are looked at here, for it goes on whatever becomes of the name
// that the bucket had, or of the caller's rights, when it began (R45).
import { assert } from '../../lib/assert.ts';
import { LIMITS } from '../../model/limits.ts';
import { explainMoveRefusal } from '../../model/move-refusals.ts';
import type { ObjectKey } from '../../model/names.ts';
import type { MoveError, MovePrefixJob } from '../../model/records/job-record.ts';
import type { BucketRecord } from '../../model/records/rows.ts';
import type { Versioning } from '../../model/versioning.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata.ts';
import type { CounterDelta, RowPut, View } from '../../ports/state-machine.ts';
import { findBucket } from '../buckets.ts';
import { defineCommand, exclusive, LOCK, shared } from '../define-command.ts';
import { findJob, jobPuts } from '../jobs.ts';
import { loadMove, type MoveChange, moveHistory, refused } from '../move-history.ts';
import { refuse } from '../write-version.ts';

type Command = CommandOf<'step-move'>;
type Outcome = OutcomeOf<'step-move'>;
type Move = Command['moves'][number];

export const stepMove = defineCommand<Command, Outcome>({
  locks: ({ bucketId, jobId, moves }) => [
    exclusive(LOCK.job(jobId)),
    shared(LOCK.bucket(bucketId)),
    ...keysOf(moves).map((key) => exclusive(LOCK.key(bucketId, key))),
  ],

  look({ bucketId, jobId, moves }, view) {
    findJob(view, jobId);
    const versioning = findBucket(view, bucketId)?.versioning;
    for (const move of moves) if (fits(move)) loadMove(view, { bucketId, ...move, versioning });
  },

  decide(command, view, { nowMs }) {
    const { bucketId, jobId, stepCount, moves } = command;
    const job = findJob(view, jobId);
    if (job?.kind !== 'move-prefix') return refuse({ kind: 'no-such-job' });
    if (job.endedAtMs !== undefined || job.stepCount !== stepCount) return refuse({ kind: 'elsewhere', job });
    const bucket = findBucket(view, bucketId);
    if (bucket?.state === 'closing') return refuse({ kind: 'held' });
    if (bucket?.state !== 'open') {
      const ended = { ...job, endedAtMs: nowMs };
      return { outcome: { kind: 'elsewhere', job: ended }, puts: jobPuts(ended) };
    }
    const { overwrites } = job;
    const results: MoveChange['result'][] = [];
    const puts: RowPut[] = [];
    const deltas = new Map<string, number>();
    for (const move of moves) {
      const change = moveOne({ move, view, bucket, overwrites, nowMs });
      results.push(change.result);
      for (const row of change.puts) puts.push(row);
      for (const { name, delta } of change.counters) deltas.set(name, (deltas.get(name) ?? 0) + delta);
    }
    for (const row of jobPuts(progressed(job, { command, results, nowMs }))) puts.push(row);
    const counters: CounterDelta[] = [...deltas].map(([name, delta]) => ({ name, delta }));
    return { outcome: { kind: 'stepped', results, versioning: bucket.versioning }, puts, counters };
  },
});

/** Both keys of every move; none may be there twice, for each is looked at as it is before the step. */
function keysOf(moves: readonly Move[]): string[] {
  const keys = moves.flatMap(({ from, to }) => [from, to]);
  assert(new Set(keys).size === keys.length, 'no key is touched twice in one step');
  return keys;
}

function fits(move: Move): move is Move & { to: ObjectKey } {
  // Most keys are far from it, and a character has three bytes at most.
  return move.to.length * 3 <= LIMITS.keyBytesMax || Buffer.byteLength(move.to) <= LIMITS.keyBytesMax;
}

function moveOne(options: {
  move: Move;
  view: View;
  bucket: BucketRecord & { versioning: Versioning };
  overwrites: boolean;
  nowMs: number;
}): MoveChange {
  const { move, view, bucket, ...rest } = options;
  if (!fits(move)) return refused({ kind: 'key-too-long' });
  const { bucketId, versioning } = bucket;
  const loaded = loadMove(view, { bucketId, ...move, versioning });
  return moveHistory({ bucket, move, loaded, ...rest });
}

function progressed(
  job: MovePrefixJob,
  step: { command: Command; results: readonly MoveChange['result'][]; nowMs: number },
): MovePrefixJob {
  const { command, results, nowMs } = step;
  const { moves, cursor } = command;
  const { after: _, ...rest } = job;
  const errors = [...job.errors];
  let { movedCount, errorCount } = job;
  let keptBytes = errors.reduce((sum, error) => sum + errorBytes(error), 0);
  for (const [index, { from, to }] of moves.entries()) {
    const result = results[index];
    if (result === undefined) continue;
    if (Array.isArray(result)) {
      movedCount += result.length;
      continue;
    }
    // It was there when the keys were gathered, and somebody has deleted it since.
    if (result.kind === 'no-such-key') continue;
    errorCount++;
    const error: MoveError = {
      ...{ sourceKey: from, destinationKey: to, ...explainMoveRefusal(result) },
      ...(result.kind === 'blocked' && { versionId: result.versionId }),
    };
    keptBytes += errorBytes(error);
    if (errors.length < LIMITS.moveErrorsKeptMax && keptBytes <= LIMITS.moveErrorsKeptBytesMax)
      errors.push(error);
  }
  return {
    ...rest,
    ...{ stepCount: job.stepCount + 1, steppedAtMs: nowMs, movedCount, errorCount, errors },
    ...(cursor === undefined ? { endedAtMs: nowMs } : cursor),
  };
}

function errorBytes({ sourceKey, destinationKey, message }: MoveError): number {
  return sourceKey.length + destinationKey.length + message.length;
}

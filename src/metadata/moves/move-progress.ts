// How far a prefix's MOVE has come, and which step may come next.

import type { MoveCursor, MoveResult } from '../../ports/metadata/moves.ts';
import { LIMITS } from '../../types/limits.ts';
import { explainMoveRefusal } from '../../types/move-refusals.ts';
import type { ObjectKey } from '../../types/names.ts';
import type { JobRecord, MoveError, MovePrefixJob } from '../../types/records/job-record.ts';
import { errorBytes, jobBytes, keptErrors } from '../jobs/jobs.ts';

/**
 * By the place, too: of two drivers each finds steps of its own size, and behind another's shorter step of the same number
 * the keys between them would be passed by.
 */
export function isNextOf(
  job: JobRecord,
  { stepCount, begin }: { stepCount: number; begin: MoveCursor },
): boolean {
  if (job.kind !== 'move-prefix' || job.endedAtMs !== undefined || job.stepCount !== stepCount) return false;
  return job.leg === begin.leg && job.after === begin.after;
}

/** The job behind a step that did this to these keys; without `cursor` it is at its end. */
export function progressed(
  job: MovePrefixJob,
  step: {
    driver: string;
    cursor: MoveCursor | undefined;
    moves: readonly { from: ObjectKey; to: string }[];
    results: readonly MoveResult[];
    nowMs: number;
  },
): MovePrefixJob {
  const { driver, cursor, moves, results, nowMs } = step;
  const { after: _, ...rest } = job;
  // All that are not yet in rows of their own.
  const errors = [...job.errors];
  const [errorsMax, bytesMax] = job.isTokenless
    ? [LIMITS.moveErrorsKeptMax, LIMITS.moveErrorsKeptBytesMax]
    : [LIMITS.moveErrorsUnderTokenMax, LIMITS.moveErrorsUnderTokenBytesMax];
  let { movedCount, errorCount } = job;
  let { errorCount: keptCount, textBytes: keptBytes } = keptErrors(job);
  for (const [index, { from, to }] of moves.entries()) {
    const result = results[index];
    if (result === undefined) continue;
    if (Array.isArray(result)) {
      movedCount += result.length;
      continue;
    }
    // It was there when the keys were gathered, and somebody has deleted it since.
    if (result.kind === 'no-such-key') continue;
    // Behind one that is not kept none is.
    const isBehindAll = keptCount === errorCount++;
    const error: MoveError = {
      sourceKey: from,
      destinationKey: to,
      ...explainMoveRefusal(result),
      ...(result.kind === 'blocked' && { versionId: result.versionId }),
    };
    keptBytes += errorBytes(error);
    if (!isBehindAll || keptCount >= errorsMax || keptBytes > bytesMax) continue;
    errors.push(error);
    keptCount++;
  }
  const stepped: MovePrefixJob = {
    ...rest,
    driver,
    stepCount: job.stepCount + 1,
    steppedAtMs: nowMs,
    movedCount,
    errorCount,
    errors,
    ...(cursor === undefined ? { endedAtMs: nowMs } : cursor),
  };
  // One that began before this was counted stays so to its end.
  return job.keptBytes === undefined ? stepped : { ...stepped, keptBytes: jobBytes(stepped) };
}

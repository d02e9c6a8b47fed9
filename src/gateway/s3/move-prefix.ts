// MOVE of a prefix as one request sees it: it begins the job, or finds the one that its token began, drives it while its
// client listens, and tells what becomes of each key. A client that leaves does not end it (metadata/background/drive-jobs.ts).
import { driveMove, type MoveCalls, restBetweenSteps } from '../../metadata/drive-move.ts';
import { AppError } from '../../model/errors.ts';
import { LIMITS } from '../../model/limits.ts';
import type { JobId } from '../../model/names.ts';
import type { MovePrefixJob } from '../../model/records/job-record.ts';
import { TooMuchKept } from '../../model/too-much-kept.ts';
import type { IdempotencyToken } from '../../ports/extension-calls.ts';
import type { OperationContext } from './context.ts';
import {
  brokenMoveEnd,
  moveDocumentEnd,
  moveDocumentHead,
  moveEntries,
  moveErrorEntry,
  moveItem,
} from './move-result.ts';
import type { OperationResult } from './operation.ts';

/** How often a driver looks what another one has done. */
const LOOK_EVERY_MS = 500;

export interface PrefixMove {
  from: string;
  to: string;
  overwrites: boolean;
  isQuiet: boolean;
  token: IdempotencyToken | undefined;
}

/** IdempotencyParameterMismatch; SlowDown while the shard has as many jobs as it may, or keeps as much of earlier ones. */
export async function movePrefix(context: OperationContext, move: PrefixMove): Promise<OperationResult> {
  const { from, to, overwrites, token } = move;
  const { homeShard, claim } = context.bucket();
  const { bucketId } = claim;
  const command = { bucketId, from, to, overwrites, ...(token && { token }) };
  const { value } = await context.metadata.execute(
    { shard: homeShard, bucket: claim },
    'begin-move',
    command,
  );
  if (value.kind === 'token-reused') throw new AppError('IdempotencyParameterMismatch');
  if (value.kind === 'too-many-jobs') throw new AppError('SlowDown');
  if (value.kind === 'too-much-kept') throw new TooMuchKept();
  // It was authorised by the bucket as it is now, and goes by its id: a new name or new rights do not reach it (R45).
  const answer =
    value.kind === 'begun'
      ? new PrefixAnswer(context, { move, homeShard, jobId: value.job.jobId })
      : new PrefixAnswer(context, { move, homeShard, jobId: value.jobId });
  const pieces = value.kind === 'begun' ? answer.drive(value.job) : answer.repeat();
  return { status: 200, body: { kind: 'xml-stream', pieces, whenBroken: (error) => answer.breakOff(error) } };
}

class PrefixAnswer {
  readonly #context: OperationContext;
  readonly #move: PrefixMove;
  readonly #calls: MoveCalls;
  #movedCount = 0;

  constructor(
    context: OperationContext,
    { move, homeShard, jobId }: { move: PrefixMove; homeShard: number; jobId: JobId },
  ) {
    this.#context = context;
    this.#move = move;
    const { metadata, clock } = context;
    const home = { shard: homeShard };
    this.#calls = {
      findMoves: async (query) => (await metadata.query(home, 'find-moves', query)).value,
      step: async (command) => (await metadata.execute(home, 'step-move', command)).value,
      async findJob() {
        const { job } = (await metadata.query(home, 'get-job', { jobId })).value;
        return job?.kind === 'move-prefix' ? job : undefined;
      },
      async pause() {
        await clock.sleep(LOOK_EVERY_MS, context.signal());
        return !context.signal().aborted;
      },
      others: restBetweenSteps(clock, context.hasCompany),
    };
  }

  /** Every key that this request moves, or fails to. */
  async *drive(job: MovePrefixJob): AsyncGenerator<string, void> {
    yield moveDocumentHead(this.#move);
    const { isQuiet } = this.#move;
    const told = new Set<string>();
    let listedCount = 0;
    let ended: MovePrefixJob | undefined;
    for await (const { moved, versioning, isLast } of driveMove(this.#calls, job)) {
      // Some may have been deleted by somebody else before their turn came.
      const met = moved.filter(({ result }) => Array.isArray(result) || result.kind !== 'no-such-key');
      // The whole step is recorded before a client that reads no more of it can leave.
      for (const key of met) {
        if (Array.isArray(key.result)) this.#movedCount += key.result.length;
        else {
          listedCount++;
          // The job keeps no more of them.
          if (told.size < LIMITS.moveErrorsKeptMax) told.add(key.from);
        }
        this.#context.record.item(moveItem(key));
      }
      // The job is not kept for long, and the client may take its time for what follows. A look that fails is made again
      // behind it: what has moved is told whatever becomes of the shard.
      if (isLast) ended = await this.#calls.findJob().catch(() => undefined);
      yield* moveEntries(met, { isQuiet, versioning });
    }
    ended ??= await this.#calls.findJob();
    // Others have brought it to its end, longer ago than it is kept for who listens: what they have met is not known.
    if (ended === undefined) throw new AppError('ServiceUnavailable');
    // Those that another driver has met: a client that waits must not take them for moved.
    for (const error of ended.errors) {
      if (told.has(error.sourceKey)) continue;
      listedCount++;
      yield moveErrorEntry(error);
    }
    yield moveDocumentEnd(ended.movedCount, ended.errorCount - listedCount);
  }

  /** What the job kept of itself, once it is at its end: its errors and its count. */
  async *repeat(): AsyncGenerator<string, void> {
    yield moveDocumentHead(this.#move);
    const job = await this.#calls.findJob();
    // It is kept for longer than its token; but both are forgotten by workers, each at its pace. Soon the token has gone, too.
    if (job === undefined) throw new AppError('ServiceUnavailable');
    for await (const _ of driveMove(this.#calls, job)) yield '';
    const ended = (await this.#calls.findJob()) ?? job;
    const { errors, errorCount, movedCount } = ended;
    for (const error of errors) yield moveErrorEntry(error);
    yield moveDocumentEnd(movedCount, errorCount - errors.length);
  }

  breakOff(error: AppError): string {
    return brokenMoveEnd(error, this.#movedCount);
  }
}

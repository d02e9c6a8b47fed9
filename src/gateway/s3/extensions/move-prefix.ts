// MOVE of a prefix, or of one key that moves in several entries, as one request sees it: it begins the job, drives it while
// its client listens, and reports what becomes of each key. One that repeats it under its token waits for the end of the
// job, and drives it on only where nobody else does. A client that leaves does not end it (metadata/jobs/drive-jobs.ts).
import { CANCELLED } from '../../../base/async/cancelled.ts';
import {
  driveMove,
  type MoveCalls,
  type MovedKeys,
  restBetweenSteps,
} from '../../../metadata/moves/drive-move.ts';
import { ownerOfTurn } from '../../../metadata/moves/move-turn.ts';
import type { IdempotencyToken } from '../../../ports/metadata/jobs.ts';
import type { KeyMove, MoveTurn } from '../../../ports/metadata/moves.ts';
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { MoveRefusal } from '../../../types/move-refusals.ts';
import type { JobId, ObjectKey } from '../../../types/names.ts';
import { OutcomeStoreFull } from '../../../types/outcome-store-full.ts';
import type { MovePrefixJob } from '../../../types/records/job-record.ts';
import type { OperationContext } from '../context.ts';
import type { OperationResult } from '../operation.ts';
import {
  brokenMoveEnd,
  moveDocumentEnd,
  moveDocumentHead,
  moveEntries,
  moveErrorEntry,
  moveItem,
  moveKeyDocumentHead,
} from './move-result.ts';

/** How often a driver looks what another one has done. */
const LOOK_EVERY_MS = 500;

export interface PrefixMove {
  from: string;
  to: string;
  overwrites: boolean;
  /** What has an access control list stays. */
  isPrivateOnly?: true;
  isQuiet: boolean;
  /** Who asks may not list: no key is named, and what does not move is told by number. */
  isNameless?: true;
  /** It is of one key. */
  isKey?: true;
  token: IdempotencyToken | undefined;
}

/** IdempotencyParameterMismatch; SlowDown while the shard has as many jobs as it may, or keeps as much of earlier ones. */
export async function movePrefix(context: OperationContext, move: PrefixMove): Promise<OperationResult> {
  const { from, to, overwrites, isPrivateOnly, token } = move;
  const { homeShard, believed } = context.bucket();
  const { bucketId } = believed;
  const driver = context.requestId;
  const command = {
    bucketId,
    from,
    to,
    overwrites,
    ...(isPrivateOnly && { isPrivateOnly }),
    driver,
    ...(token && { token }),
  };
  const { value } = await context.metadata.execute(
    { shard: homeShard, bucket: believed },
    'begin-move',
    command,
  );
  if (value.kind === 'token-reused') throw new AppError('IdempotencyParameterMismatch');
  if (value.kind === 'too-many-jobs') throw new AppError('SlowDown');
  if (value.kind === 'too-much-kept') throw new OutcomeStoreFull();
  // It was authorised by the bucket as it is now, and goes by its id: a new name or new rights do not reach it (R45).
  const answer =
    value.kind === 'begun'
      ? new PrefixAnswer(context, { move, homeShard, jobId: value.job.jobId })
      : new PrefixAnswer(context, { move, homeShard, jobId: value.jobId });
  return answer.asResult(value.kind === 'begun' ? answer.drive(value.job) : answer.repeat());
}

/**
 * Of one key that has more than one entry may hold; a refusal where nothing of it moves. Its latest version has moved when
 * this resolves. Errors as of movePrefix.
 */
export async function moveLargeKey(
  context: OperationContext,
  move: Omit<PrefixMove, 'isKey'> & { conditions: Omit<KeyMove, 'from' | 'to'> },
): Promise<OperationResult | { refusal: MoveRefusal }> {
  const { conditions, overwrites, isPrivateOnly, token } = move;
  const { homeShard, believed } = context.bucket();
  const { value } = await context.metadata.execute({ shard: homeShard, bucket: believed }, 'begin-key-move', {
    bucketId: believed.bucketId,
    overwrites,
    ...(isPrivateOnly && { isPrivateOnly }),
    driver: context.requestId,
    move: { from: move.from as ObjectKey, to: move.to, ...conditions },
    ...(token && { token }),
  });
  if (value.kind === 'token-reused') throw new AppError('IdempotencyParameterMismatch');
  if (value.kind === 'too-many-jobs') throw new AppError('SlowDown');
  if (value.kind === 'too-much-kept') throw new OutcomeStoreFull();
  if (value.kind === 'refused') return { refusal: value.result };
  if (value.kind === 'began-before') return repeatLargeKey(context, move, value.jobId);
  const { job, result, versioning } = value;
  const answer = new PrefixAnswer(context, { move: { ...move, isKey: true }, homeShard, jobId: job.jobId });
  const first = { moved: [{ from: move.from as ObjectKey, to: move.to, result }], versioning, isLast: false };
  return answer.asResult(answer.drive(job, first));
}

/** The answer to a request whose token has begun this job. */
export function repeatLargeKey(
  context: OperationContext,
  move: Omit<PrefixMove, 'isKey'>,
  jobId: JobId,
): OperationResult {
  const { homeShard } = context.bucket();
  const answer = new PrefixAnswer(context, { move: { ...move, isKey: true }, homeShard, jobId });
  return answer.asResult(answer.repeat());
}

class PrefixAnswer {
  readonly #context: OperationContext;
  readonly #move: PrefixMove;
  readonly #calls: MoveCalls;
  readonly #homeShard: number;
  readonly #jobId: JobId;
  #movedCount = 0;

  constructor(
    context: OperationContext,
    { move, homeShard, jobId }: { move: PrefixMove; homeShard: number; jobId: JobId },
  ) {
    this.#context = context;
    this.#move = move;
    this.#homeShard = homeShard;
    this.#jobId = jobId;
    const { metadata, clock } = context;
    const home = { shard: homeShard };
    const others = restBetweenSteps(clock, context.hasCompany);
    const inPlace = <T>(of: MoveTurn, call: () => Promise<{ value: T }>): Promise<T> =>
      context.movePlaces.within(
        ownerOfTurn(of),
        context.signal(),
        async () => (await others.work(call)).value,
      );
    this.#calls = {
      findMoves: (query) => inPlace(query, () => metadata.query(home, 'find-moves', query)),
      step: (command) => inPlace(command, () => metadata.execute(home, 'step-move', command)),
      stepKey: (command) => inPlace(command, () => metadata.execute(home, 'step-key-move', command)),
      async findJob() {
        const { job, nowMs } = (await metadata.query(home, 'get-job', { jobId, isBrief: true })).value;
        return job?.kind === 'move-prefix' ? { job, nowMs } : undefined;
      },
      driver: context.requestId,
      async pause() {
        await clock.sleep(LOOK_EVERY_MS, context.signal());
        return !context.signal().aborted;
      },
      others,
    };
  }

  asResult(texts: AsyncGenerator<string, void>): OperationResult {
    return { status: 200, body: { kind: 'xml-stream', texts, whenBroken: (error) => this.breakOff(error) } };
  }

  #head(): string {
    return this.#move.isKey ? moveKeyDocumentHead() : moveDocumentHead(this.#move);
  }

  /** Every key that this request moves, or fails to; `first`: what has moved as the job began. */
  async *drive(job: MovePrefixJob, first?: MovedKeys): AsyncGenerator<string, void> {
    const { isNameless, isQuiet } = this.#move;
    yield this.#head();
    const reported = new Set<string>();
    let reportedBytes = 0;
    let listedCount = 0;
    let ended: MovePrefixJob | undefined;
    for await (const { moved, versioning, isLast } of this.#steps(job, first)) {
      // Some may have been deleted by somebody else before their turn came.
      const met = moved.filter(({ result }) => Array.isArray(result) || result.kind !== 'no-such-key');
      // The whole step is recorded before a client that reads no more of it can leave.
      for (const key of met) {
        if (Array.isArray(key.result)) this.#movedCount += key.result.length;
        else {
          if (!isNameless) listedCount++;
          // The job keeps no more of them.
          if (reported.size < LIMITS.moveErrorsKeptMax && reportedBytes <= LIMITS.moveErrorsKeptBytesMax) {
            reported.add(key.from);
            reportedBytes += Buffer.byteLength(key.from);
          }
        }
        this.#context.record.item(moveItem(key));
      }
      // The job is not stored for long, and the client may take its time for what follows. A failed look-up is repeated
      // afterwards: what has moved is reported whatever becomes of the shard.
      if (isLast) ended = await this.#findJob().catch(() => undefined);
      yield* isNameless ? [''] : moveEntries(met, { isQuiet, versioning });
    }
    ended ??= await this.#findJob();
    // Others have brought it to its end, longer ago than it is kept for who listens: what they have met is not known.
    if (ended === undefined) throw new AppError('ServiceUnavailable');
    // Those that another driver has met: a client that waits must not take them for moved.
    for (const error of ended.errors) {
      if (isNameless || reported.has(error.sourceKey)) continue;
      listedCount++;
      yield moveErrorEntry(error);
    }
    yield moveDocumentEnd(ended.movedCount, ended.errorCount - listedCount);
  }

  /** What the job kept of itself, once it is at its end: its errors and its count. */
  async *repeat(): AsyncGenerator<string, void> {
    yield this.#head();
    const job = (await this.#calls.findJob())?.job;
    // It is kept for longer than its token; but both are forgotten by workers, each at its pace. Soon the token has gone, too.
    if (job === undefined) throw new AppError('ServiceUnavailable');
    for await (const _ of this.#steps(job)) yield '';
    const ended = (await this.#findJob()) ?? job;
    const { errors, errorCount, movedCount } = ended;
    const told = this.#move.isNameless ? [] : errors;
    for (const error of told) yield moveErrorEntry(error);
    yield moveDocumentEnd(movedCount, errorCount - told.length);
  }

  /** The steps that this request makes. Between two of them its client may take its time; when it leaves, others go on at once. */
  async *#steps(job: MovePrefixJob, first?: MovedKeys): AsyncGenerator<MovedKeys, void> {
    const { clock } = this.#context;
    const ended = new AbortController();
    let steppedAtMs = job.driver === this.#calls.driver ? clock.monotonicMs() : undefined;
    void this.#holdOn(ended.signal, () => steppedAtMs);
    let isLeft = true;
    try {
      if (first !== undefined) yield first;
      for await (const step of driveMove(this.#calls, job)) {
        steppedAtMs = clock.monotonicMs();
        yield step;
      }
      isLeft = false;
    } finally {
      ended.abort(CANCELLED);
      // Where the shard does not answer, its own node finds that nobody drives the job.
      if (isLeft) await this.#hold({ leaves: true }).catch(() => undefined);
    }
  }

  /** Says to the shard that this request drives the job, while its client takes its time; not for ever. */
  async #holdOn(ended: AbortSignal, lastStepAtMs: () => number | undefined): Promise<void> {
    const { clock } = this.#context;
    for (;;) {
      await clock.sleep(LIMITS.jobHoldMs, ended);
      if (ended.aborted) return;
      const atMs = lastStepAtMs();
      const silentMs = atMs === undefined ? 0 : clock.monotonicMs() - atMs;
      if (silentMs < LIMITS.jobHoldMs / 2 || silentMs > LIMITS.jobStalledMs) continue;
      // One that fails may be followed by one that does not.
      await this.#hold({ leaves: false }).catch(() => undefined);
    }
  }

  async #hold({ leaves }: { leaves: boolean }): Promise<void> {
    const { metadata, requestId: driver } = this.#context;
    const command = { jobId: this.#jobId, driver, leaves };
    await metadata.execute({ shard: this.#homeShard }, 'hold-move', command);
  }

  /** With its errors. */
  async #findJob(): Promise<MovePrefixJob | undefined> {
    const query = { jobId: this.#jobId };
    const { job } = (await this.#context.metadata.query({ shard: this.#homeShard }, 'get-job', query)).value;
    return job?.kind === 'move-prefix' ? job : undefined;
  }

  breakOff(error: AppError): string {
    return brokenMoveEnd(error, this.#movedCount);
  }
}

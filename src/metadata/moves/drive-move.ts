// Drives a prefix's MOVE (service 4.2): looks for the next keys of the walk while those before them are moved. Each step is
// one entry, which names the step that it follows. A driver may stop at any time, and another one go on: the request that
// began the job, one that repeats it, or the background (metadata/jobs/drive-jobs.ts). Where others wait it does little at
// a time, and rests for longer than it works.
import { must } from '../../base/assert.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { MoveCursor, MoveResult, MoveTurn } from '../../ports/metadata/moves.ts';
import type { CommandOf, OutcomeOf, QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import { LIMITS } from '../../types/limits.ts';
import type { ObjectKey } from '../../types/names.ts';
import { type MovePrefixJob, mayDrive } from '../../types/records/job-record.ts';
import type { Versioning } from '../../types/versioning.ts';

/** How the bucket's home is asked; what cannot be had is thrown. */
export interface MoveCalls {
  findMoves(query: QueryOf<'find-moves'>): Promise<ResultOf<'find-moves'>>;
  step(command: CommandOf<'step-move'>): Promise<OutcomeOf<'step-move'>>;
  stepKey(command: CommandOf<'step-key-move'>): Promise<OutcomeOf<'step-key-move'>>;
  findJob(): Promise<FoundMove | undefined>;
  /** As whom it makes steps: those of others are refused meanwhile. */
  driver: string;
  /** Before it looks again at what another driver does, or a bucket that takes no writes: false to leave. */
  pause(): Promise<boolean>;
  /** Others who wait for what this driver is at work on; absent: there are none. */
  others?: MoveOthers;
}

/** A job, and the shard's time. */
export interface FoundMove {
  job: MovePrefixJob;
  nowMs: number;
}

export interface MoveOthers {
  /** Steps are small then, one at a time, with rests in between. */
  areWaiting(): boolean;
  /** REST_SHARE times as long as the work since the last rest took. */
  rest(): Promise<void>;
}

/**
 * With rests as short as the work clients notice the slowest of their requests more than they should
 * (docs/internals/performance.md).
 */
export const REST_SHARE = 2;

/**
 * For drivers: rests by this clock while `areWaiting`. Work is what goes through `work`: a driver that rested for its own waits,
 * too, would be silent for so long in a crowd that others drove its job on.
 */
export function restBetweenSteps(
  clock: Pick<ClockPort, 'monotonicMs' | 'sleep'>,
  areWaiting: () => boolean,
): MoveOthers & { work<T>(call: () => Promise<T>): Promise<T> } {
  let callCount = 0;
  let beganAtMs = 0;
  let endedMs = 0;
  let restedForMs = 0;
  const workedMs = () => (callCount === 0 ? endedMs : endedMs + clock.monotonicMs() - beganAtMs);
  return {
    areWaiting,
    async rest() {
      const unrestedMs = workedMs() - restedForMs;
      if (unrestedMs > 0) await clock.sleep(REST_SHARE * unrestedMs);
      restedForMs = workedMs();
    },
    async work(call) {
      if (callCount++ === 0) beganAtMs = clock.monotonicMs();
      try {
        return await call();
      } finally {
        const allMs = workedMs();
        if (--callCount === 0) endedMs = allMs;
      }
    },
  };
}

/** What one step has done. */
export interface MovedKeys {
  moved: { from: ObjectKey; to: string; result: MoveResult }[];
  versioning: Versioning;
  /** The job has ended with it. */
  isLast: boolean;
}

/** Steps that are sent and not answered: while one is being synced the next one is evaluated. */
const STEPS_IN_FLIGHT = 2;

interface SentStep {
  keys: readonly ObjectKey[];
  isLast: boolean;
  outcome: Promise<OutcomeOf<'step-move'>>;
}

/** Each step that this driver makes; it has come to its end when the job has, or another driver is left to it. */
export async function* driveMove(calls: MoveCalls, begun: MovePrefixJob): AsyncGenerator<MovedKeys, void> {
  const { from, to } = begun;
  let job = begun.driver === calls.driver ? begun : await whenLeft(calls);
  /** Fewer where the rows of as many were more than one entry may hold. */
  let keysMax: number = LIMITS.moveKeysMax;
  while (job !== undefined && job.endedAtMs === undefined) {
    if (job.within !== undefined) {
      job = yield* moveInSteps(calls, job, job.within.from);
      continue;
    }
    const sent: SentStep[] = [];
    const sender = stepSender(calls, job, () => keysMax);
    try {
      for (;;) {
        const inFlightMax = calls.others?.areWaiting() ? 1 : STEPS_IN_FLIGHT;
        while (sent.length < inFlightMax && sender.hasMore()) sent.push(await sender.send());
        const step = must(sent.shift(), 'a walk ends with its last step');
        const outcome = await step.outcome;
        if (outcome.kind === 'no-such-job') return;
        if (outcome.kind === 'large-key') {
          job = yield* moveInSteps(calls, outcome.job, must(step.keys[0], 'the key of the step'));
          break;
        }
        if (outcome.kind === 'too-much') {
          job = outcome.job;
          keysMax = Math.ceil(step.keys.length / 2);
          break;
        }
        if (outcome.kind === 'elsewhere' || outcome.kind === 'held') {
          // Its bucket may be open again, or gone, at the next look.
          const mayLook = outcome.kind === 'elsewhere' || (await calls.pause());
          job = mayLook ? await whenLeft(calls) : undefined;
          break;
        }
        keysMax = Math.min(2 * keysMax, LIMITS.moveKeysMax);
        const { results, versioning } = outcome;
        const moved = step.keys.map((key, at) => ({
          from: key,
          to: to + key.slice(from.length),
          result: results[at] as MoveResult,
        }));
        const { isLast } = step;
        yield { moved, versioning, isLast };
        if (isLast) return;
        if (calls.others?.areWaiting()) await calls.others.rest();
      }
    } finally {
      // The next driver finds the job as these leave it.
      await Promise.allSettled(sent.map(({ outcome }) => outcome));
    }
  }
}

/** A key that one entry cannot hold, from its first entry or from where it stands to its last. The job then, as driveMove has it. */
async function* moveInSteps(
  calls: MoveCalls,
  before: MovePrefixJob,
  key: ObjectKey,
): AsyncGenerator<MovedKeys, MovePrefixJob | undefined> {
  const { jobId } = before;
  const to = before.isKey ? before.to : before.to + key.slice(before.from.length);
  let job = before;
  let phase: CommandOf<'step-key-move'>['phase'] = job.within === undefined ? 'open' : 'move';
  for (;;) {
    const areWaiting = calls.others?.areWaiting() ?? false;
    const outcome = await calls.stepKey({
      ...turnOf(job),
      jobId,
      driver: calls.driver,
      stepCount: job.stepCount,
      begin: cursorOf(job),
      key,
      to: to as ObjectKey,
      phase,
      versionsMax: areWaiting ? LIMITS.moveStepVersionsBesideOthersMax : LIMITS.moveStepVersionsMax,
    });
    if (outcome.kind === 'no-such-job') return undefined;
    if (outcome.kind !== 'stepped') {
      if (outcome.kind === 'held' && !(await calls.pause())) return undefined;
      return whenLeft(calls);
    }
    const { result, versioning, hasMore } = outcome;
    job = outcome.job;
    const isLast = job.endedAtMs !== undefined;
    const isEmpty = Array.isArray(result) && result.length === 0;
    const moved = isEmpty ? [] : [{ from: key, to, result }];
    if (!isEmpty || isLast) yield { moved, versioning, isLast };
    // It has been closed, or could not be opened.
    if (job.within === undefined) return job;
    phase = hasMore ? 'move' : 'close';
    if (areWaiting) await calls.others?.rest();
  }
}

/** The steps of a walk in their order, each begun where the one before it ends; the next keys are looked for meanwhile. */
function stepSender(
  calls: MoveCalls,
  job: MovePrefixJob,
  keysMaxNow: () => number,
): { hasMore(): boolean; send(): Promise<SentStep> } {
  const { jobId, from, to } = job;
  const turn = turnOf(job);
  const find = (cursor: MoveCursor) => {
    const wantedMax = calls.others?.areWaiting() ? LIMITS.moveKeysBesideOthersMax : LIMITS.moveKeysMax;
    const keysMax = Math.min(wantedMax, keysMaxNow());
    return quietly(calls.findMoves({ ...turn, from, to, cursor, keysMax }));
  };
  let { stepCount } = job;
  let begin = cursorOf(job);
  let finding: ReturnType<typeof find> | undefined = find(begin);
  return {
    hasMore: () => finding !== undefined,
    async send() {
      const { keys, cursor } = await must(finding, 'there is more to move');
      const { driver } = calls;
      const command = { ...turn, jobId, driver, stepCount: stepCount++, begin, from, to, keys };
      const outcome = quietly(calls.step(cursor === undefined ? command : { ...command, cursor }));
      finding = cursor && find(cursor);
      if (cursor !== undefined) begin = cursor;
      return { keys, isLast: cursor === undefined, outcome };
    },
  };
}

/** It may be asked for in vain, and then its failure is nobody's. */
function quietly<T>(work: Promise<T>): Promise<T> {
  work.catch(() => {});
  return work;
}

/** The job once this driver may go on with it; undefined: it is at its end, or left to others. */
async function whenLeft(calls: MoveCalls): Promise<MovePrefixJob | undefined> {
  for (;;) {
    const found = await calls.findJob();
    if (found === undefined || found.job.endedAtMs !== undefined) return undefined;
    if (mayDrive(found.job, calls.driver, found.nowMs)) return found.job;
    if (!(await calls.pause())) return undefined;
  }
}

function turnOf({ bucketId, owner }: MovePrefixJob): MoveTurn {
  return owner === undefined ? { bucketId } : { bucketId, owner };
}

function cursorOf({ leg, after }: MovePrefixJob): MoveCursor {
  return after === undefined ? { leg } : { leg, after };
}

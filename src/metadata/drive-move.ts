// Drives a prefix's MOVE (service.txt 4.2): looks for the next keys of the walk while those before them are moved, each
// step one entry that names the one that it comes behind. Whoever drives may leave at any time, and somebody else go on:
// the request that began it, one that repeats it, or the background (background/drive-jobs.ts).
import type { ObjectKey } from '../model/names.ts';
import type { MovePrefixJob } from '../model/records/job-record.ts';
import type { Versioning } from '../model/versioning.ts';
import type { MoveResult } from '../ports/extension-calls.ts';
import type { CommandOf, OutcomeOf, QueryOf, ResultOf } from '../ports/metadata.ts';

/** How the bucket's home is asked; what cannot be had is thrown. */
export interface MoveCalls {
  findMoves(query: QueryOf<'find-moves'>): Promise<ResultOf<'find-moves'>>;
  step(command: CommandOf<'step-move'>): Promise<OutcomeOf<'step-move'>>;
  findJob(): Promise<MovePrefixJob | undefined>;
  /** Before it looks again at what another driver does, or a bucket that takes no writes: false to leave. */
  pause(): Promise<boolean>;
}

/** What one step has done. */
export interface MovedKeys {
  moved: { from: ObjectKey; to: string; result: MoveResult }[];
  versioning: Versioning;
}

/** Each step that this driver makes; it has come to its end when the job has, or another driver is left to it. */
export async function* driveMove(calls: MoveCalls, begun: MovePrefixJob): AsyncGenerator<MovedKeys, void> {
  const { bucketId, jobId, from, to } = begun;
  const find = (cursor: QueryOf<'find-moves'>['cursor']) => {
    const finding = calls.findMoves({ bucketId, from, to, cursor });
    // It may be asked for in vain.
    finding.catch(() => {});
    return finding;
  };
  let job: MovePrefixJob | undefined = begun;
  while (job !== undefined && job.endedAtMs === undefined) {
    let { stepCount } = job;
    let finding = find(cursorOf(job));
    for (;;) {
      const { keys, cursor } = await finding;
      const command = { bucketId, jobId, stepCount, from, to, keys, ...(cursor && { cursor }) };
      const stepping = calls.step(command);
      if (cursor !== undefined) finding = find(cursor);
      const outcome = await stepping;
      if (outcome.kind === 'no-such-job') return;
      if (outcome.kind === 'elsewhere' || outcome.kind === 'held') {
        job = await whenLeft(calls, outcome.kind === 'held' ? job : outcome.job);
        break;
      }
      const { results, versioning } = outcome;
      const moved = keys.map((key, at) => ({
        from: key,
        to: to + key.slice(from.length),
        result: results[at] as MoveResult,
      }));
      yield { moved, versioning };
      if (cursor === undefined) return;
      stepCount++;
    }
  }
}

/** The job once nobody else has driven it on between two looks, or its end; undefined: it is left to them. */
async function whenLeft(calls: MoveCalls, seen: MovePrefixJob): Promise<MovePrefixJob | undefined> {
  for (let before = seen; before.endedAtMs === undefined; ) {
    if (!(await calls.pause())) return undefined;
    const now = await calls.findJob();
    if (now === undefined || now.stepCount === before.stepCount) return now;
    before = now;
  }
  return undefined;
}

function cursorOf({ leg, after }: MovePrefixJob): QueryOf<'find-moves'>['cursor'] {
  return after === undefined ? { leg } : { leg, after };
}

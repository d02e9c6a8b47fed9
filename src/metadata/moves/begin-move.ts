// Begins the MOVE of a prefix (service 4.2): a job of the bucket's home, which any driver can continue. A repetition under
// its token is the same job.
import { equalBytes } from '../../base/bytes/bytes.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { View } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import { type AccountId, type JobId, makeJobId } from '../../types/names.ts';
import type { MovePrefixJob } from '../../types/records/job-record.ts';
import { joinChanges } from '../blobs/repair-entries.ts';
import { findBucket, openBucket } from '../buckets/buckets.ts';
import { changeJob, jobBytes, markOf, openJobs } from '../jobs/jobs.ts';
import { mayBeStored } from '../outcomes/outcome-bounds.ts';
import { keepOutcome, lookAtToken, storedOutcome, tokenLocks } from '../outcomes/tokens.ts';
import { defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { refuse } from '../versions/write-version.ts';

type Command = CommandOf<'begin-move'>;
type Outcome = OutcomeOf<'begin-move'>;
/** What is kept under the token. */
interface Begun {
  jobId: JobId;
}

export const OPEN_MOVES = openJobs({ kind: 'move-prefix', limit: LIMITS.jobsWithOnlyOnesMax });

export const beginMove = defineCommand<Command, Outcome>({
  locks: (command) => [shared(LOCK.bucket(command.bucketId)), exclusive(LOCK.jobs), ...tokenLocks(command)],

  look(command, view) {
    lookAtToken(command, view);
    findBucket(view, command.bucketId);
    view.range(OPEN_MOVES);
  },

  decide(command, view, context) {
    const { nowMs, random, origin } = context;
    const stored = storedOutcome<Begun>(command, view, nowMs);
    if (stored?.kind === 'repeated') return refuse({ kind: 'began-before', ...stored.outcome });
    if (stored !== undefined) return refuse(stored);
    const { bucketId, from, to, overwrites, isPrivateOnly, token, driver } = command;
    const { owner, events } = openBucket(view, bucketId);
    if (isBusy(view, owner)) return refuse({ kind: 'too-many-jobs' });
    const jobId = makeJobId({ timeMs: nowMs, random: random(8) });
    const begins: MovePrefixJob = {
      kind: 'move-prefix',
      owner,
      jobId,
      bucketId,
      from,
      to,
      overwrites,
      beganAtMs: nowMs,
      steppedAtMs: nowMs,
      stepCount: 0,
      leg: 0,
      movedCount: 0,
      errorCount: 0,
      errors: [],
      ...(isPrivateOnly && { isPrivateOnly }),
      ...(token === undefined && { isTokenless: true }),
      ...(driver !== undefined && { driver }),
      ...(events && origin && { origin }),
    };
    const job: MovePrefixJob = { ...begins, keptBytes: jobBytes(begins) };
    const begun: Begun = { jobId };
    const change = joinChanges([
      changeJob(undefined, job),
      keepOutcome(command, begun, { owner, nowMs, view }),
    ]);
    if (!mayBeStored(owner, change.counters, context)) return refuse({ kind: 'too-much-kept' });
    return { outcome: { kind: 'begun', job }, ...change };
  },
});

/** One account leaves room for others, and where some have filled the shard each other may have one. `view` has looked at OPEN_MOVES. */
export function isBusy(view: View, owner: AccountId): boolean {
  const marks = view.range(OPEN_MOVES).map(({ value }) => value);
  const own = markOf({ kind: 'move-prefix', owner });
  const ownCount = marks.filter((mark) => equalBytes(mark, own)).length;
  if (ownCount === 0) return marks.length >= LIMITS.jobsWithOnlyOnesMax;
  return marks.length >= LIMITS.jobsMax || ownCount >= LIMITS.jobsPerAccountMax;
}

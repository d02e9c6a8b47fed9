// A step of a key that moves in several entries. Its latest version moves first, so at each moment one of the two keys has
// the current object, and each version is under one of them. Nothing else changes either key meanwhile (buckets.ts).
import { assert } from '../../base/assert.ts';
import { compareBytes, utf8 } from '../../base/bytes/bytes.ts';
import { behind } from '../../base/table-rows.ts';
import type { MoveCursor, MoveResult } from '../../ports/metadata/moves.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { Decision, RowPut, View } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import { type KeyInSteps, type MovePrefixJob, mayDrive } from '../../types/records/job-record.ts';
import { type BucketRecord, bucketCodec } from '../../types/records/rows.ts';
import { versionOrder } from '../../types/records/version-record.ts';
import { joinChanges, type RowChange } from '../blobs/repair-entries.ts';
import { findBucket, isBeingRenamed } from '../buckets/buckets.ts';
import { noteEvents } from '../events/note-events.ts';
import { changeJob, findJob, jobBytes } from '../jobs/jobs.ts';
import { type CommandContext, defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { bucketRow, put, versionRange, versionRow } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { type CheckedVersions, checkVersions, lookAtLargeMove, refusalOfVersions } from './check-versions.ts';
import {
  baseOf,
  type LoadedMove,
  loadFirstMove,
  type MoveChange,
  moveHistory,
  moveOlder,
  refused,
  renameOf,
  versionsOfEntry,
} from './move-history.ts';
import { isNextOf, progressed } from './move-progress.ts';
import { ownerOfTurn } from './move-turn.ts';
import { planPrefixMove } from './plan-prefix-move.ts';

type Command = CommandOf<'step-key-move'>;
type Outcome = OutcomeOf<'step-key-move'>;

export const stepKeyMove = defineCommand<Command, Outcome, CheckedVersions | undefined>({
  locks({ bucketId, jobId, key, to, phase }) {
    assert(key !== to, 'a key is moved to another one');
    return [
      exclusive(LOCK.job(jobId)),
      // Its row says which keys are being renamed.
      phase === 'move' ? shared(LOCK.bucket(bucketId)) : exclusive(LOCK.bucket(bucketId)),
      exclusive(LOCK.key(bucketId, key)),
      exclusive(LOCK.key(bucketId, to)),
    ];
  },

  ownerOf: ownerOfTurn,
  // As steps of a prefix.
  isLong: () => true,

  look(command, view, rules) {
    const job = findJob(view, command.jobId);
    findBucket(view, command.bucketId);
    if (job?.kind !== 'move-prefix' || !isNextOf(job, command)) return;
    if (command.phase === 'open') lookAtLargeMove(view, largeMove(command, job, view), rules);
    else olderRows(view, command, job.within);
  },

  *prepare(command, view, { rules }) {
    const job = findJob(view, command.jobId);
    const opens = command.phase === 'open' && job?.kind === 'move-prefix' && isNextOf(job, command);
    return opens ? yield* checkVersions(view, largeMove(command, job, view), rules) : undefined;
  },

  decide(command, view, context, checked) {
    const { bucketId, jobId, phase } = command;
    const { nowMs } = context;
    const job = findJob(view, jobId);
    if (job?.kind !== 'move-prefix') return refuse({ kind: 'no-such-job' });
    const isNext = isNextOf(job, command) && isAt(job, command) && mayDrive(job, command.driver, nowMs);
    if (!isNext) return refuse({ kind: 'elsewhere', job });
    const bucket = findBucket(view, bucketId);
    if (bucket?.state === 'closing') return refuse({ kind: 'held' });
    if (bucket?.state !== 'open') {
      const { within: _, ...rest } = job;
      const ended = { ...rest, endedAtMs: nowMs };
      return { outcome: { kind: 'elsewhere', job: ended }, ...changeJob(job, ended) };
    }
    const step = { command, job, bucket, view, context };
    if (phase === 'open') return open(step, checked);
    return phase === 'move' ? moveSome(step) : close(step);
  },
});

interface Step {
  command: Command;
  job: MovePrefixJob;
  bucket: BucketRecord;
  view: View;
  context: CommandContext;
}

/** A key is opened once, and then it is the one that the others are about. */
function isAt({ within }: MovePrefixJob, { key, to, phase }: Command): boolean {
  return phase === 'open' ? within === undefined : within?.from === key && within.to === to;
}

function largeMove({ bucketId, key: from, to }: Command, job: MovePrefixJob, view: View) {
  const { overwrites, isPrivateOnly } = job;
  return { bucketId, from, to, overwrites, isPrivateOnly, bucket: findBucket(view, bucketId) };
}

function open(
  { command, job, bucket, view, context }: Step,
  checked: CheckedVersions | undefined,
): Decision<Outcome> {
  const { bucketId, jobId, key: from, to, driver, begin } = command;
  const { nowMs } = context;
  const { versioning } = bucket;
  const loaded = loadFirstMove(view, { bucketId, from, to, versioning });
  const first = openedMove({ command, job, bucket, context }, loaded, checked);
  const { result } = first;
  const cursor = cursorBehind(job, command);
  const done = progressed(job, { driver, cursor, moves: [{ from, to }], results: [result], nowMs });
  if (!Array.isArray(result)) return stepped({ before: job, job: done, result, bucket });
  const { after: _, ...rest } = done;
  // The walk goes on behind the key once that has moved as a whole.
  const opened: MovePrefixJob = { ...rest, ...begin, within: { from, to, base: baseOf(loaded) } };
  const keyRenames = [...(bucket.keyRenames ?? []), { jobId, from, to }];
  const held = put(bucketRow(bucketId), bucketCodec.encode({ ...bucket, keyRenames }));
  const origin = job.origin ?? context.origin;
  const noted = noteEvents(bucket, { ...context, origin }, () => renameOf({ from, to }, first));
  const change = joinChanges([first, { puts: [held], counters: [] }, noted]);
  return stepped({ before: job, job: opened, result, bucket, change, hasMore: true });
}

function openedMove(
  { command, job, bucket, context }: Omit<Step, 'view'>,
  loaded: LoadedMove,
  checked: CheckedVersions | undefined,
): MoveChange {
  const { key: from, to } = command;
  if ([from, to].some((key) => isBeingRenamed(bucket, key))) return refused({ kind: 'being-renamed' });
  const { overwrites, isPrivateOnly } = job;
  const first = moveHistory({ bucket, move: { from, to }, loaded, overwrites, isPrivateOnly, context });
  const kept = Array.isArray(first.result)
    ? refusalOfVersions(checked, { bucket, isPrivateOnly }, context)
    : undefined;
  return kept === undefined ? first : refused(kept);
}

/** Where the walk goes on behind a key. The legs before the key's had nothing left when the step was begun. */
function cursorBehind({ from, to, isKey }: MovePrefixJob, { key, begin }: Command): MoveCursor {
  if (isKey) return { leg: begin.leg, after: key };
  const at = utf8(key);
  const leg = planPrefixMove(from, to).findIndex(
    ({ gte, lt }) => compareBytes(gte, at) <= 0 && compareBytes(at, lt) < 0,
  );
  assert(leg >= begin.leg, 'a walk goes on in its direction');
  return { leg, after: key };
}

function moveSome({ command, job, bucket, view, context }: Step): Decision<Outcome> {
  const { bucketId, driver } = command;
  const { within } = job;
  assert(within !== undefined, 'the key has been opened');
  const { older, isAll } = olderRows(view, command, within);
  const moved = moveOlder({ bucketId, ...within }, older);
  const now = { ...job, driver, stepCount: job.stepCount + 1, steppedAtMs: context.nowMs };
  const { result } = moved;
  const count = Array.isArray(result) ? result.length : 0;
  const last = older.at(-1);
  const below = last === undefined ? within : { ...within, below: versionOrder(last) };
  const after = { ...now, within: below, movedCount: now.movedCount + count };
  return stepped({ before: job, job: after, result, bucket, change: moved, hasMore: !isAll });
}

function close({ command, job, bucket, view, context }: Step): Decision<Outcome> {
  const { bucketId, jobId, driver } = command;
  const { older } = olderRows(view, command, job.within);
  if (older.length > 0) return stepped({ before: job, job, result: [], bucket, hasMore: true });
  const { within: _, after: _after, ...rest } = job;
  const { nowMs } = context;
  const closed: MovePrefixJob = {
    ...rest,
    driver,
    stepCount: job.stepCount + 1,
    steppedAtMs: nowMs,
    ...(job.isKey ? { endedAtMs: nowMs } : cursorBehind(job, command)),
  };
  const { keyRenames = [], ...free } = bucket;
  const others = keyRenames.filter((each) => each.jobId !== jobId);
  const row: BucketRecord = others.length === 0 ? free : { ...free, keyRenames: others };
  const puts: RowPut[] = [put(bucketRow(bucketId), bucketCodec.encode(row))];
  return stepped({ before: job, job: closed, result: [], bucket, change: { puts, counters: [] } });
}

function stepped(step: {
  before: MovePrefixJob;
  job: MovePrefixJob;
  result: MoveResult;
  bucket: BucketRecord;
  change?: RowChange;
  hasMore?: boolean;
}): Decision<Outcome> {
  const { before, result, bucket, change, hasMore = false } = step;
  const { versioning } = bucket;
  const job: MovePrefixJob =
    step.job.keptBytes === undefined ? step.job : { ...step.job, keptBytes: jobBytes(step.job) };
  const outcome: Outcome = { kind: 'stepped', result, versioning, job, hasMore };
  if (step.job === before) return refuse(outcome);
  const ofJob = changeJob(before, job);
  return { outcome, ...joinChanges(change === undefined ? [ofJob] : [change, ofJob]) };
}

/** Rows of one look; each may be some hundreds of KiB. */
const PAGE_VERSIONS = 100;

/** The next versions below the latest, newest first, as many as a step moves. */
function olderRows(
  view: View,
  { bucketId, key, to, versionsMax, phase }: Command,
  within: KeyInSteps | undefined,
): { older: Uint8Array[]; isAll: boolean } {
  const most = Math.min(versionsMax, LIMITS.moveStepVersionsMax);
  const limit = phase === 'close' ? 1 : versionsOfEntry({ from: key, to }, most);
  const older: Uint8Array[] = [];
  let leftBytes: number = LIMITS.moveBytesMax;
  let { gte, ...range } = versionRange({ bucketId, key, limit: 1 });
  // Behind what earlier steps took out, whose traces a scan would crawl over (B11).
  if (within?.below !== undefined) gte = behind(versionRow(bucketId, key, within.below).key);
  for (;;) {
    const wanted = Math.min(PAGE_VERSIONS, limit - older.length);
    const rows = view.range({ ...range, gte, limit: wanted, bytesMax: LIMITS.moveBytesMax });
    for (const { value } of rows) {
      older.push(value);
      leftBytes -= value.length;
    }
    const last = rows.at(-1);
    // A page may have ended by its bytes.
    if (last === undefined) return { older, isAll: true };
    if (older.length >= limit || leftBytes <= 0) return { older, isAll: false };
    gte = behind(last.key);
  }
}

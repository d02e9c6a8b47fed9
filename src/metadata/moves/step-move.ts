// One step of a prefix's MOVE: keys bear other ones, each with all of its versions, and the job's row says how far the
// walk has come, in the same entry. Bucket and settings are looked at here, for it goes on whatever becomes of the name
// that the bucket had, or of the caller's rights, when it began (R45).
import { assert } from '../../base/assert.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { CounterDelta, RangeAddress, RowAddress, RowPut, View } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BucketId, ObjectKey } from '../../types/names.ts';
import { mayDrive } from '../../types/records/job-record.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import { mayHaveOlderVersions, type Versioning } from '../../types/versioning.ts';
import { findBucket, isBeingRenamed } from '../buckets/buckets.ts';
import { type NewEvent, noteEvents } from '../events/note-events.ts';
import { changeJob, findJob } from '../jobs/jobs.ts';
import { sumDeltas } from '../schema/counters.ts';
import { type CommandContext, defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { REGION } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import {
  type LoadedMove,
  loadMove,
  type MoveChange,
  type MoveRows,
  movedRowsBytes,
  moveHistory,
  nullVersionOf,
  refused,
  renameOf,
} from './move-history.ts';
import { isNextOf, progressed } from './move-progress.ts';
import { latestOfMany, olderOfMany } from './move-rows.ts';
import { ownerOfTurn } from './move-turn.ts';

type Command = CommandOf<'step-move'>;
type Outcome = OutcomeOf<'step-move'>;
interface Move {
  from: ObjectKey;
  to: string;
}

export const stepMove = defineCommand<Command, Outcome>({
  locks(command) {
    const { bucketId, jobId } = command;
    const moves = movesOf(command);
    const names = [...moves.map(({ from }) => from), ...moves.map(({ to }) => to)];
    assert(moves.length <= LIMITS.moveKeysMax, 'a step is bounded');
    // Each key is looked at as it is before the step.
    assert(new Set(names).size === names.length, 'no key is touched twice in one step');
    return [
      exclusive(LOCK.job(jobId)),
      shared(LOCK.bucket(bucketId)),
      ...names.map((key) => exclusive(LOCK.key(bucketId, key))),
    ];
  },

  ownerOf: ownerOfTurn,
  // A step of few keys is short, but all jobs of all shards may have one ready at once.
  isLong: () => true,

  look(command, view) {
    const { bucketId, jobId } = command;
    const job = findJob(view, jobId);
    // Of a step that is made already nothing is needed: what it was about may have become anything.
    if (job !== undefined && !isNextOf(job, command)) return;
    const versioning = findBucket(view, bucketId)?.versioning;
    const overwrites = job?.kind === 'move-prefix' && job.overwrites;
    loadMoves(view, { bucketId, moves: movesOf(command), versioning, overwrites });
  },

  decide(command, view, context) {
    const { bucketId, jobId } = command;
    const { nowMs } = context;
    const job = findJob(view, jobId);
    if (job?.kind !== 'move-prefix') return refuse({ kind: 'no-such-job' });
    if (!isNextOf(job, command) || job.within !== undefined || !mayDrive(job, command.driver, nowMs))
      return refuse({ kind: 'elsewhere', job });
    const bucket = findBucket(view, bucketId);
    if (bucket?.state === 'closing') return refuse({ kind: 'held' });
    if (bucket?.state !== 'open') {
      const ended = { ...job, endedAtMs: nowMs };
      return { outcome: { kind: 'elsewhere', job: ended }, ...changeJob(job, ended) };
    }
    const { overwrites, isPrivateOnly } = job;
    const { versioning } = bucket;
    const moves = movesOf(command);
    const loaded = loadMoves(view, { bucketId, moves, versioning, overwrites });
    // What is under the new names counts as well, and what is under the old ones may have grown since it was found.
    if (loaded === undefined) return refuse({ kind: 'too-much', job });
    const largeAt = loaded.findIndex((each) => each?.isTooMuch);
    if (largeAt !== -1) return refuse({ kind: moves.length > 1 ? 'too-much' : 'large-key', job });
    const results: MoveChange['result'][] = [];
    const puts: RowPut[] = [];
    const deltas: CounterDelta[] = [];
    const happened: NewEvent[] = [];
    for (const [at, move] of moves.entries()) {
      const change = moveOne({ move, loaded: loaded[at], bucket, overwrites, isPrivateOnly, context });
      results.push(change.result);
      if (bucket.events !== undefined && fits(move)) happened.push(...renameOf(move, change));
      for (const row of change.puts) puts.push(row);
      deltas.push(...change.counters);
    }
    const change = changeJob(
      job,
      progressed(job, { driver: command.driver, cursor: command.cursor, moves, results, nowMs }),
    );
    for (const row of change.puts) puts.push(row);
    const counters = sumDeltas(deltas);
    const noted = noteEvents(bucket, { ...context, origin: job.origin ?? context.origin }, () => happened);
    for (const row of noted.puts) puts.push(row);
    counters.push(...change.counters, ...noted.counters);
    return { outcome: { kind: 'stepped', results, versioning }, puts, counters };
  },
});

/** Rows that are read by themselves, and ranges, of one look: each may be as large as rows may be. */
const LOOK_UPS_MAX = 64;

/** Counts what is asked for and has not been read yet; when it is decided that is nothing. */
function countUnread(view: View): { view: View; unreadCount(): number } {
  let count = 0;
  const noted = <Address extends RowAddress | RangeAddress>(address: Address): Address => {
    if (!view.has(address)) count++;
    return address;
  };
  const counting: View = {
    has: (address) => view.has(address),
    row: (address) => view.row(noted(address)),
    range: (address) => view.range(noted(address)),
  };
  return { view: counting, unreadCount: () => count };
}

function movesOf({ from, to, keys }: Command): Move[] {
  return keys.map((key) => ({ from: key, to: to + key.slice(from.length) }));
}

/** Where the rows of all keys are: a range or two of each region; undefined: those are too much to be read at once. */
function rowsOfMany(
  view: View,
  options: { bucketId: BucketId; moves: readonly Move[]; versioning: Versioning | undefined },
): MoveRows | undefined {
  const { bucketId, moves, versioning } = options;
  const sources = moves.map(({ from }) => from as string);
  const targets = moves.filter(fits).map(({ to }) => to as string);
  const latest = (region: typeof REGION.current | typeof REGION.marker) => {
    const ofSources = latestOfMany(view, { region, bucketId, keys: sources });
    const ofTargets = latestOfMany(view, { region, bucketId, keys: targets });
    return ofSources && ofTargets && ((key: ObjectKey) => ofSources(key) ?? ofTargets(key));
  };
  const current = latest(REGION.current);
  const hasOlder = versioning !== undefined && mayHaveOlderVersions(versioning);
  if (!hasOlder) return current && { current, marker: () => undefined, older: () => [] };
  const marker = latest(REGION.marker);
  // Of several keys all fits into one entry, as the walk has seen it; one alone may have any number.
  const older = moves.length === 1 ? () => undefined : olderOfMany(view, { bucketId, keys: sources });
  return current && marker && older && { current, marker, older };
}

/**
 * What each is about; undefined for one whose new key is too long. No list at all where that is more than one entry may
 * have: it is not read to its end then.
 */
function loadMoves(
  view: View,
  options: {
    bucketId: BucketId;
    moves: readonly Move[];
    versioning: Versioning | undefined;
    overwrites: boolean;
  },
): (LoadedMove | undefined)[] | undefined {
  const { bucketId, moves, versioning, overwrites } = options;
  const counting = countUnread(view);
  const rows = rowsOfMany(counting.view, options);
  if (rows === undefined) return undefined;
  let leftBytes = LIMITS.moveBytesMax + LIMITS.moveKeyBytesMax;
  // Each piece of what is replaced is a link that ends.
  let leftReplacedBytes = LIMITS.moveStepBytesMax / 4;
  const all: (LoadedMove | undefined)[] = [];
  for (const move of moves) {
    const loaded = fits(move) ? loadMove(counting.view, rows, { bucketId, ...move, versioning }) : undefined;
    all.push(loaded);
    // While it is looked: it is looked again with these, and how large they are is known then.
    if (counting.unreadCount() > LOOK_UPS_MAX) return all;
    if (loaded !== undefined) {
      leftBytes -= loadedBytes(loaded, move);
      if (overwrites) leftReplacedBytes -= nullVersionOf(loaded)?.length ?? 0;
    }
    // One alone has a bound of its own.
    if (Math.min(leftBytes, leftReplacedBytes) < 0 && moves.length > 1) return undefined;
  }
  return all;
}

function loadedBytes({ source, older, target, targetNull }: LoadedMove, { from, to }: Move): number {
  const rowsBytes = movedRowsBytes(from, to);
  const latest = [source?.bytes, target?.bytes, targetNull];
  const latestBytes = latest.reduce((sum, bytes) => sum + (bytes?.length ?? 0), rowsBytes);
  return older.reduce((sum, bytes) => sum + bytes.length + rowsBytes, latestBytes);
}

function fits(move: Move): move is Move & { to: ObjectKey } {
  // Most keys are far from it, and a character has three bytes at most.
  return move.to.length * 3 <= LIMITS.keyBytesMax || Buffer.byteLength(move.to) <= LIMITS.keyBytesMax;
}

function moveOne(options: {
  move: Move;
  loaded: LoadedMove | undefined;
  bucket: BucketRecord & { versioning: Versioning };
  overwrites: boolean;
  isPrivateOnly: boolean | undefined;
  context: CommandContext;
}): MoveChange {
  const { move, loaded, ...rest } = options;
  if (loaded === undefined || !fits(move)) return refused({ kind: 'key-too-long' });
  const isHeld = [move.from, move.to].some((key) => isBeingRenamed(rest.bucket, key));
  if (isHeld) return refused({ kind: 'being-renamed' });
  return moveHistory({ move, loaded, ...rest });
}

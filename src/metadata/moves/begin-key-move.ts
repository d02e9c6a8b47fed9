// MOVE of one key that has more than one entry may hold begins (service 4.2): its latest version bears the new key from
// here on, and its null version; those below follow by a job (step-key-move.ts). Until that has ended nothing else changes
// the two keys, and their bucket's row says so.
import { assert } from '../../base/assert.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { View } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import { type JobId, makeJobId, type ObjectKey } from '../../types/names.ts';
import type { MovePrefixJob } from '../../types/records/job-record.ts';
import { bucketCodec } from '../../types/records/rows.ts';
import { joinChanges } from '../blobs/repair-entries.ts';
import { findBucket, isBeingRenamed, openBucket } from '../buckets/buckets.ts';
import { noteEvents } from '../events/note-events.ts';
import { changeJob, jobBytes } from '../jobs/jobs.ts';
import { mayBeStored } from '../outcomes/outcome-bounds.ts';
import { keepOutcome, lookAtToken, storedOutcome, tokenLocks } from '../outcomes/tokens.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { bucketRow, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { isBusy, OPEN_MOVES } from './begin-move.ts';
import { type CheckedVersions, checkVersions, lookAtLargeMove, refusalOfVersions } from './check-versions.ts';
import { baseOf, loadFirstMove, moveHistory, renameOf } from './move-history.ts';

type Command = CommandOf<'begin-key-move'>;
type Outcome = OutcomeOf<'begin-key-move'>;

export const beginKeyMove = defineCommand<Command, Outcome, CheckedVersions | undefined>({
  locks: (command) => [
    exclusive(LOCK.bucket(command.bucketId)),
    exclusive(LOCK.jobs),
    exclusive(LOCK.key(command.bucketId, command.move.from)),
    exclusive(LOCK.key(command.bucketId, command.move.to)),
    ...tokenLocks(command),
  ],

  look(command, view, rules) {
    lookAtToken(command, view);
    view.range(OPEN_MOVES);
    lookAtLargeMove(view, largeMove(command, view), rules);
  },

  prepare: (command, view, { rules }) => checkVersions(view, largeMove(command, view), rules),

  decide(command, view, context, checked) {
    const { nowMs, random, origin } = context;
    const stored = storedOutcome<{ jobId: JobId }>(command, view, nowMs);
    if (stored?.kind === 'repeated') return refuse({ kind: 'began-before', ...stored.outcome });
    if (stored !== undefined) return refuse(stored);
    const { bucketId, move, overwrites, isPrivateOnly, driver, token } = command;
    const bucket = openBucket(view, bucketId);
    const { owner, versioning, events } = bucket;
    const { from } = move;
    const to = keyOf(move);
    const isHeld = [from, to].some((key) => isBeingRenamed(bucket, key));
    if (isHeld) return refuse({ kind: 'refused', result: { kind: 'being-renamed' }, versioning });
    if (isBusy(view, owner)) return refuse({ kind: 'too-many-jobs' });
    const loaded = loadFirstMove(view, { bucketId, from, to, versioning });
    const first = moveHistory({ bucket, move: { ...move, to }, loaded, overwrites, isPrivateOnly, context });
    const { result } = first;
    if (!Array.isArray(result)) return refuse({ kind: 'refused', result, versioning });
    const kept = refusalOfVersions(checked, { bucket, isPrivateOnly }, context);
    if (kept !== undefined) return refuse({ kind: 'refused', result: kept, versioning });
    const jobId = makeJobId({ timeMs: nowMs, random: random(8) });
    const begins: MovePrefixJob = {
      kind: 'move-prefix',
      isKey: true,
      owner,
      jobId,
      bucketId,
      from,
      to,
      overwrites,
      driver,
      beganAtMs: nowMs,
      steppedAtMs: nowMs,
      stepCount: 0,
      leg: 0,
      movedCount: result.length,
      errorCount: 0,
      errors: [],
      within: { from, to, base: baseOf(loaded) },
      ...(token === undefined && { isTokenless: true }),
      ...(events && origin && { origin }),
    };
    const job: MovePrefixJob = { ...begins, keptBytes: jobBytes(begins) };
    const keyRenames = [...(bucket.keyRenames ?? []), { jobId, from, to }];
    const held = put(bucketRow(bucketId), bucketCodec.encode({ ...bucket, keyRenames }));
    const change = joinChanges([
      { puts: [...first.puts, held], counters: first.counters },
      changeJob(undefined, job),
      keepOutcome(command, { jobId }, { owner, nowMs, view }),
      noteEvents(bucket, context, () => renameOf({ from, to }, first)),
    ]);
    if (!mayBeStored(owner, change.counters, context)) return refuse({ kind: 'too-much-kept' });
    return { outcome: { kind: 'begun', job, result, versioning }, ...change };
  },
});

function largeMove({ bucketId, move, overwrites, isPrivateOnly }: Command, view: View) {
  const bucket = findBucket(view, bucketId);
  return { bucketId, from: move.from, to: keyOf(move), overwrites, isPrivateOnly, bucket };
}

function keyOf({ from, to }: Command['move']): ObjectKey {
  assert(from !== to, 'a key is moved to another one');
  assert(Buffer.byteLength(to) <= LIMITS.keyBytesMax, 'a key of the allowed length');
  return to as ObjectKey;
}

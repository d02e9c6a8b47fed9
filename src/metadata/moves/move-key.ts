// MOVE of one key (service 4.2): all of its versions and delete markers bear another key from one entry on, with the
// ids, times and data that they have.
import { assert } from '../../base/assert.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { Decision } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import type { JobId, ObjectKey } from '../../types/names.ts';
import { joinChanges } from '../blobs/repair-entries.ts';
import { findBucket, openBucket } from '../buckets/buckets.ts';
import { noteEvents } from '../events/note-events.ts';
import { mayBeStored } from '../outcomes/outcome-bounds.ts';
import { keepOutcome, lookAtToken, storedOutcome, tokenLocks } from '../outcomes/tokens.ts';
import { defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { refuse } from '../versions/write-version.ts';
import { loadMove, moveHistory, renameOf, rowsOfEach } from './move-history.ts';

type Command = CommandOf<'move-key'>;
type Outcome = OutcomeOf<'move-key'>;

export const moveKey = defineCommand<Command, Outcome>({
  locks: (command) => [
    shared(LOCK.bucket(command.bucketId)),
    exclusive(LOCK.key(command.bucketId, command.move.from)),
    exclusive(LOCK.key(command.bucketId, command.move.to)),
    ...tokenLocks(command),
  ],

  look(command, view) {
    lookAtToken(command, view);
    const { bucketId, move, overwrites } = command;
    const versioning = findBucket(view, bucketId)?.versioning;
    const address = { bucketId, from: move.from, to: keyOf(move), versioning, overwrites };
    loadMove(view, rowsOfEach(view, bucketId), address);
  },

  decide(command, view, context): Decision<Outcome> {
    const { nowMs } = context;
    const stored = storedOutcome<Outcome | { jobId: JobId }>(command, view, nowMs);
    if (stored?.kind === 'token-reused') return refuse(stored);
    if (stored !== undefined) {
      const { outcome } = stored;
      return refuse('jobId' in outcome ? { ...outcome, kind: 'began-before' } : outcome);
    }
    const { bucketId, move, overwrites, isPrivateOnly } = command;
    const bucket = openBucket(view, bucketId);
    const { owner, versioning } = bucket;
    const to = keyOf(move);
    const rows = rowsOfEach(view, bucketId);
    const loaded = loadMove(view, rows, { bucketId, from: move.from, to, versioning, overwrites });
    const change = moveHistory({ bucket, move: { ...move, to }, loaded, overwrites, isPrivateOnly, context });
    const { result } = change;
    const outcome: Outcome = { kind: 'moved-key', result, versioning };
    // A refusal has done nothing: repeating the request may do what it asks for.
    if (!Array.isArray(result)) return refuse(outcome);
    const keeping = keepOutcome(command, outcome, { owner, nowMs, view });
    if (!mayBeStored(owner, keeping.counters, context)) return refuse({ kind: 'too-much-kept' });
    const noted = noteEvents(bucket, context, () => renameOf({ from: move.from, to }, change));
    return { outcome, ...joinChanges([change, keeping, noted]) };
  },
});

function keyOf({ from, to }: Command['move']): ObjectKey {
  assert(from !== to, 'a key is moved to another one');
  assert(Buffer.byteLength(to) <= LIMITS.keyBytesMax, 'a key of the allowed length');
  return to as ObjectKey;
}

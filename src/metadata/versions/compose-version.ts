// Compose: one entry writes a version whose bytes are those of others, one behind the other, and links of its own to
// their data (service 4.2). Components may be deleted later, or be the version that this one replaces.

import type { Steps } from '../../base/async/steps.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { ComposedVersion } from '../../ports/metadata/versions.ts';
import type { PrepareContext, RowPut, View } from '../../ports/state-machine.ts';
import { checkWriteConditions } from '../../types/preconditions.ts';
import { admitGrant, grantLocks, lookAtGrant, prepareLinks } from '../blobs/links.ts';
import { joinChanges } from '../blobs/repair-entries.ts';
import { findBucket, openBucket } from '../buckets/buckets.ts';
import { noteCreated } from '../events/note-events.ts';
import { mayBeStored } from '../outcomes/outcome-bounds.ts';
import { keepOutcome, lookAtToken, storedOutcome, tokenLocks } from '../outcomes/tokens.ts';
import { defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { loadHistory, lookAtHistory } from './key-history.ts';
import { type LaidManifest, layComposition } from './manifest-pages.ts';
import { putHistories } from './put-histories.ts';
import { refuse, writeScope, writeVersion } from './write-version.ts';

type Command = CommandOf<'compose-version'>;

/** All that takes long of thousands of pieces and is known before it is decided. */
interface Prepared {
  laid: LaidManifest;
  linkPuts: RowPut[];
}

export const composeVersion = defineCommand<Command, OutcomeOf<'compose-version'>, Prepared>({
  locks: (command) => [
    shared(LOCK.bucket(command.bucketId)),
    exclusive(LOCK.key(command.bucketId, command.key)),
    ...grantLocks(command.data),
    ...tokenLocks(command),
  ],

  look(command, view) {
    const { bucketId, key, data } = command;
    lookAtHistory(view, writeScope(bucketId, key, findBucket(view, bucketId)?.versioning));
    lookAtGrant(data, view);
    lookAtToken(command, view);
  },

  prepare: prepareRows,

  decide(command, view, context, { laid, linkPuts }) {
    const { bucketId, key, body, data, conditions } = command;
    const stored = storedOutcome<ComposedVersion>(command, view, context.nowMs);
    if (stored !== undefined) return refuse(stored);
    const bucket = openBucket(view, bucketId);
    const history = loadHistory(view, bucket, writeScope(bucketId, key, bucket.versioning));
    const refusal = checkWriteConditions(history.currentObject, conditions);
    if (refusal !== undefined) return refuse(refusal);
    const admitted = admitGrant({ grant: data, names: body.uses, linkPuts, view, context });
    if (admitted.kind !== 'admitted') return refuse(admitted);
    const version = { ...command.version, appendCount: 0, manifest: laid.manifest };
    const written = writeVersion({ bucket, history, version, context });
    if (written.kind === 'blocked') return refuse(written);
    const { etag, sizeBytes, checksum } = version;
    const outcome: ComposedVersion = { ...written, etag, sizeBytes, ...(checksum && { checksum }) };
    const placed = putHistories({ bucket, histories: [history], context });
    const { owner } = bucket;
    const keeping = keepOutcome(command, outcome, { owner, nowMs: context.nowMs, view });
    if (!mayBeStored(owner, keeping.counters, context)) return refuse({ kind: 'too-much-kept' });
    const noted = noteCreated(bucket, context, { type: 's3:ObjectCreated:Put', key, version, written });
    const laidPuts = { puts: laid.puts, counters: [] };
    return { outcome, ...joinChanges([admitted, placed, laidPuts, keeping, noted]) };
  },
});

function* prepareRows(
  { bucketId, body, data }: Command,
  view: View,
  context: PrepareContext,
): Steps<Prepared> {
  const laid = yield* layComposition(body, context, bucketId);
  const inManifest = laid.manifest.kind === 'paged' ? laid.manifest.manifestId : undefined;
  const holder = { composedIn: bucketId, inManifest };
  const linkPuts = yield* prepareLinks({ grant: data, names: body.uses, ...holder, view, context });
  return { laid, linkPuts };
}

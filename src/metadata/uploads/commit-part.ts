// UploadPart and UploadPartCopy: a part and the links of its data. A part of the same number is replaced (R25).
import { assert } from '../../base/assert.ts';
import type { Steps } from '../../base/async/steps.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { PrepareContext, RowPut, View } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import { type PartRecord, partCodec } from '../../types/records/rows.ts';
import {
  admitGrant,
  endLinks,
  existsAlready,
  grantLocks,
  type LinkName,
  linksOnlyIn,
  lookAtGrant,
  prepareLinks,
} from '../blobs/links.ts';
import { findBucket, openBucket } from '../buckets/buckets.ts';
import { partDeltas } from '../quotas/held.ts';
import { defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { partRow, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findUpload } from './uploads.ts';

type Command = CommandOf<'commit-part'>;

/** As many links are admitted in a millisecond or two. */
const LONG_PART_LINKS = 100;

/** All that takes long of a thousand pieces and is known before it is decided. */
interface Prepared {
  linkPuts: RowPut[];
  /** Links of the part that is replaced, and not of this one. */
  ended: LinkName[];
  replaced: PartRecord[];
}

export const commitPart = defineCommand<Command, OutcomeOf<'commit-part'>, Prepared>({
  locks: ({ bucketId, uploadId, part, data }) => [
    shared(LOCK.bucket(bucketId)),
    shared(LOCK.upload(uploadId)),
    exclusive(LOCK.part(uploadId, part.partNumber)),
    ...grantLocks(data),
  ],

  isLong: ({ data }) => data.links.length >= LONG_PART_LINKS,

  look(command, view) {
    findBucket(view, command.bucketId);
    findUpload(view, command);
    view.row(partRow(command.uploadId, command.part.partNumber));
    lookAtGrant(command.data, view);
  },

  prepare: prepareRows,

  decide(command, view, context, prepared) {
    const { nowMs } = context;
    assert(
      command.part.segments.length <= LIMITS.partSegmentsMax,
      'a part is of a bounded number of segments',
    );
    if (existsAlready(command.data, view)) return refuse({ kind: 'exists' });
    if (findUpload(view, command) === undefined) return refuse({ kind: 'no-such-upload' });
    const admitted = admitGrant({
      grant: command.data,
      names: command.part.uses,
      linkPuts: prepared.linkPuts,
      view,
      context,
    });
    if (admitted.kind !== 'admitted') return refuse(admitted);
    const { bucketId, owner } = openBucket(view, command.bucketId);
    const part: PartRecord = { ...command.part, modifiedAtMs: nowMs, heldBy: { bucketId, owner } };
    const row = partRow(command.uploadId, part.partNumber);
    const { ended, replaced } = prepared;
    return {
      outcome: { kind: 'committed', modifiedAtMs: nowMs },
      puts: [...admitted.puts, put(row, partCodec.encode(part)), ...endLinks(ended, nowMs)],
      counters: [...admitted.counters, ...partDeltas({ added: [part], removed: replaced })],
    };
  },
});

function* prepareRows(
  { uploadId, part, data }: Command,
  view: View,
  context: PrepareContext,
): Steps<Prepared> {
  const linkPuts = yield* prepareLinks({ grant: data, names: part.uses, view, context });
  const stored = view.row(partRow(uploadId, part.partNumber));
  const replaced = stored === undefined ? [] : [partCodec.decode(stored)];
  yield;
  const ended = replaced.flatMap(({ uses }) => linksOnlyIn(uses, part.uses));
  yield;
  return { linkPuts, ended, replaced };
}

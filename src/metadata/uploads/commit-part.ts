// UploadPart and UploadPartCopy: a part and the links of its data. A part of the same number is replaced (R25).
import { assert } from '../../base/assert.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { LIMITS } from '../../types/limits.ts';
import { type PartRecord, partCodec } from '../../types/records/rows.ts';
import { admitGrant, endLinks, existsAlready, grantLocks, linksOnlyIn, lookAtGrant } from '../blobs/links.ts';
import { findBucket, openBucket } from '../buckets/buckets.ts';
import { partDeltas } from '../quotas/held.ts';
import { defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { partRow, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findUpload } from './uploads.ts';

export const commitPart = defineCommand<CommandOf<'commit-part'>, OutcomeOf<'commit-part'>>({
  locks: ({ bucketId, uploadId, part, data }) => [
    shared(LOCK.bucket(bucketId)),
    shared(LOCK.upload(uploadId)),
    exclusive(LOCK.part(uploadId, part.partNumber)),
    ...grantLocks(data),
  ],

  look(command, view) {
    findBucket(view, command.bucketId);
    findUpload(view, command);
    view.row(partRow(command.uploadId, command.part.partNumber));
    lookAtGrant(command.data, view);
  },

  decide(command, view, context) {
    const { nowMs } = context;
    assert(
      command.part.segments.length <= LIMITS.partSegmentsMax,
      'a part is of a bounded number of segments',
    );
    if (existsAlready(command.data, view)) return refuse({ kind: 'exists' });
    if (findUpload(view, command) === undefined) return refuse({ kind: 'no-such-upload' });
    const admitted = admitGrant({ grant: command.data, names: command.part.uses, view, context });
    if (admitted.kind !== 'admitted') return refuse(admitted);
    const { bucketId, owner } = openBucket(view, command.bucketId);
    const part: PartRecord = { ...command.part, modifiedAtMs: nowMs, heldBy: { bucketId, owner } };
    const row = partRow(command.uploadId, part.partNumber);
    const stored = view.row(row);
    const replaced = stored === undefined ? [] : [partCodec.decode(stored)];
    const ended = replaced.flatMap(({ uses }) => linksOnlyIn(uses, part.uses));
    return {
      outcome: { kind: 'committed', modifiedAtMs: nowMs },
      puts: [...admitted.puts, put(row, partCodec.encode(part)), ...endLinks(ended, nowMs)],
      counters: [...admitted.counters, ...partDeltas({ added: [part], removed: replaced })],
    };
  },
});

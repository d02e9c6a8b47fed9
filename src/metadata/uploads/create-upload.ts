// CreateMultipartUpload: an id, and what the object will have besides its bytes.
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { makeUploadId } from '../../types/names.ts';
import { type UploadRecord, uploadCodec } from '../../types/records/rows.ts';
import { findBucket, openBucket, requireAdmitted } from '../buckets/buckets.ts';
import { defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { put, uploadRow, uploadTimeRow, uploadTimeValue } from '../schema/keyspace.ts';
import { hasEnded, refuse, requireProtectable } from '../versions/write-version.ts';
import { endUploadWithParts, findUpload } from './uploads.ts';

export const createUpload = defineCommand<CommandOf<'create-upload'>, OutcomeOf<'create-upload'>>({
  locks: ({ bucketId }) => [shared(LOCK.bucket(bucketId))],

  look({ bucketId }, view) {
    findBucket(view, bucketId);
  },

  decide(command, view, context) {
    const { bucketId } = command;
    const { nowMs, random } = context;
    const bucket = openBucket(view, bucketId);
    const { key, owner, protection } = command.upload;
    requireAdmitted(bucket, owner);
    requireProtectable(bucket, protection);
    if (hasEnded(protection, context))
      return refuse({ kind: 'blocked', blocker: { by: 'retention-passed' } });
    const uploadId = makeUploadId({ timeMs: nowMs, random: random(16) });
    const upload: UploadRecord = { ...command.upload, bucketId, uploadId, initiatedAtMs: nowMs };
    return {
      outcome: { kind: 'created', upload },
      puts: [
        put(uploadRow(bucketId, key, uploadId), uploadCodec.encode(upload)),
        put(uploadTimeRow(uploadId), uploadTimeValue(bucketId, key)),
      ],
    };
  },
});

// AbortMultipartUpload: the upload is gone for clients; its parts follow in the background (release-parts).

export const abortUpload = defineCommand<CommandOf<'abort-upload'>, OutcomeOf<'abort-upload'>>({
  locks: ({ bucketId, uploadId }) => [shared(LOCK.bucket(bucketId)), exclusive(LOCK.upload(uploadId))],

  look(command, view) {
    findUpload(view, command);
  },

  decide(command, view, { nowMs }) {
    if (findUpload(view, command) === undefined) return refuse({ kind: 'no-such-upload' });
    return { outcome: { kind: 'aborted' }, puts: endUploadWithParts(command, nowMs) };
  },
});

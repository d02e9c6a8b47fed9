// CreateMultipartUpload: an id, and what the object will have besides its bytes.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { makeUploadId } from '../../types/names.ts';
import { type UploadRecord, uploadCodec } from '../../types/records/rows.ts';
import { defineCommand, LOCK, shared } from '../schema/define-command.ts';
import { put, uploadRow, uploadTimeRow, uploadTimeValue } from '../schema/keyspace.ts';

export const createUpload = defineCommand<CommandOf<'create-upload'>, OutcomeOf<'create-upload'>>({
  locks: ({ bucketId }) => [shared(LOCK.bucket(bucketId))],

  decide(command, _view, { nowMs, random }) {
    const { bucketId } = command;
    const { key } = command.upload;
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

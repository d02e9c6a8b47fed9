// AbortMultipartUpload: the upload is gone for clients; its parts follow in the background (release-parts).
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { refuse } from '../versions/write-version.ts';
import { endUploadWithParts, findUpload } from './uploads.ts';

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

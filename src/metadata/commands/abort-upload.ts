// AbortMultipartUpload: the upload and its parts go, and their links end.
import type { CommandOf, OutcomeOf } from '../../ports/metadata.ts';
import { defineCommand, exclusive, LOCK, shared } from '../define-command.ts';
import { endLinks } from '../links.ts';
import { endUpload, findUpload, loadParts, lookAtParts } from '../uploads.ts';
import { refuse } from '../write-version.ts';

export const abortUpload = defineCommand<CommandOf<'abort-upload'>, OutcomeOf<'abort-upload'>>({
  locks: ({ bucketId, uploadId }) => [shared(LOCK.bucket(bucketId)), exclusive(LOCK.upload(uploadId))],

  look(command, view) {
    findUpload(view, command);
    lookAtParts(view, command.uploadId);
  },

  decide(command, view, { nowMs }) {
    if (findUpload(view, command) === undefined) return refuse({ kind: 'no-such-upload' });
    const parts = loadParts(view, command.uploadId);
    const links = parts.flatMap(({ uses }) => uses);
    return {
      outcome: { kind: 'aborted' },
      puts: [...endUpload(command, parts), ...endLinks(links, nowMs)],
    };
  },
});

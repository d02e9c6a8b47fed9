// Forgets what a Complete answered once it has been kept long enough (s3-behaviour "Repeated completion").

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { LIMITS } from '../../types/limits.ts';
import { completedUploadCodec } from '../../types/records/rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { completedTimeRow, completedUploadRow, remove } from '../schema/keyspace.ts';

type Command = CommandOf<'forget-completed-uploads'>;

export const forgetCompletedUploads = defineCommand<Command, OutcomeOf<'forget-completed-uploads'>>({
  locks: ({ uploadIds }) => uploadIds.map((uploadId) => exclusive(LOCK.upload(uploadId))),

  leavesBusy: ({ leavesBusy }) => leavesBusy === true,

  look({ uploadIds }, view) {
    for (const uploadId of uploadIds) view.row(completedUploadRow(uploadId));
  },

  decide({ uploadIds }, view, { nowMs, left: busy }) {
    const left = uploadIds.filter((uploadId) => busy.has(LOCK.upload(uploadId)));
    const puts = uploadIds.flatMap((uploadId) => {
      if (left.includes(uploadId)) return [];
      const address = completedUploadRow(uploadId);
      const row = view.row(address);
      if (row === undefined) return [];
      const { completedAtMs } = completedUploadCodec.decode(row);
      if (nowMs - completedAtMs < LIMITS.completedUploadKeptMs) return [];
      return [remove(address), remove(completedTimeRow(completedAtMs, uploadId))];
    });
    return { outcome: { kind: 'forgotten', ...(left.length > 0 && { left }) }, puts };
  },
});

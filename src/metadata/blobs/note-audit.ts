// R39: the progress of the audit of this shard, so that another primary continues there. From its beginning on, new blobs
// by an older map get repair entries, because the audit may have passed them.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { type AuditRecord, auditCodec } from '../../types/records/rows.ts';
import { nextScan } from '../../types/records/scan-record.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { AUDIT_ROW, findAudit } from './repair-entries.ts';

type Command = CommandOf<'note-audit'>;

export const noteAudit = defineCommand<Command, OutcomeOf<'note-audit'>>({
  locks: () => [exclusive(LOCK.audit)],

  look(_command, view) {
    findAudit(view);
  },

  decide(command, view, { nowMs }) {
    const audit = next(command, findAudit(view), nowMs);
    if (audit === undefined) return refuse({ kind: 'gone' });
    return { outcome: { kind: 'noted', audit }, puts: [put(AUDIT_ROW, auditCodec.encode(audit))] };
  },
});

function next(command: Command, before: AuditRecord | undefined, nowMs: number): AuditRecord | undefined {
  const { mapVersion } = command;
  if (command.step === 'begin' && before !== undefined && mapVersion < before.mapVersion) return undefined;
  if (command.step !== 'begin' && before?.mapVersion !== mapVersion) return undefined;
  const scan = nextScan(command, before, nowMs);
  if (scan === undefined) return undefined;
  const { ended: end, after: _, ...progress } = scan;
  const ended = command.step === 'end' && end ? { mapVersion, ...end } : before?.ended;
  const after = command.step === 'reach' && { after: command.after };
  return { ...progress, mapVersion, ...after, ...(ended && { ended }) };
}

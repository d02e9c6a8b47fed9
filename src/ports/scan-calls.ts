// The command and the query of scans: part of the tables in metadata-commands.ts and metadata-queries.ts, as plain data.
import type { ScanRecord, ScanStep } from '../types/records/scan-record.ts';

export interface ScanCommands {
  /** How far the scan of this name has come in this shard. `gone`: another pass has begun since, or this one has ended. */
  'note-scan': {
    command: { name: string } & ScanStep;
    outcome: { kind: 'noted'; scan: ScanRecord } | { kind: 'gone' };
  };
}

export interface ScanQueries {
  /** null: none has begun yet. */
  'get-scan': { query: { name: string }; result: { scan: ScanRecord | null } };
}

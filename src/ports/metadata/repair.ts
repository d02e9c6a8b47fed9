// Commands and queries about chunks that do not lie on just their owners: missing copies, and audits (R36, R39).

import type { BlobId } from '../../types/names.ts';
import type { AuditRecord, RepairEntryRecord } from '../../types/records/rows.ts';
import type { RepairEntry } from '../../types/repair-entries.ts';

/** The position of a repair entry in the queue. */
export interface RepairQueuePlace {
  copies: number;
  notedAtMs: number;
  blobId: BlobId;
}

export interface RepairCommands {
  /**
   * Adds to what is recorded already; the time of the first record stays. Blobs that are not live are skipped. `left`: those
   * that others held.
   */
  'note-debts': {
    command: { debts: (RepairEntry & { blobId: BlobId })[]; leavesBusy?: true };
    outcome: { kind: 'noted'; count: number; left?: BlobId[] };
  };
  /**
   * What was repaired by that map, for each entry that was not recorded again since it was listed. `left` of a debt: what is
   * still missing; of the outcome: blobs that others held.
   */
  'settle-debts': {
    command: {
      mapVersion: number;
      debts: { blobId: BlobId; mark: string; left?: RepairEntry }[];
      leavesBusy?: true;
    };
    outcome: { kind: 'settled'; count: number; left?: BlobId[] };
  };
  /**
   * A look at all blobs, which began by that map. `after`: it has come so far; `end`: to the end. `gone`: another one has
   * begun since, or it has ended.
   */
  'note-audit': {
    command:
      | { step: 'begin'; mapVersion: number }
      | { step: 'reach'; mapVersion: number; beganAtMs: number; after: BlobId }
      | { step: 'end'; mapVersion: number; beganAtMs: number };
    outcome: { kind: 'noted'; audit: AuditRecord } | { kind: 'gone' };
  };
}

export interface RepairQueries {
  /** Of live blobs: fewest copies first, then the oldest. `next` is absent at the end. */
  'list-debts': {
    query: { after?: RepairQueuePlace; limit: number };
    result: {
      debts: { blobId: BlobId; debt: RepairEntryRecord; sizeBytes: number; chunkSizeBytes: number }[];
      next?: RepairQueuePlace;
    };
  };
  /** null: the blob has no repair entry. */
  'get-debts': { query: { blobIds: BlobId[] }; result: { debts: (RepairEntryRecord | null)[] } };
  /** By the fewest known copies of one of their chunks; also blobs that are marked for deletion. */
  'count-debts': {
    query: Record<never, never>;
    result: { debts: { copies: number; blobCount: number; chunkCount: number }[] };
  };
  /** null: none has begun yet. */
  'get-audit': { query: Record<never, never>; result: { audit: AuditRecord | null } };
  /** Live data in chunks, by blob id, of so many rows: a page may be empty and not the last. `next` is absent at the end. */
  'list-blobs': {
    query: { after?: BlobId; limit: number };
    result: { blobs: { blobId: BlobId; sizeBytes: number; chunkSizeBytes: number }[]; next?: BlobId };
  };
}

// Commands and queries about chunks that do not lie on just their owners: missing copies, and audits (R36, R39).

import type { BlobId } from '../../types/names.ts';
import type { AuditRecord, RepairEntryRecord } from '../../types/records/rows.ts';
import type { RepairEntry } from '../../types/repair-entries.ts';

/** Where a debt stands in its queue. */
export interface RepairQueuePlace {
  copies: number;
  notedAtMs: number;
  blobId: BlobId;
}

export interface RepairCommands {
  /** Added to what is owed already; the time of the first note stays. Blobs that are not live are passed over. */
  'note-debts': {
    command: { debts: (RepairEntry & { blobId: BlobId })[] };
    outcome: { kind: 'noted'; count: number };
  };
  /**
   * What was mended of debts by that map, each only if nothing was noted since it was listed. `left`: what is still owed.
   */
  'settle-debts': {
    command: { mapVersion: number; debts: { blobId: BlobId; mark: string; left?: RepairEntry }[] };
    outcome: { kind: 'settled'; count: number };
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
  /** null: that blob owes nothing. */
  'get-debts': { query: { blobIds: BlobId[] }; result: { debts: (RepairEntryRecord | null)[] } };
  /** By the fewest copies that are known of one of their chunks; those of condemned blobs too. */
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

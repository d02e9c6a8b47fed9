// What `holdfast status` shows: the answer of the operator API's status call.
import type { RotationProgress } from '../../metadata/master-keys/rotate-keys.ts';
import type { NamedDamage } from '../../types/named-damage.ts';

export interface StatusReport {
  version: string;
  /** As clients on this machine reach the server. */
  endpoint: string;
  /** ISO 8601. */
  startedAt: string;
  uptimeMs: number;
  accountCount: number;
  bucketCount: number;
  objectCount: number;
  /** As clients see them, before encryption. */
  objectBytes: number;
  chunkCount: number;
  chunkBytes: number;
  /** Deleted, but not yet given back to the file system. */
  pendingReclaimBytes: number;
  diskFreeBytes: number;
  diskTotalBytes: number;
  /** Of a single node with extents: how large chunks are written; `buffered` where the file system has no direct I/O. */
  largeWrites?: 'direct' | 'buffered';
  /** Of a single node: with less room it takes no new chunks, and with less than the other it will soon be so. */
  diskFullBelowBytes?: number;
  diskScarceBelowBytes?: number;
  /** Of a single node: chunks of live data that are known to be damaged, and to be missing. */
  damagedChunkCount?: number;
  missingChunkCount?: number;
  /** Of a single node: whose they are. Absent: none are. */
  damage?: NamedDamage;
  /** What is wrong, in sentences; empty: nothing is. Absent for gateways of a cluster, which has a status of its own. */
  alarms?: readonly string[];
  /** How far the clock has jumped at a start, waiting for `holdfast clock accept`; else 0 (protocol R19). */
  clockJumpMs: number;
  keys: RotationProgress;
  /** Newest first; each once, with how often it came and when last. */
  lastErrors: readonly { at: string; event: string; message: string; count: number }[];
}

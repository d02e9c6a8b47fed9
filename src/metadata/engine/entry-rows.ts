// The rows that the engine keeps about itself: who the replica is, and where its entries have come to. With one voter
// an entry has no log row: its batch is the synced write (protocol 1), and `applied` in that batch is its trace.
import { assert } from '../../base/assert.ts';
import { asBuffer } from '../../base/bytes/bytes.ts';
import { defineRecord } from '../../base/record-codec.ts';
import type { LogPosition, ReplicaId, SeenRecord } from '../../ports/replication.ts';

/** R1, R3: made with the shard's rows, never changed but for the epoch last acted in. */
export interface SelfRecord {
  /** Random, hex. */
  replicaId: string;
  incarnation: number;
  epoch: number;
}
export const selfCodec = defineRecord<SelfRecord>({ name: 'self', version: 1 });

/** R19. Gone where there is neither. */
export interface TimeJumpRecord {
  /** How far time has jumped, until the operator accepts it. */
  jumpMs: number;
  /** What smaller steps of the clock came to at `timeMs` of shard time (clock-steps.ts). */
  stepsMs: number;
  timeMs: number;
}
export const timeJumpCodec = defineRecord<TimeJumpRecord>({
  name: 'time-jump',
  version: 2,
  migrations: { 1: ({ jumpMs }: { jumpMs: number }) => ({ jumpMs, stepsMs: 0, timeMs: 0 }) },
});

export function decodeTimeJump(row: Uint8Array | undefined): TimeJumpRecord {
  return row === undefined ? { jumpMs: 0, stepsMs: 0, timeMs: 0 } : timeJumpCodec.decode(row);
}

/** R1, R3: what a replica of a cluster is and has promised. */
export interface ReplicaRecord {
  clusterId: string;
  replicaId: ReplicaId;
  incarnation: number;
  /** No message of a lower epoch is taken. */
  promised: number;
  /** R16, R17, R14. */
  state: 'installing' | 'live' | 'quarantined' | 'removed';
  /**
   * R17: something that it has cannot be read, so it never leads, and all of it is to be given anew. While `live` that is
   * of the state alone: its log and its promises are sound, and count until enough others have everything.
   */
  isDamaged: boolean;
  /**
   * While installing: who had it begin anew. That primary has all that was ever committed, and as long as this one does not
   * count nothing is committed without it: so it has its vote, else a crash of it would leave no majority.
   */
  votesFor: ReplicaId | null;
  /** The latest record of the registry that was acted on (R23); null before the first. */
  seen: SeenRecord | null;
}
type RecordOf2 = Omit<ReplicaRecord, 'isDamaged' | 'votesFor'>;
export const replicaCodec = defineRecord<ReplicaRecord>({
  name: 'replica',
  version: 3,
  migrations: {
    1: ({ revisionSeen: _, ...rest }: Omit<RecordOf2, 'seen'> & { revisionSeen: number }) => ({
      ...rest,
      seen: null,
    }),
    2: (record: RecordOf2): ReplicaRecord => ({ ...record, isDamaged: false, votesFor: null }),
  },
});

/** R14: since when the registry has not listed the replica, by the wall clock. */
export const unlistedCodec = defineRecord<{ sinceMs: number }>({ name: 'unlisted', version: 1 });

export const baseCodec = defineRecord<LogPosition>({ name: 'base', version: 1 });

/** The last entry: its number, its epoch, its shard time in ms. */
export interface Applied {
  seq: number;
  epoch: number;
  timeMs: number;
}

const APPLIED_VERSION = 1;

/** Fixed width, because one is written with every entry: version, then three numbers of 6 bytes. */
export function encodeApplied({ seq, epoch, timeMs }: Applied): Uint8Array {
  const bytes = Buffer.allocUnsafe(19);
  bytes[0] = APPLIED_VERSION;
  bytes.writeUIntBE(seq, 1, 6);
  bytes.writeUIntBE(epoch, 7, 6);
  bytes.writeUIntBE(timeMs, 13, 6);
  return bytes;
}

export function decodeApplied(row: Uint8Array): Applied {
  const bytes = asBuffer(row);
  assert(bytes[0] === APPLIED_VERSION && bytes.length === 19, 'applied: a known format');
  return { seq: bytes.readUIntBE(1, 6), epoch: bytes.readUIntBE(7, 6), timeMs: bytes.readUIntBE(13, 6) };
}

// The rows of a replica that its shard does not list any more (R14): they are kept for a day, and go after a read of the
// registry that still does not list it. Rows of a history that was given up stay until the operator discards them (R23).
import type { ClockPort } from '../../ports/clock.ts';
import type { KvPort } from '../../ports/kv.ts';
import type { ReplicaId } from '../../ports/replication.ts';
import type { RegisteredShard } from '../../ports/shard-registry.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { WitnessPort } from '../../ports/witness.ts';
import { replicaCodec, unlistedCodec } from '../engine/entry-rows.ts';
import { ENGINE_TABLES, replicaKey, rowKey } from '../engine/row-keys.ts';
import { UNLISTED_KEPT_MS } from '../engine/timing.ts';
import { isOlder, isSuperseded } from './registered-record.ts';
import { clearShard } from './snapshots.ts';
import { isListed } from './takeover.ts';

export interface UnlistedRowsParts {
  replicaId: ReplicaId;
  kv: KvPort;
  witness: WitnessPort;
  clock: ClockPort;
  logger: Logger;
  /** Resolves when nothing here writes for the shard any more, or reads. */
  release(shard: number): Promise<void>;
}

export class UnlistedRows {
  readonly #parts: UnlistedRowsParts;

  constructor(parts: UnlistedRowsParts) {
    this.#parts = parts;
  }

  /** `registered` was read, linearizably. True when the rows of the shard have gone. */
  async onRead(shard: number, registered: RegisteredShard): Promise<boolean> {
    const { kv, clock, logger, replicaId, release } = this.#parts;
    const markKey = rowKey(shard, ENGINE_TABLES.unlisted, new Uint8Array(0));
    const [own, mark] = await kv.getMany('rows', [replicaKey(shard), markKey]);
    if (own === undefined) return false;
    const { record } = registered;
    if (isListed(record, replicaId)) {
      if (mark !== undefined) await kv.commit([{ column: 'rows', key: markKey, value: null }]);
      return false;
    }
    const stored = replicaCodec.decode(own);
    // One that is wanted again will soon be listed.
    const isWanted = record.wanted?.voters.some((ref) => ref.replicaId === replicaId) === true;
    if (isSuperseded(record, stored) || isOlder(registered, stored) || isWanted) return false;
    const nowMs = clock.wallMs();
    if (mark === undefined) {
      const value = unlistedCodec.encode({ sinceMs: nowMs });
      await kv.commit([{ column: 'rows', key: markKey, value }]);
      return false;
    }
    if (nowMs - unlistedCodec.decode(mark).sinceMs < UNLISTED_KEPT_MS) return false;
    logger.info({ shard }, 'unlisted-rows-deleted');
    await release(shard);
    await this.delete(shard);
    return true;
  }

  /** Everything, so that the node may hold the shard anew. */
  async delete(shard: number): Promise<void> {
    const { kv, witness } = this.#parts;
    const key = replicaKey(shard);
    const [own] = await kv.getMany('rows', [key]);
    if (own === undefined) return;
    // First: what a crash leaves half deleted must not look whole if it is listed once more.
    const value = replicaCodec.encode({ ...replicaCodec.decode(own), state: 'installing' });
    await kv.commit([{ column: 'rows', key, value }]);
    await clearShard(kv, shard);
    await witness.lower(shard, undefined);
    // Last: until it is gone the rows are known for what they are.
    await kv.commit([{ column: 'rows', key, value: null }]);
  }
}

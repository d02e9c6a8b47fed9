// What the primary of the system shard does about quotas by itself: it goes on with leases that nobody has finished opening or
// closing, and looks which accounts hold more than their soft bounds.
import { type MetadataPort, SYSTEM_SHARD } from '../../ports/metadata/port.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import type { Worker } from '../../ports/worker.ts';
import type { AccountId } from '../../types/names.ts';
import { exceedsBound, type HeldAmount } from '../../types/quota.ts';
import { type AccountQuotaRecord, boundsOf } from '../../types/records/quota-record.ts';
import { doneValue } from '../workers/shard-worker.ts';
import { settleQuota } from './settle-quota.ts';

const LOOK_EVERY_MS = 30_000;
const PAGE = 100;

export function createQuotaWatch(deps: {
  metadata: MetadataPort;
  shards(): readonly number[];
  log: Logger;
  telemetry: TelemetryPort;
}): Worker {
  const { metadata, shards, log, telemetry } = deps;
  /** Whether the account is above a soft bound. That is told once, whoever leads the shard. */
  async function look(record: AccountQuotaRecord): Promise<boolean> {
    const { accountId, phase, isAboveSoft = false } = record;
    if (phase === 'opening' || phase === 'closing') await settleQuota(metadata, accountId);
    const soft = boundsOf(record, 'soft');
    if (soft === undefined && !isAboveSoft) return false;
    const held = await heldByAccount(metadata, accountId);
    const isAbove = soft !== undefined && exceedsBound(soft, held);
    if (isAbove === isAboveSoft) return isAbove;
    const command = { accountId, isAbove };
    const noted = doneValue(await metadata.execute({ shard: SYSTEM_SHARD }, 'note-soft-quota', command));
    if (isAbove && noted.kind === 'noted') {
      log.warn({ account: accountId, held, bounds: soft }, 'soft-quota-passed');
      telemetry.count('holdfast_soft_quota_passed_total', { of: 'account' });
    }
    return isAbove;
  }

  return {
    name: 'watch-quotas',
    async work(signal) {
      const failures: unknown[] = [];
      if (!shards().includes(SYSTEM_SHARD)) return { state: 'idle', idleMs: LOOK_EVERY_MS };
      let aboveCount = 0;
      for (let after: AccountId | undefined, isMore = true; isMore; ) {
        signal.throwIfAborted();
        const query = { limit: PAGE, ...(after && { after }) };
        const page = doneValue(await metadata.query({ shard: SYSTEM_SHARD }, 'list-account-quotas', query));
        for (const record of page.quotas) {
          const isAbove = await look(record).catch((error: unknown) => {
            failures.push(error);
            return false;
          });
          if (isAbove) aboveCount++;
        }
        after = page.next;
        isMore = after !== undefined;
      }
      telemetry.gauge('holdfast_accounts_above_soft_quota', aboveCount);
      return { state: 'idle', idleMs: LOOK_EVERY_MS, failures };
    },
  };
}

/** What an account holds in all shards. */
export async function heldByAccount(metadata: MetadataPort, accountId: AccountId): Promise<HeldAmount> {
  const shards = Array.from({ length: metadata.shardCount }, (_, shard) => shard);
  const parts = await Promise.all(
    shards.map(async (shard) => doneValue(await metadata.query({ shard }, 'get-held', { accountId })).held),
  );
  const sum = (unit: keyof HeldAmount) => parts.reduce((total, part) => total + part[unit], 0);
  return { bytes: sum('bytes'), objects: sum('objects') };
}

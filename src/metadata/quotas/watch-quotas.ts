// What the primary of the system shard does about quotas by itself: it goes on with leases that nobody has finished opening or
// closing, and looks which accounts hold more than their soft bounds.
import { nextTurn } from '../../base/async/next-turn.ts';
import type { ClockPort } from '../../ports/clock.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../../ports/metadata/port.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import type { Worker } from '../../ports/worker.ts';
import type { AccountId } from '../../types/names.ts';
import { exceedsBound, type HeldAmount } from '../../types/quota.ts';
import { type AccountQuotaRecord, boundsOf } from '../../types/records/quota-record.ts';
import { doneValue, resting } from '../workers/shard-worker.ts';
import { settleQuota } from './settle-quota.ts';

const LOOK_EVERY_MS = 30_000;
/** Accounts that are looked at at once: each shard is asked once for all of them. */
const PAGE = 100;
/** Of the time, at most: there may be ten thousand accounts, and clients come first. */
const WORK_SHARE = 10;

export function createQuotaWatch(deps: {
  metadata: MetadataPort;
  shards(): readonly number[];
  clock: Pick<ClockPort, 'monotonicMs'>;
  log: Logger;
  telemetry: TelemetryPort;
}): Worker {
  const { metadata, shards, clock, log, telemetry } = deps;
  /** The look that is under way, of which a page is done at a time. */
  let look: { after?: AccountId; aboveCount: number } = { aboveCount: 0 };

  /** Whether the account is above a soft bound. That is told once, whoever leads the shard. */
  async function note(record: AccountQuotaRecord, held: HeldAmount): Promise<boolean> {
    const { accountId, isAboveSoft = false } = record;
    const soft = boundsOf(record, 'soft');
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

  async function lookAt(
    quotas: readonly AccountQuotaRecord[],
    attempt: (doing: () => Promise<void>) => Promise<void>,
  ): Promise<void> {
    for (const { accountId, phase } of quotas)
      if (phase === 'opening' || phase === 'closing') await attempt(() => settleQuota(metadata, accountId));
    const watched = quotas.filter((record) => record.isAboveSoft || boundsOf(record, 'soft') !== undefined);
    if (watched.length === 0) return;
    await attempt(async () => {
      const held = await heldByAccounts(metadata, watched);
      for (const record of watched)
        await attempt(async () => {
          if (await note(record, held.get(record.accountId) ?? NOTHING_HELD)) look.aboveCount++;
        });
    });
  }

  const pages: Worker = {
    name: 'watch-quotas',
    async work(signal) {
      const idle = { state: 'idle' as const, idleMs: LOOK_EVERY_MS };
      if (!shards().includes(SYSTEM_SHARD)) {
        look = { aboveCount: 0 };
        return idle;
      }
      const failures: unknown[] = [];
      const { after } = look;
      const query = { limit: PAGE, ...(after && { after }) };
      const { quotas, next } = doneValue(
        await metadata.query({ shard: SYSTEM_SHARD }, 'list-account-quotas', query),
      );
      await lookAt(quotas, async (doing) => {
        signal.throwIfAborted();
        await doing().catch((error: unknown) => void failures.push(error));
      });
      if (next !== undefined) {
        look = { after: next, aboveCount: look.aboveCount };
        return { state: 'busy', failures };
      }
      telemetry.gauge('holdfast_accounts_above_soft_quota', look.aboveCount);
      look = { aboveCount: 0 };
      return { ...idle, failures };
    },
  };
  return resting(pages, { clock, restShare: WORK_SHARE - 1 });
}

const NOTHING_HELD: HeldAmount = { bytes: 0, objects: 0 };

/** What accounts hold in all shards, of which one is asked at a time. */
async function heldByAccounts(
  metadata: MetadataPort,
  accounts: readonly AccountQuotaRecord[],
): Promise<Map<AccountId, HeldAmount>> {
  const accountIds = accounts.map(({ accountId }) => accountId);
  const sums = new Map<AccountId, HeldAmount>();
  for (let shard = 0; shard < metadata.shardCount; shard++) {
    const { held } = doneValue(await metadata.query({ shard }, 'get-held-of-accounts', { accountIds }));
    for (const [at, accountId] of accountIds.entries()) {
      const { bytes, objects } = sums.get(accountId) ?? NOTHING_HELD;
      const more = held[at] ?? NOTHING_HELD;
      sums.set(accountId, { bytes: bytes + more.bytes, objects: objects + more.objects });
    }
    await nextTurn();
  }
  return sums;
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

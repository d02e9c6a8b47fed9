// What the plan of a sub-account says: how much it may store, and when its trial ends (extensions 1.4). The worker ends trials in
// time, and sets quotas that a call has not: where a shard was away, or the operator has changed the account.
import type { ClockPort } from '../ports/clock.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../ports/metadata/port.ts';
import type { Logger } from '../ports/telemetry.ts';
import type { TimeJumps } from '../ports/time-jumps.ts';
import type { Worker } from '../ports/worker.ts';
import type { AccountId } from '../types/names.ts';
import type { Quota } from '../types/quota.ts';
import type { CustomerRecord } from '../types/records/tenancy-records.ts';
import { requireDone } from '../types/require-done.ts';

const TB = 2 ** 40;
/** Changes have their effect within that time, also where the call that made them was cut off. */
const LOOK_EVERY_MS = 5000;
/** Sub-accounts that are looked at at once. */
const PAGE = 100;
/** After each of many pages, as a multiple of the time that it took: who begins to lead looks at all there are. */
const REST_SHARE = 3;

type Plan = Pick<CustomerRecord, 'history' | 'purchasedStorageTB' | 'quotaType' | 'state' | 'trial'>;

/** Sets the quota of an account's plan; null: it has none. The operator's own stays as it is. */
export type SetPlanQuota = (accountId: AccountId, quota: Quota | null) => Promise<void>;

/** While it is on trial, what the trial allows; then what was purchased. A suspended one keeps what it had. */
export function planQuota(plan: Plan, nowMs: number): Quota | null {
  const { trial, purchasedStorageTB, quotaType } = plan;
  if (trial !== undefined && isOnTrial(plan, nowMs)) return { hard: { bytes: bytesOf(trial.quotaTB) } };
  if (purchasedStorageTB === undefined) return null;
  return { [quotaType]: { bytes: bytesOf(purchasedStorageTB) } };
}

/** Whether a trial goes on: also of a suspended account, which is on trial again when it is restored in time. */
export function isOnTrial({ trial, history }: Pick<Plan, 'history' | 'trial'>, nowMs: number): boolean {
  const isSo = history.findLast(({ state }) => state !== 'suspended')?.state === 'trial';
  return isSo && trial !== undefined && trial.endsAtMs > nowMs;
}

export function isSamePlan(a: Quota | null | undefined, b: Quota | null | undefined): boolean {
  return (['hard', 'soft'] as const).every((kind) => a?.[kind]?.bytes === b?.[kind]?.bytes);
}

function bytesOf(storageTB: number): number {
  return Math.min(Math.round(storageTB * TB), Number.MAX_SAFE_INTEGER);
}

export function createPlanKeeper(deps: {
  metadata: MetadataPort;
  setPlanQuota: SetPlanQuota;
  /** Those whose open primary is here. */
  shards(): readonly number[];
  /** A trial does not come back: none ends by a clock that is not trusted. */
  timeJumps: Pick<TimeJumps, 'mayRemoveByAge'>;
  clock: Pick<ClockPort, 'wallMs' | 'monotonicMs'>;
  log: Pick<Logger, 'info'>;
}): Worker {
  const { metadata, setPlanQuota, shards, timeJumps, clock, log } = deps;
  const system = { shard: SYSTEM_SHARD };
  let since = 0;
  /** By id of the sub-account: when its trial ends, ms. */
  const trials = new Map<number, number>();

  function beginAnew(): void {
    since = 0;
    trials.clear();
  }

  async function agree(record: CustomerRecord): Promise<void> {
    if (record.state === 'trial' && record.trial !== undefined) trials.set(record.id, record.trial.endsAtMs);
    else trials.delete(record.id);
    if (record.state === 'deleted') return;
    const { accountId } = record;
    const { quota } = requireDone(await metadata.query(system, 'get-account-quota', { accountId }));
    const wanted = planQuota(record, clock.wallMs());
    if (!isSamePlan(quota?.quotas.plan, wanted)) await setPlanQuota(accountId, wanted);
  }

  async function endTrial(id: number): Promise<void> {
    const { records } = requireDone(await metadata.query(system, 'read-tenancy', { ids: [id] }));
    const [record] = records;
    if (record?.kind !== 'customer' || record.state !== 'trial') return;
    // The change that has set another end has not been looked at yet.
    if (record.trial !== undefined && record.trial.endsAtMs > clock.wallMs()) {
      trials.set(id, record.trial.endsAtMs);
      return;
    }
    const { accountId, revision: ifRevision } = record;
    const changes = { state: 'paid' as const };
    const command = { accountId, changes, customer: { record, ifRevision } };
    // Where somebody was faster, the change is looked at like any other.
    const outcome = requireDone(await metadata.execute(system, 'set-account', command));
    if (outcome.kind === 'changed') log.info({ account: accountId }, 'trial-ended');
  }

  return {
    name: 'keep-plans',
    async work(signal) {
      const idle = { state: 'idle' as const, idleMs: LOOK_EVERY_MS };
      if (!shards().includes(SYSTEM_SHARD)) {
        beginAnew();
        return idle;
      }
      const beganAtMs = clock.monotonicMs();
      const failures: unknown[] = [];
      const attempt = async (doing: () => Promise<void>) => {
        signal.throwIfAborted();
        await doing().catch((error: unknown) => void failures.push(error));
      };
      const page = requireDone(await metadata.query(system, 'tenancy-changes', { since, limit: PAGE }));
      // Another history (R23).
      if (page.lastChange < since) {
        beginAnew();
        return { state: 'busy' };
      }
      for (const record of page.records) if (record.kind === 'customer') await attempt(() => agree(record));
      // What has failed is looked at again.
      const isDone = failures.length === 0;
      if (isDone) since = page.upTo;
      const nowMs = clock.wallMs();
      const due = timeJumps.mayRemoveByAge(SYSTEM_SHARD)
        ? [...trials].filter(([, endsAtMs]) => endsAtMs <= nowMs)
        : [];
      for (const [id] of due)
        await attempt(async () => {
          await endTrial(id);
          trials.delete(id);
        });
      const isMore = isDone && (!page.isAll || due.length > 0);
      if (!isMore) return { ...idle, failures };
      const restMs = REST_SHARE * (clock.monotonicMs() - beganAtMs);
      return { ...(restMs > 0 ? { state: 'idle', idleMs: restMs } : { state: 'busy' }), failures };
    },
  };
}

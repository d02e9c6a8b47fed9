// The metadata port of a gateway, with leases: where a command would pass the lease that its shard has of an account's quota, the
// lease is extended, and the command is evaluated again. Where there is no room, what other shards do not use is taken back first.
// What comes out is done, or refused by the account's own bound.
import type { SharePath } from '../../base/async/fair-share.ts';
import { createTenantQueue, type TenantQueue } from '../../base/async/tenant-queue.ts';
import { BoundedMap } from '../../base/bounded-map.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type {
  CommandName,
  CommandOf,
  Envelope,
  MetadataPort,
  OutcomeOf,
  Reply,
} from '../../ports/metadata/port.ts';
import type { OverLease, OverQuota } from '../../ports/metadata/quotas.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import { AppError } from '../../types/errors.ts';
import type { AccountId, BucketId } from '../../types/names.ts';
import { addressGroupOf, INTERNAL_TENANT, sharePathOf } from '../../types/tenant.ts';
import { extendLease, reclaimLeases } from './settle-quota.ts';

/** Others may take what was granted before the command comes again: so often it is tried. */
const TRIES_MAX = 8;
/** Taking back asks every shard. Requests that need it meanwhile wait for the next time together. */
const RECLAIM_EVERY_MS = 200;
const ACCOUNTS_MAX = 10_000;

export interface LeaseDeps {
  clock: Pick<ClockPort, 'monotonicMs' | 'sleep'>;
  log: Pick<Logger, 'warn'>;
  telemetry: Pick<TelemetryPort, 'count'>;
}

type LeaseAsked = Parameters<typeof extendLease>[1];

/** What an account's shards did not use, taken back. */
interface Reclaim {
  /** In the order of this gateway's calls. */
  readonly number: number;
  readonly beganAtMs: number;
  isDone: boolean;
  /** Shards that were granted more since it began, and may not use all of that. */
  readonly grantedTo: Set<number>;
}

export function leaseQuotas(metadata: MetadataPort, { clock, log, telemetry }: LeaseDeps): MetadataPort {
  const reclaims = new BoundedMap<AccountId, Reclaim>(ACCOUNTS_MAX);
  const waiting = new Map<AccountId, Promise<void>>();
  const turns = new Map<string, TenantQueue<() => void>>();
  let lastNumber = 0;

  function reclaim(accountId: AccountId): Promise<void> {
    let next = waiting.get(accountId);
    if (next === undefined) {
      // It takes itself out when it begins, so it begins once it is there.
      next = Promise.resolve().then(() => reclaimInTime(accountId));
      waiting.set(accountId, next);
    }
    return next;
  }

  async function reclaimInTime(accountId: AccountId): Promise<void> {
    const lastMs = reclaims.get(accountId)?.beganAtMs ?? Number.NEGATIVE_INFINITY;
    const waitMs = lastMs + RECLAIM_EVERY_MS - clock.monotonicMs();
    if (waitMs > 0) await clock.sleep(waitMs);
    // Who comes from here on may need what is held only later: the next time is theirs.
    waiting.delete(accountId);
    const beganAtMs = clock.monotonicMs();
    const begun: Reclaim = { number: ++lastNumber, beganAtMs, isDone: false, grantedTo: new Set() };
    reclaims.set(accountId, begun);
    await reclaimLeases(metadata, accountId);
    begun.isDone = true;
  }

  /** Whether all that the account's other shards do not use was taken back since the call `came`. */
  function isReclaimed(came: number, { accountId, shard }: LeaseAsked): boolean {
    const last = reclaims.get(accountId);
    if (last === undefined || !last.isDone || last.number < came) return false;
    const isOfOthers = [...last.grantedTo].some((granted) => granted !== shard);
    return !isOfOthers && clock.monotonicMs() - last.beganAtMs < RECLAIM_EVERY_MS;
  }

  async function extend(asked: LeaseAsked): ReturnType<typeof extendLease> {
    const short = await extendLease(metadata, asked);
    if (short === undefined) reclaims.get(asked.accountId)?.grantedTo.add(asked.shard);
    return short;
  }

  async function makeRoom(came: number, asked: LeaseAsked): Promise<OverQuota | undefined> {
    let passed = await extend(asked);
    if (passed !== undefined && !isReclaimed(came, asked)) {
      await reclaim(asked.accountId);
      passed = await extend(asked);
    }
    return passed && { kind: 'over-quota', of: 'account', unit: passed.unit, bound: passed.bound };
  }

  function report({ bucketId }: { bucketId?: BucketId }): void {
    log.warn({ bucketId }, 'soft-quota-passed');
    telemetry.count('holdfast_soft_quota_passed_total', { of: 'bucket' });
  }

  /**
   * Those who need more of one lease come one after another, so that none takes what was made room for by another, and in turns
   * of who asks: what one of them sends in vain does not keep the others.
   */
  async function inTurn<T>(
    { shard, origin }: Envelope,
    { accountId }: OverLease,
    work: () => Promise<T>,
  ): Promise<T> {
    const name = `${accountId} ${shard}`;
    const queue = turns.get(name);
    if (queue === undefined) turns.set(name, createTenantQueue());
    else await new Promise<void>((begin) => queue.add(pathOf(origin), begin));
    try {
      return await work();
    } finally {
      const begin = turns.get(name)?.next(() => true);
      if (begin === undefined) turns.delete(name);
      else begin();
    }
  }

  /** Extends the lease, and evaluates the command again, until it fits or is refused. */
  function extended<N extends CommandName>(
    { requestId: _, isRetry: __, ...envelope }: Envelope,
    over: OverLease,
    { name, command }: { name: N; command: CommandOf<N> },
  ): Promise<Reply<OutcomeOf<N>>> {
    // The refusal may be kept under the id of the call, so what follows are other calls.
    const { shard } = envelope;
    const came = ++lastNumber;
    return inTurn(envelope, over, async () => {
      let last = await metadata.execute(envelope, name, command);
      for (let tries = 0; tries < TRIES_MAX && last.kind === 'done'; tries++) {
        const still = overLeaseOf(last);
        if (still === undefined) return last;
        const { accountId, wanted } = still;
        const passed = await makeRoom(came, { accountId, shard, wanted }).catch(failedCall);
        // Nothing was written: whoever asks again may find the other shards there.
        if (passed === 'failed') return { kind: 'busy' };
        if (passed !== undefined) return { ...last, value: passed as OutcomeOf<N> };
        last = await metadata.execute(envelope, name, command);
      }
      return overLeaseOf(last) === undefined ? last : { kind: 'busy' };
    });
  }

  return {
    shardCount: metadata.shardCount,
    query: (envelope, name, query) => metadata.query(envelope, name, query),
    async execute<N extends CommandName>(
      envelope: Envelope,
      name: N,
      command: CommandOf<N>,
    ): Promise<Reply<OutcomeOf<N>>> {
      const first = await metadata.execute(envelope, name, command);
      const over = overLeaseOf(first);
      const reply = over === undefined ? first : await extended(envelope, over, { name, command });
      if (hasPassedSoftQuota(reply)) report(command as { bucketId?: BucketId });
      return reply;
    },
  };
}

function pathOf(origin: Envelope['origin']): SharePath {
  if (origin === undefined) return sharePathOf(INTERNAL_TENANT);
  return sharePathOf({ account: origin.accountId, address: addressGroupOf(origin.address ?? '') });
}

function failedCall(error: unknown): 'failed' {
  if (error instanceof AppError) return 'failed';
  throw error;
}

function hasPassedSoftQuota(reply: Reply<unknown>): boolean {
  return (
    reply.kind === 'done' && (reply.value as { passedSoftQuota?: true } | null)?.passedSoftQuota === true
  );
}

function overLeaseOf(reply: Reply<unknown>): OverLease | undefined {
  if (reply.kind !== 'done' || typeof reply.value !== 'object' || reply.value === null) return undefined;
  const value = reply.value as { kind?: unknown };
  return value.kind === 'over-lease' ? (value as OverLease) : undefined;
}

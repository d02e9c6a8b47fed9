// The list of members, under `node/<id>`, each key under a lease of its process.
import type { Member, MembersPort } from '../ports/members.ts';
import { createClusterIdentity } from './cluster-identity.ts';
import type { CoordinationContext } from './coordination-context.ts';
import { createRetryDelay, followKeys } from './follow-keys.ts';
import { forgetGateway, keepTrace, missingGateways } from './gateway-traces.ts';
import { type HeldLease, holdLease } from './held-lease.ts';
import { memberRecord } from './records.ts';
import { skipUnreadable } from './skip-unreadable.ts';
import type { StoredKey } from './store.ts';

export function createMembers(context: CoordinationContext): MembersPort {
  const { store, clock, log, memberLeaseMs } = context;
  const prefix = `${context.prefix}node/`;

  function membersOf(rows: Iterable<StoredKey>): Member[] {
    const members: Member[] = [];
    for (const { key, value } of rows)
      skipUnreadable(log, () => members.push(memberRecord.decode(key, value)));
    return members.sort((a, b) => (a.nodeId < b.nodeId ? -1 : 1));
  }

  return {
    async announce(member, signal) {
      const { instance } = member;
      const isPlace = createPlaceCheck(context, member);
      const trace =
        instance === undefined ? undefined : keepTrace(context, { ...member, instance }, { signal, isPlace });
      const row = { key: prefix + member.nodeId, value: memberRecord.encode(member) };
      const retry = createRetryDelay();
      while (!signal.aborted) {
        try {
          if (!(await isPlace())) {
            await clock.sleep(memberLeaseMs, signal);
            continue;
          }
          const lease = await holdLease({ store, clock, ttlMs: memberLeaseMs });
          retry.reset();
          await keepRow(context, { row, lease, signal, isPlace });
          // A lost lease ends by itself: its row must stay until the next lease has taken it over.
          if (signal.aborted) await lease.release();
        } catch (error) {
          log.debug({ nodeId: member.nodeId, err: error }, 'member-lease-not-granted');
          await clock.sleep(retry.nextMs(), signal);
        }
      }
      await trace;
    },
    async missingGateways() {
      return missingGateways(context, membersOf((await store.list(prefix)).rows));
    },
    forgetGateway: (nodeId) => forgetGateway(context, nodeId),
    async current() {
      return membersOf((await store.list(prefix)).rows);
    },
    watch(onMembers, signal) {
      const rows = new Map<string, StoredKey>();
      void followKeys({
        store,
        clock,
        log,
        prefix,
        onState(state) {
          rows.clear();
          for (const row of state) rows.set(row.key, row);
          onMembers(membersOf(rows.values()));
        },
        onChange({ key, row }) {
          if (row === undefined) rows.delete(key);
          else rows.set(key, row);
          onMembers(membersOf(rows.values()));
        },
        signal,
      });
    },
  };
}

/**
 * Whether the coordinator may be told of `member`: not where it has another cluster, which is logged once. One without any
 * may: a rebuild asks the nodes at rest that are listed there.
 */
function createPlaceCheck(
  context: CoordinationContext,
  { nodeId, clusterId }: Member,
): () => Promise<boolean> {
  const { log } = context;
  const identity = createClusterIdentity(context);
  let last: string | undefined;
  return async () => {
    if (clusterId === undefined) return true;
    const found = (await identity.read())?.clusterId;
    const isPlace = found === undefined || found === clusterId;
    if (!isPlace && found !== last) log.error({ nodeId, clusterId, found }, 'member-of-another-cluster');
    last = found;
    return isPlace;
  };
}

/** Restores the row if somebody removes it by hand, until the lease is lost, `signal` aborts or this is no place for it. */
async function keepRow(
  { store, clock, log, memberLeaseMs }: CoordinationContext,
  {
    row,
    lease,
    signal,
    isPlace,
  }: {
    row: { key: string; value: string };
    lease: HeldLease;
    signal: AbortSignal;
    isPlace(): Promise<boolean>;
  },
): Promise<void> {
  const ended = AbortSignal.any([signal, lease.lost]);
  const retry = createRetryDelay();
  let isOurs = false;
  while (!ended.aborted) {
    let waitMs = memberLeaseMs;
    try {
      if (!(await isPlace())) return await lease.release();
      const { row: found } = await store.get(row.key);
      if (ended.aborted) return;
      // Two processes have one id: a data folder, or a whole machine, was copied. Neither can be relied on.
      if (isOurs && found !== undefined && found.leaseId !== lease.leaseId && found.value !== row.value)
        log.error({ key: row.key, value: found.value }, 'member-announced-by-another');
      if (found?.leaseId !== lease.leaseId || found.value !== row.value)
        await store.put({ ...row, leaseId: lease.leaseId });
      isOurs = true;
      retry.reset();
    } catch (error) {
      log.debug({ key: row.key, err: error }, 'member-not-announced');
      waitMs = retry.nextMs();
    }
    await clock.sleep(waitMs, ended);
  }
}

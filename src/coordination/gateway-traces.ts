// Detects gateways that ended without leaving, by rows under `gateway/<instance>`. A gateway stores nothing else that
// outlives it, so a row under a long lease shows that it was there. A gateway that stops removes its row; a killed one does
// not; one that restarts at the same place takes the row over.
import type { Member } from '../ports/members.ts';
import type { CoordinationContext } from './coordination-context.ts';
import { createRetryDelay } from './follow-keys.ts';
import { holdLease } from './held-lease.ts';
import { memberRecord } from './records.ts';
import { skipUnreadable } from './skip-unreadable.ts';

/** Time for which a killed gateway is missed. */
const TRACE_LEASE_MS = 24 * 3_600_000;

interface Trace {
  member: Member;
  leaseId: string | undefined;
}

/** Keeps the row of `member` until `signal` aborts, where `isPlace` says that it may be. Never rejects. */
export async function keepTrace(
  context: CoordinationContext,
  member: Member & { instance: string },
  { signal, isPlace }: { signal: AbortSignal; isPlace(): Promise<boolean> },
): Promise<void> {
  const { store, clock, log, prefix } = context;
  const key = `${prefix}gateway/${encodeURIComponent(member.instance)}`;
  const retry = createRetryDelay();
  while (!signal.aborted) {
    try {
      if (!(await isPlace())) {
        await clock.sleep(context.memberLeaseMs, signal);
        continue;
      }
      await removeEarlier(context, { key, member });
      const lease = await holdLease({ store, clock, ttlMs: TRACE_LEASE_MS });
      await store.put({ key, value: memberRecord.encode(member), leaseId: lease.leaseId });
      retry.reset();
      await ended(AbortSignal.any([signal, lease.lost]));
      await lease.release();
    } catch (error) {
      log.debug({ key, err: error }, 'gateway-trace-not-kept');
      await clock.sleep(retry.nextMs(), signal);
    }
  }
}

/**
 * The process that was here before is gone, though its lease has not ended: two cannot listen at one address, and threads
 * that do are instances of their own.
 */
async function removeEarlier(
  { store, prefix }: CoordinationContext,
  { key, member }: { key: string; member: Member },
): Promise<void> {
  const { row } = await store.get(key);
  if (row === undefined) return;
  const { nodeId } = memberRecord.decode(key, row.value);
  if (nodeId === member.nodeId) return;
  const { row: listed } = await store.get(`${prefix}node/${nodeId}`);
  if (listed?.leaseId !== undefined) await store.revokeLease(listed.leaseId);
}

/** Gateways of the last day that are not among `members` and have not left. */
export async function missingGateways(
  context: CoordinationContext,
  members: readonly Member[],
): Promise<Member[]> {
  const there = new Set(members.map(({ nodeId }) => nodeId));
  return (await readTraces(context)).flatMap(({ member }) => (there.has(member.nodeId) ? [] : [member]));
}

/** Forgets a gateway that will not return. */
export async function forgetGateway(context: CoordinationContext, nodeId: string): Promise<void> {
  const traces = await readTraces(context);
  const leaseId = traces.find(({ member }) => member.nodeId === nodeId)?.leaseId;
  if (leaseId !== undefined) await context.store.revokeLease(leaseId);
}

async function readTraces({ store, prefix, log }: CoordinationContext): Promise<Trace[]> {
  const { rows } = await store.list(`${prefix}gateway/`);
  const traces: Trace[] = [];
  for (const { key, value, leaseId } of rows)
    skipUnreadable(log, () => traces.push({ member: memberRecord.decode(key, value), leaseId }));
  return traces;
}

function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

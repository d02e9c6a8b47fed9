// Refuses requests for want of room, and reports that to the operator: a metric has the resource and whose share was used
// up, without a name; a line of the log names the tenant.

import type { FairShare, ShareName, SharePath } from '../../base/async/fair-share.ts';
import { BoundedMap } from '../../base/bounded-map.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import { AppError } from '../../types/errors.ts';
import { sharePathOf, type Tenant } from '../../types/tenant.ts';
import type { Exchange } from './exchange.ts';

/** What there is too much of. `unproved`: requests whose senders are not known yet. `bodies`: bodies that are read whole. */
export type ShedReason = 'connections' | 'requests' | 'answers' | 'bodies' | 'unproved';

export interface Overload {
  readonly reason: ShedReason;
  readonly share: ShareName;
}

export interface Shedding {
  /** Counts and logs a refusal; gives SlowDown, to be thrown. */
  refuse(overload: Overload, tenant: Tenant): AppError;
  /** Counts and logs that an idle connection was closed to make room for others. */
  noteYield(tenant: Tenant): void;
}

/** A tenant that is over its share is named so often, for each reason. */
const LOG_EVERY_MS = 60_000;
const NAMED_MAX = 1024;

/** See this file's head. */
export function createShedding(deps: {
  clock: Pick<ClockPort, 'monotonicMs'>;
  log: Logger;
  telemetry: TelemetryPort;
}): Shedding {
  const { clock, log, telemetry } = deps;
  /** Monotonic ms of the last line, by reason and tenant. */
  const named = new BoundedMap<string, number>(NAMED_MAX);

  function name(reason: ShedReason, { account, signer, address }: Tenant): void {
    const key = `${reason} ${account ?? address} ${signer}`;
    const nowMs = clock.monotonicMs();
    if (nowMs - (named.get(key) ?? Number.NEGATIVE_INFINITY) < LOG_EVERY_MS) return;
    named.set(key, nowMs);
    log.warn({ reason, account, signer, address }, 'share-used-up');
  }

  return {
    refuse({ reason, share }, tenant) {
      telemetry.count('holdfast_requests_shed_total', { reason, share });
      if (share === 'tenant') name(reason, tenant);
      return new AppError('SlowDown');
    },
    noteYield(tenant) {
      telemetry.count('holdfast_connections_yielded_total');
      name('connections', tenant);
    },
  };
}

/**
 * Takes places among those that strangers share by their addresses. Throws SlowDown where the client's address has used up
 * its share. What is taken is given back when `until` has resolved.
 */
export function takePlaces(shedding: Shedding, places: FairShare, taken: Taken): void {
  takeFrom(places, { ...taken, path: [taken.exchange.tenant.address], reason: 'unproved', shedding });
}

/** The same among bodies that tenants share, once it is known who asks. */
export function takeBodyShare(shedding: Shedding, bodies: FairShare, taken: Taken): void {
  takeFrom(bodies, { ...taken, path: sharePathOf(taken.exchange.tenant), reason: 'bodies', shedding });
}

interface Taken {
  exchange: Exchange;
  units: number;
  until: Promise<void>;
}

function takeFrom(
  share: FairShare,
  taken: Taken & { path: SharePath; reason: ShedReason; shedding: Shedding },
): void {
  const { path, units, until, exchange, reason, shedding } = taken;
  // Who takes nothing is refused nothing, over its share or not.
  if (units === 0) return;
  if (!share.mayTake(path, units)) {
    throw shedding.refuse({ reason, share: share.usedUp(units) }, exchange.tenant);
  }
  share.take(path, units);
  void until.then(() => share.giveBack(path, units));
}

// The one place where quotas refuse. A command under a quota decides as always; what its counters would add is then compared with
// the hard bounds. Counters are exact in that moment, with all that is appended, and nothing comes in between: so many writers
// at once do not pass a bound by one byte.
import type { QuotaRefusal } from '../../ports/metadata/quotas.ts';
import type { CounterDelta, DecideContext } from '../../ports/state-machine.ts';
import type { BucketId } from '../../types/names.ts';
import { crossesBound, type HeldAmount, passedBound } from '../../types/quota.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import { findBucket } from '../buckets/buckets.ts';
import { noteSoftQuota } from '../events/note-events.ts';
import { sumDeltas } from '../schema/counters.ts';
import type { DefinedCommand } from '../schema/define-command.ts';
import { refuse } from '../versions/write-version.ts';
import { growthIn, type HeldCounters, heldIn, leaseOf, ofAccount, ofBucket } from './held.ts';

/** The command under the quotas of its bucket and of the bucket's owner. It must look at the bucket's row. */
export function underQuota<Command extends { bucketId: BucketId }, Outcome>(
  define: DefinedCommand<Command, Outcome>,
): DefinedCommand<Command, Outcome | QuotaRefusal> {
  return (rules, metering) => {
    const spec = define(rules, metering);
    return {
      ...spec,
      decide(command, view, context, prepared) {
        const decision = spec.decide(command, view, context, prepared);
        const { counters: deltas = [] } = decision;
        if (deltas.length === 0) return decision;
        const bucket = findBucket(view, command.bucketId);
        if (bucket === undefined) return decision;
        const over = whatIsPassed(bucket, (held) => growthIn(held, deltas), context);
        if (over !== undefined) return refuse(over);
        if (!passesSoftBound(bucket, deltas, context)) return decision;
        const outcome = { ...decision.outcome, passedSoftQuota: true };
        // Its number is behind those of the command's own events.
        const counter = (name: string) => context.counter(name) + growthOf(deltas, name);
        const noted = noteSoftQuota(bucket, { ...context, counter });
        const counters = sumDeltas([...deltas, ...noted.counters]);
        return { ...decision, outcome, puts: [...decision.puts, ...noted.puts], counters };
      },
    };
  };
}

function growthOf(deltas: readonly CounterDelta[], name: string): number {
  return deltas.reduce((sum, one) => sum + (one.name === name ? Number(one.delta) : 0), 0);
}

/** For gateways, which report it (lease-quotas.ts). */
function passesSoftBound(
  { bucketId, quota }: BucketRecord,
  deltas: readonly CounterDelta[],
  { counter }: DecideContext,
): boolean {
  if (quota?.soft === undefined) return false;
  const held = ofBucket(bucketId);
  return crossesBound(quota.soft, heldIn(held, counter), growthIn(held, deltas));
}

/**
 * What a growth would pass: a hard bound of the bucket, or the lease of its owner; undefined: nothing. `growthOf` is asked only
 * where there is a bound: most commits are under none.
 */
export function whatIsPassed(
  { bucketId, owner, quota }: BucketRecord,
  growthOf: (held: HeldCounters) => HeldAmount,
  { counter }: DecideContext,
): QuotaRefusal | undefined {
  if (quota?.hard !== undefined) {
    const counters = ofBucket(bucketId);
    const passed = passedBound(quota.hard, heldIn(counters, counter), growthOf(counters));
    if (passed !== undefined) return { kind: 'over-quota', of: 'bucket', ...passed };
  }
  const lease = leaseOf(owner, counter);
  if (lease === undefined) return undefined;
  const counters = ofAccount(owner);
  const held = heldIn(counters, counter);
  const growth = growthOf(counters);
  if (passedBound(lease, held, growth) === undefined) return undefined;
  const wanted = {
    bytes: held.bytes + Math.max(0, growth.bytes),
    objects: held.objects + Math.max(0, growth.objects),
  };
  return { kind: 'over-lease', accountId: owner, wanted };
}

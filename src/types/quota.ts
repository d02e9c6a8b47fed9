// How much a bucket or an account may hold (extensions 1.4). Bytes are those of versions, as clients see them, and of parts of open
// uploads. Hard bounds are exact and refuse what would go beyond; soft ones are reported.
import { AppError } from './errors.ts';

export interface QuotaBounds {
  bytes?: number;
  objects?: number;
}

export interface Quota {
  hard?: QuotaBounds;
  soft?: QuotaBounds;
}

/** What is held, or what a change adds to it. */
export interface HeldAmount {
  bytes: number;
  objects: number;
}

/** A hard bound that a change would pass. */
export interface PassedBound {
  of: 'bucket' | 'account';
  unit: keyof HeldAmount;
  bound: number;
}

const UNITS = ['bytes', 'objects'] as const satisfies (keyof HeldAmount)[];

/** Of a request that would pass a hard bound. A lease that could not be extended passes by itself. */
export function overQuotaError(
  refusal: ({ kind: 'over-quota' } & PassedBound) | { kind: 'over-lease' },
): AppError {
  if (refusal.kind === 'over-lease') return new AppError('SlowDown');
  const { of, unit, bound } = refusal;
  const message = `The request would exceed the quota of the ${of}: ${bound} ${unit}.`;
  return new AppError('QuotaExceeded', { message, fields: { Quota: `${of}-${unit}`, Limit: String(bound) } });
}

/** The first hard bound that `growth` would pass. What adds nothing passes none, however much is held already. */
export function passedBound(
  bounds: QuotaBounds | undefined,
  held: HeldAmount,
  growth: HeldAmount,
): Pick<PassedBound, 'unit' | 'bound'> | undefined {
  for (const unit of UNITS) {
    const bound = bounds?.[unit];
    if (bound !== undefined && growth[unit] > 0 && held[unit] + growth[unit] > bound) return { unit, bound };
  }
  return undefined;
}

/** Whether more is held than a bound says. */
export function exceedsBound(bounds: QuotaBounds, held: HeldAmount): boolean {
  return UNITS.some((unit) => held[unit] > (bounds[unit] ?? Number.POSITIVE_INFINITY));
}

/** Whether the change leads from at or below a soft bound to above it. */
export function crossesBound(bounds: QuotaBounds | undefined, held: HeldAmount, growth: HeldAmount): boolean {
  return UNITS.some((unit) => {
    const bound = bounds?.[unit];
    return bound !== undefined && held[unit] <= bound && held[unit] + growth[unit] > bound;
  });
}

// The quota of an account as the system shard keeps it: its bounds, and how much of them each shard may fill.
import { defineRecord } from '../../base/record-codec.ts';
import type { AccountId } from '../names.ts';
import type { HeldAmount, Quota, QuotaBounds } from '../quota.ts';

/** Who sets a quota: the operator, or what the account has bought (extensions 1.4). The narrower bound counts. */
export type QuotaSource = 'operator' | 'plan';

/** How much of an account's hard bounds one shard may fill. Of two, the one with the higher version is the newer. */
export interface QuotaLease extends HeldAmount {
  version: number;
}

export interface AccountQuotaRecord {
  accountId: AccountId;
  quotas: { readonly [S in QuotaSource]?: Quota };
  /** Hard bounds hold from `open` on: before, some shard may not have its lease yet. `soft`: there are none. */
  phase: 'soft' | 'opening' | 'open' | 'closing';
  /** By shard: no less than what the shard has as its lease. */
  grants: Readonly<Record<number, QuotaLease>>;
  /** It was found to hold more than its soft bounds, which was reported. */
  isAboveSoft?: true;
}
export const accountQuotaCodec = defineRecord<AccountQuotaRecord>({ name: 'account-quota', version: 1 });

/** The narrowest of what the sources say; an absent unit has no bound. */
export function boundsOf(
  { quotas }: Pick<AccountQuotaRecord, 'quotas'>,
  kind: keyof Quota,
): QuotaBounds | undefined {
  const said = Object.values(quotas).flatMap((quota) => quota[kind] ?? []);
  const narrowest = (unit: keyof HeldAmount) => Math.min(...said.flatMap((bounds) => bounds[unit] ?? []));
  const bounds = Object.fromEntries(
    (['bytes', 'objects'] as const)
      .map((unit) => [unit, narrowest(unit)] as const)
      .filter(([, bound]) => bound !== Number.POSITIVE_INFINITY),
  );
  return Object.keys(bounds).length === 0 ? undefined : bounds;
}

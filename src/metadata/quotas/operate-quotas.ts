// Quotas as the operator sets and sees them: of an account, which holds from the answer on in all shards, and of a bucket.

import { type MetadataPort, SYSTEM_SHARD } from '../../ports/metadata/port.ts';
import { AppError } from '../../types/errors.ts';
import type { AccountId } from '../../types/names.ts';
import type { HeldAmount, Quota, QuotaBounds } from '../../types/quota.ts';
import { boundsOf, type QuotaSource } from '../../types/records/quota-record.ts';
import { requireDone } from '../../types/require-done.ts';
import { reclaimLeases, settleQuota } from './settle-quota.ts';
import { heldByAccount } from './watch-quotas.ts';

export interface AccountQuota {
  /** What each source has set. */
  quotas: { readonly [S in QuotaSource]?: Quota };
  /** The narrowest of them. */
  quota: Quota;
  held: HeldAmount;
}

/** Throws ValidationError where a bound is no whole number, or a soft one is above the hard one. */
export function checkQuota(quota: Quota): void {
  const problems: Record<string, string> = {};
  for (const kind of ['hard', 'soft'] as const) {
    for (const [unit, bound] of Object.entries(quota[kind] ?? {}))
      if (!Number.isSafeInteger(bound) || bound < 0)
        problems[`${kind}${unit === 'bytes' ? 'Bytes' : 'Objects'}`] = 'must be a whole number, not below 0';
  }
  if (isAbove(quota.soft?.bytes, quota.hard?.bytes)) problems.softBytes = 'is above hardBytes';
  if (isAbove(quota.soft?.objects, quota.hard?.objects)) problems.softObjects = 'is above hardObjects';
  const message = Object.entries(problems)
    .map((problem) => problem.join(' '))
    .join('; ');
  if (message !== '') throw new AppError('ValidationError', { message, fields: problems });
}

function isAbove(soft: number | undefined, hard: number | undefined): boolean {
  return soft !== undefined && hard !== undefined && soft > hard;
}

/** null where nothing is bounded. */
export function normaliseQuota({ hard, soft }: Quota): Quota | null {
  const isSet = (bounds: QuotaBounds | undefined) => bounds !== undefined && Object.keys(bounds).length > 0;
  const quota = { ...(isSet(hard) && { hard }), ...(isSet(soft) && { soft }) };
  return Object.keys(quota).length === 0 ? null : (quota as Quota);
}

/** Resolves when the bounds hold in every shard. Throws NoSuchEntity, ValidationError; ServiceUnavailable where a shard is away. */
export async function setAccountQuota(
  metadata: MetadataPort,
  { accountId, source, quota }: { accountId: AccountId; source: QuotaSource; quota: Quota | null },
): Promise<void> {
  if (quota !== null) checkQuota(quota);
  const set = quota && normaliseQuota(quota);
  const outcome = requireDone(
    await metadata.execute({ shard: SYSTEM_SHARD }, 'set-account-quota', { accountId, source, quota: set }),
  );
  if (outcome.kind === 'no-such-account') throw new AppError('NoSuchEntity');
  await settleQuota(metadata, accountId);
  // Shards may have been granted more than the bounds are now.
  await reclaimLeases(metadata, accountId);
}

export async function readAccountQuota(metadata: MetadataPort, accountId: AccountId): Promise<AccountQuota> {
  const stored = await metadata.query({ shard: SYSTEM_SHARD }, 'get-account-quota', { accountId });
  const { quota: record } = requireDone(stored);
  const quotas = record?.quotas ?? {};
  const [hard, soft] = (['hard', 'soft'] as const).map((kind) => boundsOf({ quotas }, kind));
  const held = await heldByAccount(metadata, accountId);
  return { quotas, quota: { ...(hard && { hard }), ...(soft && { soft }) }, held };
}

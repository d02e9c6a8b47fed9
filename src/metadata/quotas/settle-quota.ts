// Leases of accounts, moved between the system shard and the shards that fill them. Everything here may stop anywhere and be done
// again: whoever comes next goes on by what is stored.
import type { MetadataPort } from '../../ports/metadata/port.ts';
import { SYSTEM_SHARD } from '../../ports/metadata/port.ts';
import type { AccountId } from '../../types/names.ts';
import type { HeldAmount, PassedBound } from '../../types/quota.ts';
import { requireDone } from '../../types/require-done.ts';

const system = { shard: SYSTEM_SHARD };

/** Gives every shard its lease, or takes it away, where the account's quota is to begin or to end. Resolves when that is so. */
export async function settleQuota(metadata: MetadataPort, accountId: AccountId): Promise<void> {
  const { shardCount } = metadata;
  const { quota } = requireDone(await metadata.query(system, 'get-account-quota', { accountId }));
  if (quota?.phase !== 'opening' && quota?.phase !== 'closing') return;
  const { phase, grants } = quota;
  await Promise.all(
    Array.from({ length: shardCount }, async (_, shard) => {
      if (phase === 'closing')
        return endLease(metadata, { accountId, shard, version: grants[shard]?.version ?? 0 });
      const { lease } = requireDone(await metadata.execute({ shard }, 'open-quota-lease', { accountId }));
      requireDone(await metadata.execute(system, 'note-quota-lease', { accountId, shard, lease }));
    }),
  );
  requireDone(await metadata.execute(system, 'end-quota-phase', { accountId, phase, shardCount }));
}

/**
 * Ends the lease of a shard while the account has no hard quota. `version`: of the lease as it is known: one that has begun anew
 * since is of a quota that has.
 */
async function endLease(
  metadata: MetadataPort,
  { accountId, shard, version }: { accountId: AccountId; shard: number; version: number },
): Promise<void> {
  for (let known = version; ; ) {
    const command = { accountId, version: known };
    const ended = requireDone(await metadata.execute({ shard }, 'close-quota-lease', command));
    if (ended.kind === 'closed') return;
    const { quota } = requireDone(await metadata.query(system, 'get-account-quota', { accountId }));
    if (quota?.phase === 'opening' || quota?.phase === 'open') return;
    known = ended.version;
  }
}

/** Takes back what shards were granted and do not use: for another one, or because the bounds are narrower now. */
export async function reclaimLeases(metadata: MetadataPort, accountId: AccountId): Promise<void> {
  const { quota } = requireDone(await metadata.query(system, 'get-account-quota', { accountId }));
  await Promise.all(
    Object.entries(quota?.grants ?? {}).map(async ([of, { version }]) => {
      const shard = Number(of);
      const asked = { accountId, version };
      const shrunk = requireDone(await metadata.execute({ shard }, 'shrink-quota-lease', asked));
      if (shrunk.kind === 'no-lease') return;
      const { lease } = shrunk;
      requireDone(await metadata.execute(system, 'note-quota-lease', { accountId, shard, lease }));
    }),
  );
}

/** Asks for a lease of `wanted` at least; resolves with the bound where there is no room for it. */
export async function extendLease(
  metadata: MetadataPort,
  { accountId, shard, wanted }: { accountId: AccountId; shard: number; wanted: HeldAmount },
): Promise<Pick<PassedBound, 'unit' | 'bound'> | undefined> {
  const granted = requireDone(await metadata.execute(system, 'grant-quota', { accountId, shard, wanted }));
  switch (granted.kind) {
    case 'short':
      return granted;
    case 'opening':
    case 'closing':
      await settleQuota(metadata, accountId);
      return undefined;
    case 'no-quota':
      await endLease(metadata, { accountId, shard, version: 0 });
      return undefined;
    case 'granted': {
      const { lease } = granted;
      requireDone(await metadata.execute({ shard }, 'set-quota-lease', { accountId, lease }));
      return undefined;
    }
  }
}

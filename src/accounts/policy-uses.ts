// Who has which managed policy: indices, and how often one is used, which is kept in a row of its own that goes with them.
import {
  type HolderKind,
  identityKeys,
  type PolicyUsageRecord,
  type UserRecord,
} from '../types/records/identity-records.ts';
import type { IdentityStore } from './identity-store.ts';

export async function usageOf(store: IdentityStore, arn: string): Promise<PolicyUsageRecord> {
  const [usage] = await usagesOf(store, [arn]);
  return usage ?? UNUSED;
}

export async function usagesOf(store: IdentityStore, arns: readonly string[]): Promise<PolicyUsageRecord[]> {
  const rows = await store.findAll('policy-usage', arns.map(identityKeys.policyUsage));
  return rows.map((row) => row ?? UNUSED);
}

const UNUSED: PolicyUsageRecord = { kind: 'policy-usage', attachedCount: 0, boundedCount: 0 };

export interface PolicyUse {
  readonly arn: string;
  /** Attached, or the boundary. */
  readonly as: 'attached' | 'bounded';
  readonly kind: HolderKind;
  /** Of the holder. */
  readonly name: string;
}

/** Writes index and count; the row of the holder is the caller's to write. */
export async function noteUse(store: IdentityStore, use: PolicyUse, by: 1 | -1): Promise<void> {
  const { arn, as, kind, name } = use;
  const key = identityKeys[as](arn, kind, name);
  if (by === 1) store.putUnseen(key, { kind: 'index', to: identityKeys[kind](name) });
  else store.removeUnseen(key);
  const before = await usageOf(store, arn);
  const after = { ...before, [`${as}Count`]: Math.max(0, before[`${as}Count`] + by) };
  const usageKey = identityKeys.policyUsage(arn);
  if (after.attachedCount + after.boundedCount === 0) store.removeUnseen(usageKey);
  else store.putUnseen(usageKey, after);
}

/** Of a user, group or role that gets another name: its indices follow. */
export function renameUses(
  store: IdentityStore,
  holder: { kind: HolderKind; attachedPolicies: readonly string[]; boundary?: string | undefined },
  { before, after }: { before: string; after: string },
): void {
  const { kind, attachedPolicies, boundary } = holder;
  const uses = [
    ...attachedPolicies.map((arn) => ({ arn, as: 'attached' as const })),
    ...(boundary === undefined ? [] : [{ arn: boundary, as: 'bounded' as const }]),
  ];
  for (const { arn, as } of uses) store.removeUnseen(identityKeys[as](arn, kind, before));
  for (const { arn, as } of uses) {
    store.putUnseen(identityKeys[as](arn, kind, after), { kind: 'index', to: identityKeys[kind](after) });
  }
}

/** Takes the user out of its groups, and its managed policies away; returns its row, which is the caller's to write. */
export async function takeFromUser(store: IdentityStore, user: UserRecord): Promise<UserRecord> {
  for (const arn of user.attachedPolicies)
    await noteUse(store, { arn, as: 'attached', kind: 'user', name: user.name }, -1);
  for (const groupId of user.groups) store.removeUnseen(identityKeys.member(groupId, user.name));
  return { ...user, attachedPolicies: [], groups: [] };
}

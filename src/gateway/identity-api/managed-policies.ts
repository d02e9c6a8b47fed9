// Managed policies by their ARNs: an account's own, and the ready-made ones. How often one is used is kept in a row of its own,
// which goes with the indices of who has it.

import type { IdentityStore } from '../../accounts/identity-store.ts';
import {
  findReadyMadePolicy,
  isReadyMadeArn,
  READY_MADE_SINCE_MS,
} from '../../policy/documents/ready-made-policies.ts';
import { AppError } from '../../types/errors.ts';
import {
  type HolderKind,
  identityKeys,
  type ManagedPolicyRecord,
  type PolicyUsageRecord,
} from '../../types/records/identity-records.ts';
import type { Tag } from '../../types/tags.ts';
import type { AccessTarget, ActionContext } from './iam-action.ts';
import { identityArn } from './identity-parameters.ts';
import { orElse, text } from './parameter-rules.ts';

/** Of an account, or of nobody (`aws`). */
const ARN = /^arn:aws:iam::(\d{12}|aws):policy(\/(?:[\x21-\x7e]+\/)?)([\w+=,.@-]{1,128})$/;

const PATH = {
  charactersMax: 512,
  pattern: /^(?:\/[A-Za-z0-9.,+@=_-]+)*\/$/,
  patternMessage: (at: string) =>
    `The specified value for ${at} is invalid. It must begin and end with / and contain only alphanumeric characters and/or / characters.`,
};
/** Of a policy that is made, and of those that a list shows. */
export const policyPath = orElse(text(PATH), '/');

export interface PolicyName {
  readonly owner: string;
  readonly path: string;
  readonly name: string;
}

export function isPolicyArn(arn: string): boolean {
  return ARN.test(arn);
}

/** Throws InvalidInput. */
export function parsePolicyArn(arn: string): PolicyName {
  const [whole, owner = '', path = '', name = ''] = ARN.exec(arn) ?? [];
  if (whole === undefined) throw new AppError('InvalidInput', { message: `ARN ${arn} is not valid.` });
  return { owner, path, name };
}

export type ManagedPolicy = Omit<ManagedPolicyRecord, 'kind'> & { readonly arn: string };

/** Throws InvalidInput for what is no ARN of a policy. */
export async function findManagedPolicy(
  store: IdentityStore,
  arn: string,
): Promise<ManagedPolicy | undefined> {
  const { owner, path, name } = parsePolicyArn(arn);
  if (owner !== store.accountId) return readyMade(arn);
  const record = await store.find('policy', identityKeys.policy(name));
  return record?.path === path && record.name === name ? { ...record, arn } : undefined;
}

export function readyMade(arn: string): ManagedPolicy | undefined {
  const policy = findReadyMadePolicy(arn);
  return (
    policy && {
      ...policy,
      createdAtMs: READY_MADE_SINCE_MS,
      updatedAtMs: READY_MADE_SINCE_MS,
      tags: [],
      versions: [{ number: 1, createdAtMs: READY_MADE_SINCE_MS }],
      defaultVersion: 1,
      nextVersion: 2,
    }
  );
}

/** Throws NoSuchEntity, InvalidInput. */
export async function requireManagedPolicy(store: IdentityStore, arn: string): Promise<ManagedPolicy> {
  const policy = await findManagedPolicy(store, arn);
  if (policy === undefined) throw new AppError('NoSuchEntity', { message: `Policy ${arn} was not found.` });
  return policy;
}

/** To be put on somebody. Throws NoSuchEntity, InvalidInput. */
export async function requireAttachable(store: IdentityStore, arn: string): Promise<void> {
  if ((await findManagedPolicy(store, arn)) !== undefined) return;
  throw new AppError('NoSuchEntity', { message: `Policy ${arn} does not exist or is not attachable.` });
}

/** To be changed: nobody changes what is ready-made. Throws AccessDenied, NoSuchEntity, InvalidInput. */
export async function requireOwnPolicy(
  { store, caller }: ActionContext,
  { arn, action }: { arn: string; action: string },
): Promise<ManagedPolicyRecord> {
  if (isReadyMadeArn(arn)) {
    const message = `User: ${caller.principal.arn} is not authorized to perform: iam:${action} on resource: policy ${arn}`;
    throw new AppError('AccessDenied', { message });
  }
  const { arn: _, ...policy } = await requireManagedPolicy(store, arn);
  return { kind: 'policy', ...policy };
}

/** The text of a version; undefined: there is no such version. */
export async function findVersionText(
  store: IdentityStore,
  { arn, name }: Pick<ManagedPolicy, 'arn' | 'name'>,
  number: number,
): Promise<string | undefined> {
  if (isReadyMadeArn(arn)) return number === 1 ? findReadyMadePolicy(arn)?.text : undefined;
  const version = await store.find('policy-version', identityKeys.policyVersion(name, number));
  return version?.text;
}

export function arnOfPolicy({ accountId }: IdentityStore, policy: { path: string; name: string }): string {
  return identityArn(accountId, 'policy', policy);
}

/** What policies judge where a managed policy is acted on. */
export async function policyTarget(
  { store }: ActionContext,
  arn: string,
): Promise<AccessTarget & { readonly resourceTags: readonly Tag[] }> {
  const policy = await findManagedPolicy(store, arn);
  return { resource: arn, resourceTags: policy?.tags ?? [] };
}

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

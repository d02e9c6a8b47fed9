// Managed policies by their ARNs: an account's own, and the ready-made ones. Who has which: src/accounts/policy-uses.ts.

import type { IdentityStore } from '../../accounts/identity-store.ts';
import {
  findReadyMadePolicy,
  isReadyMadeArn,
  READY_MADE_SINCE_MS,
} from '../../policy/documents/ready-made-policies.ts';
import { AppError } from '../../types/errors.ts';
import { identityKeys, type ManagedPolicyRecord } from '../../types/records/identity-records.ts';
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

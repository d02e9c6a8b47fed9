// The policies that a simulation goes by: documents that the request gives, and those of a user, group or role. Each has the name
// under which the answer shows its statements. What waits for its turn has their texts alone: compiled, a policy takes fifty times as
// much memory as its text.

import type { IdentityStore } from '../../accounts/identity-store.ts';
import type { Steps } from '../../base/async/steps.ts';
import {
  type CompiledPolicy,
  type CompileOutcome,
  compileInSteps,
  compileStoredInSteps,
  compileStoredPolicy,
} from '../../policy/documents/compile-policy.ts';
import { isReadyMadeArn } from '../../policy/documents/ready-made-policies.ts';
import type { NamedPolicy } from '../../policy/evaluate.ts';
import { AppError } from '../../types/errors.ts';
import type { HolderKind } from '../../types/records/identity-records.ts';
import { groupsOf } from './groups.ts';
import { findManagedPolicy, findVersionText, parsePolicyArn } from './managed-policies.ts';
import { HOLDER_KINDS, type PolicyHolder, requireHolder } from './policy-holders.ts';

/** As the answer says where it is from. */
export type SourceType = 'IAM Policy' | 'Resource Policy' | 'IAM Permissions Boundary Policy';

export interface SourcePolicy extends NamedPolicy {
  readonly text: string;
  readonly sourceType: SourceType;
}

/** One that is stored, not compiled yet. */
export type StoredPolicy = Omit<SourcePolicy, 'policy'>;

export interface PrincipalPolicies {
  readonly holder: PolicyHolder;
  readonly identity: readonly StoredPolicy[];
  readonly boundary: StoredPolicy | undefined;
}

/** What a request leaves out of a principal's policies. */
export interface Exclusion {
  readonly PolicyType: 'inline' | 'aws-managed' | 'user-managed' | 'permission-boundary';
  readonly PolicyArn?: string | undefined;
  readonly InlinePolicyIdentifier?:
    | { readonly PolicyName: string; readonly AttachmentType: HolderKind; readonly AttachmentName: string }
    | undefined;
}

const HOLDER_ARN = /^arn:aws:iam::(\d{12}):(user|group|role)(\/(?:[\x21-\x7e]+\/)?)([\w+=,.@-]{1,128})$/;

/** Documents of a request: `PolicyInputList.1` and so on. Throws InvalidInput with the place. */
export function* givenPolicies(
  parameter: string,
  documents: readonly string[],
  type: 'identity' | 'boundary',
): Steps<SourcePolicy[]> {
  const sourceType = type === 'identity' ? 'IAM Policy' : 'IAM Permissions Boundary Policy';
  const given: SourcePolicy[] = [];
  for (const [at, text] of documents.entries()) {
    const name = `${parameter}.${at + 1}`;
    const policy = requireCompiled(name, yield* compileInSteps(text, { type }));
    given.push({ name, text, sourceType, policy });
  }
  return given;
}

/** Throws InvalidInput. */
export function* givenResourcePolicy(text: string): Steps<SourcePolicy> {
  // No bucket is asked for: the policy may be of any.
  const policy = requireCompiled('ResourcePolicy', yield* compileStoredInSteps(text, 'resource'));
  return { name: 'ResourcePolicy', text, sourceType: 'Resource Policy', policy };
}

function requireCompiled(name: string, outcome: CompileOutcome): CompiledPolicy {
  if (outcome.kind === 'compiled') return outcome.policy;
  throw new AppError('InvalidInput', { message: `${name}: ${outcome.message} (${outcome.place})` });
}

/** Throws InvalidInput, NoSuchEntity. */
export async function policiesOfPrincipal(
  store: IdentityStore,
  arn: string,
  exclusions: readonly Exclusion[] = [],
): Promise<PrincipalPolicies> {
  const holder = await requireHolderOfArn(store, arn);
  const groups = holder.kind === 'user' ? await groupsOf(store, holder) : [];
  const identity: StoredPolicy[] = [];
  for (const each of [holder, ...groups]) identity.push(...(await policiesOf(store, each, exclusions)));
  const limit = holder.kind === 'group' ? undefined : holder.boundary;
  const isLimited =
    limit !== undefined && !exclusions.some(({ PolicyType }) => PolicyType === 'permission-boundary');
  return {
    holder,
    identity,
    boundary: isLimited ? await managedPolicy(store, limit, 'IAM Permissions Boundary Policy') : undefined,
  };
}

async function requireHolderOfArn(store: IdentityStore, arn: string): Promise<PolicyHolder> {
  const [whole, accountId, type, path, name = ''] = HOLDER_ARN.exec(arn) ?? [];
  const kind = HOLDER_KINDS.find((each) => each === type);
  if (whole === undefined || kind === undefined || accountId !== store.accountId) {
    throw new AppError('InvalidInput', {
      message: `Invalid Entity Arn: ${arn} does not clearly define entity type and name.`,
    });
  }
  const holder = await requireHolder(store, { kind, name });
  if (holder.path === path && holder.name === name) return holder;
  throw new AppError('NoSuchEntity', { message: `The ${kind} with name ${name} cannot be found.` });
}

async function policiesOf(
  store: IdentityStore,
  holder: PolicyHolder,
  exclusions: readonly Exclusion[],
): Promise<StoredPolicy[]> {
  const found: StoredPolicy[] = [];
  for (const { name, text } of holder.inlinePolicies) {
    if (exclusions.some((exclusion) => excludesInline(exclusion, holder, name))) continue;
    found.push({ name: `${holder.kind}_${holder.name}_${name}`, text, sourceType: 'IAM Policy' });
  }
  for (const arn of holder.attachedPolicies) {
    const type = isReadyMadeArn(arn) ? 'aws-managed' : 'user-managed';
    if (exclusions.some(({ PolicyType, PolicyArn }) => PolicyType === type && PolicyArn === arn)) continue;
    found.push(await managedPolicy(store, arn, 'IAM Policy'));
  }
  return found;
}

function excludesInline(
  { PolicyType, InlinePolicyIdentifier: inline }: Exclusion,
  holder: PolicyHolder,
  name: string,
): boolean {
  return (
    PolicyType === 'inline' &&
    inline?.PolicyName === name &&
    inline.AttachmentType === holder.kind &&
    inline.AttachmentName.toLowerCase() === holder.name.toLowerCase()
  );
}

/** One that is gone allows nothing. */
async function managedPolicy(
  store: IdentityStore,
  arn: string,
  sourceType: SourceType,
): Promise<StoredPolicy> {
  const policy = await findManagedPolicy(store, arn);
  const text = policy && (await findVersionText(store, policy, policy.defaultVersion));
  return { name: parsePolicyArn(arn).name, text: text ?? NOTHING, sourceType };
}

const NOTHING = '{"Version":"2012-10-17","Statement":{"Effect":"Deny","Action":"*","Resource":"*"}}';

/** What cannot be read any more denies everything, as where requests are judged. */
export function* storedPolicies(policies: readonly StoredPolicy[]): Steps<SourcePolicy[]> {
  const compiled: SourcePolicy[] = [];
  for (const { name, text, sourceType } of policies) {
    const type = sourceType === 'IAM Policy' ? 'identity' : 'boundary';
    const outcome = yield* compileStoredInSteps(text, type);
    if (outcome.kind === 'compiled') compiled.push({ name, text, sourceType, policy: outcome.policy });
    else {
      const policy = requireCompiled(name, compileStoredPolicy(NOTHING, type));
      compiled.push({ name, text: NOTHING, sourceType, policy });
    }
  }
  return compiled;
}

// holdfast policy create, list, show, update, attach, detach, put, remove, delete: managed policies, which many may have, and
// inline policies of one user, group or role.

import { Refusal } from '../../base/refusal.ts';
import { childOf, type XmlElement } from '../../base/xml/parse-xml.ts';
import { type CliContext, type ConnectOptions, connectIdentity } from '../connect.ts';
import { formatAnswer } from '../format.ts';
import { documentOf, field, jsonOf, printDone, printFacts, printList, requireElement } from './answers.ts';
import { describeHolder, type Holder, type HolderOptions, holderOf, nameOf } from './holders.ts';
import { type PolicySource, readPolicy } from './policy-source.ts';
import type { QueryClient } from './query-client.ts';

/** As AWS has it. */
const VERSIONS_MAX = 5;

export type SourceOptions = ConnectOptions & PolicySource;

export async function createPolicy(
  context: CliContext,
  name: string,
  options: SourceOptions & { path?: string; description?: string },
): Promise<void> {
  const PolicyDocument = await readPolicy(options);
  const { query } = await connectIdentity(context, options);
  const made = await query.iam('CreatePolicy', {
    PolicyName: name,
    PolicyDocument,
    Path: options.path,
    Description: options.description,
  });
  const policy = requireElement(made, 'Policy');
  printFacts({ context, options }, jsonOf(policy) as object, factsOf(policy));
}

export async function listPolicies(
  context: CliContext,
  options: ConnectOptions & { all?: boolean },
): Promise<void> {
  const { query } = await connectIdentity(context, options);
  const Scope = options.all === true ? 'All' : 'Local';
  printList({ context, options }, await query.list('ListPolicies', 'Policies', { Scope }), {
    NAME: 'PolicyName',
    VERSION: 'DefaultVersionId',
    ATTACHED: 'AttachmentCount',
    UPDATED: 'UpdateDate',
    ARN: 'Arn',
  });
}

/** A managed one, or an inline one of the user, group or role that options name. */
export async function showPolicy(
  context: CliContext,
  policy: string,
  options: ConnectOptions & HolderOptions & { version?: string },
): Promise<void> {
  const { query } = await connectIdentity(context, options);
  const { user, group, role } = options;
  if (user !== undefined || group !== undefined || role !== undefined) {
    const holder = holderOf(options);
    const of = { ...nameOf(holder), PolicyName: policy };
    const found = await query.iam(`Get${holder.kind}Policy`, of);
    const print = () => documentOf(field(found, 'PolicyDocument'));
    context.print(formatAnswer(options, jsonOf(found) as object, print));
    return;
  }
  const PolicyArn = await findArn(query, policy);
  const shown = requireElement(await query.iam('GetPolicy', { PolicyArn }), 'Policy');
  const VersionId = options.version ?? field(shown, 'DefaultVersionId');
  const found = await query.iam('GetPolicyVersion', { PolicyArn, VersionId });
  const version = requireElement(found, 'PolicyVersion');
  const answer = { Policy: jsonOf(shown), PolicyVersion: jsonOf(version) };
  printFacts({ context, options }, answer, [
    ...factsOf(shown),
    ['shown', `${VersionId}, of ${field(version, 'CreateDate')}`],
  ]);
  if (options.json !== true) context.print(documentOf(field(version, 'Document')));
}

/** A new version becomes the one that counts; the oldest of five goes. */
export async function updatePolicy(
  context: CliContext,
  policy: string,
  options: SourceOptions,
): Promise<void> {
  const PolicyDocument = await readPolicy(options);
  const { query } = await connectIdentity(context, options);
  const PolicyArn = await findArn(query, policy);
  const versions = await query.list('ListPolicyVersions', 'Versions', { PolicyArn });
  if (versions.length >= VERSIONS_MAX) {
    const oldest = versions
      .filter((version) => field(version, 'IsDefaultVersion') !== 'true')
      .map((version) => field(version, 'VersionId'))
      .sort((a, b) => Number(a.slice(1)) - Number(b.slice(1)))[0];
    await query.iam('DeletePolicyVersion', { PolicyArn, VersionId: oldest });
  }
  const made = await query.iam('CreatePolicyVersion', { PolicyArn, PolicyDocument, SetAsDefault: true });
  const version = requireElement(made, 'PolicyVersion');
  printFacts({ context, options }, jsonOf(version) as object, [
    ['ARN', PolicyArn],
    ['version', field(version, 'VersionId')],
  ]);
}

export async function attachPolicy(
  context: CliContext,
  policy: string,
  options: ConnectOptions & HolderOptions,
): Promise<void> {
  await changeAttachment(context, { policy, verb: 'Attach' }, options);
}

export async function detachPolicy(
  context: CliContext,
  policy: string,
  options: ConnectOptions & HolderOptions,
): Promise<void> {
  await changeAttachment(context, { policy, verb: 'Detach' }, options);
}

async function changeAttachment(
  context: CliContext,
  { policy, verb }: { policy: string; verb: 'Attach' | 'Detach' },
  options: ConnectOptions & HolderOptions,
): Promise<void> {
  const holder = holderOf(options);
  const { query } = await connectIdentity(context, options);
  const PolicyArn = await findArn(query, policy);
  await query.iam(`${verb}${holder.kind}Policy`, { ...nameOf(holder), PolicyArn });
  const done = verb === 'Attach' ? 'is attached to' : 'is detached from';
  printDone({ context, options }, `Policy ${PolicyArn} ${done} ${describeHolder(holder)}.`);
}

/** An inline policy; one of the same name is replaced. */
export async function putPolicy(
  context: CliContext,
  name: string,
  options: SourceOptions & HolderOptions,
): Promise<void> {
  const holder = holderOf(options);
  const PolicyDocument = await readPolicy(options);
  const { query } = await connectIdentity(context, options);
  await query.iam(`Put${holder.kind}Policy`, { ...nameOf(holder), PolicyName: name, PolicyDocument });
  printDone({ context, options }, `Policy ${name} is of ${describeHolder(holder)}.`);
}

export async function removePolicy(
  context: CliContext,
  name: string,
  options: ConnectOptions & HolderOptions,
): Promise<void> {
  const holder = holderOf(options);
  const { query } = await connectIdentity(context, options);
  await query.iam(`Delete${holder.kind}Policy`, { ...nameOf(holder), PolicyName: name });
  printDone({ context, options }, `Policy ${name} is removed from ${describeHolder(holder)}.`);
}

export async function deletePolicy(
  context: CliContext,
  policy: string,
  options: ConnectOptions & { force?: boolean },
): Promise<void> {
  const { query } = await connectIdentity(context, options);
  const PolicyArn = await findArn(query, policy);
  if (options.force === true) {
    for (const holder of await holdersOf(query, PolicyArn))
      await query.iam(`Detach${holder.kind}Policy`, { ...nameOf(holder), PolicyArn });
    for (const version of await query.list('ListPolicyVersions', 'Versions', { PolicyArn })) {
      if (field(version, 'IsDefaultVersion') === 'true') continue;
      await query.iam('DeletePolicyVersion', { PolicyArn, VersionId: field(version, 'VersionId') });
    }
  }
  await query.iam('DeletePolicy', { PolicyArn });
  printDone({ context, options }, `Policy ${PolicyArn} is deleted.`);
}

/** Whom it is attached to. */
async function holdersOf(query: QueryClient, PolicyArn: string): Promise<Holder[]> {
  const found: Holder[] = [];
  for (const kind of ['User', 'Group', 'Role'] as const) {
    const members = await query.list('ListEntitiesForPolicy', `Policy${kind}s`, {
      PolicyArn,
      EntityFilter: kind,
      PolicyUsageFilter: 'PermissionsPolicy',
    });
    found.push(...members.map((member) => ({ kind, name: field(member, `${kind}Name`) })));
  }
  return found;
}

/** An ARN as it is; a name among the account's own policies, then among the ready-made ones. */
async function findArn(query: QueryClient, policy: string): Promise<string> {
  if (policy.startsWith('arn:')) return policy;
  const all = await query.list('ListPolicies', 'Policies', { Scope: 'All' });
  const named = all.filter((each) => field(each, 'PolicyName') === policy).map((each) => field(each, 'Arn'));
  const found = named.find((arn) => !arn.startsWith('arn:aws:iam::aws:')) ?? named[0];
  if (found === undefined) throw new Refusal(`there is no managed policy ${policy}`);
  return found;
}

function factsOf(policy: XmlElement): [string, string][] {
  return [
    ['name', field(policy, 'PolicyName')],
    ['ARN', field(policy, 'Arn')],
    ['version', field(policy, 'DefaultVersionId')],
    ['attached to', field(policy, 'AttachmentCount')],
    ['description', childOf(policy, 'Description')?.text ?? ''],
  ];
}

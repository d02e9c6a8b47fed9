// Managed policies of an account, with their versions and tags, and the ready-made ones, which can be looked at and put on.

import type { IdentityStore } from '../../accounts/identity-store.ts';
import { mintIdentityId } from '../../accounts/mint-keys.ts';
import { usageOf, usagesOf } from '../../accounts/policy-uses.ts';
import { must } from '../../base/assert.ts';
import { xmlElement, xmlText } from '../../base/xml/write-xml.ts';
import { hasRoom, POLICY_SIZES } from '../../policy/documents/compile-policy.ts';
import { READY_MADE_POLICIES } from '../../policy/documents/ready-made-policies.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import {
  type HolderKind,
  identityKeys,
  type ManagedPolicyRecord,
  type PolicyUsageRecord,
} from '../../types/records/identity-records.ts';
import { type ActionContext, ANY_RESOURCE, defineIamAction } from './iam-action.ts';
import {
  checkTags,
  mergeTags,
  paging,
  pathPrefix,
  policyArn,
  policyName,
  removeTags,
  tagKeys,
  tags,
} from './identity-parameters.ts';
import { pageEndXml, pageOf, pageOfRows, pageOfSections, pageXml, type Section } from './list-pages.ts';
import {
  arnOfPolicy,
  findVersionText,
  type ManagedPolicy,
  policyPath,
  policyTarget,
  readyMade,
  requireManagedPolicy,
  requireOwnPolicy,
} from './managed-policies.ts';
import { boolean, choice, orElse, required, text } from './parameter-rules.ts';
import { encodeDocument, policyDocument, requireDocument } from './policy-documents.ts';
import { HOLDER_LABELS, type PolicyHolder } from './policy-holders.ts';
import { xmlMembers, xmlTime } from './query-protocol.ts';
import type { QueryAction } from './query-service.ts';
import { tagsXml } from './users.ts';

const arnOfRequest = required(policyArn);
const versionId = required(text({ charactersMax: 64, pattern: /^v[1-9][0-9]*(\.[A-Za-z0-9-]*)?$/ }));
/** AWS takes everything; but no parser of XML takes some of it, and nobody could read the lists that show it. */
const description = text({
  charactersMin: 0,
  charactersMax: 1000,
  pattern: /^[\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]*$/u,
});
const usageFilter = choice(['PermissionsPolicy', 'PermissionsBoundary']);

async function policyTargets({ PolicyArn }: { PolicyArn: string }, context: ActionContext) {
  return [await policyTarget(context, PolicyArn)];
}

/** Throws MalformedPolicyDocument, LimitExceeded. */
function requireManagedDocument(document: string): void {
  requireDocument(document, 'identity');
  const max = POLICY_SIZES.managedCharactersMax;
  if (hasRoom(document, max)) return;
  throw new AppError('LimitExceeded', { message: `Cannot exceed quota for PolicySize: ${max}` });
}

/** `isWhole`: with description and tags, which lists leave out. */
export function policyXml(
  policy: ManagedPolicy,
  usage: PolicyUsageRecord,
  { isWhole }: { isWhole: boolean },
): string {
  return [
    xmlText('PolicyName', policy.name),
    xmlText('PolicyId', policy.id),
    xmlText('Arn', policy.arn),
    xmlText('Path', policy.path),
    xmlText('DefaultVersionId', `v${policy.defaultVersion}`),
    xmlText('AttachmentCount', usage.attachedCount),
    xmlText('PermissionsBoundaryUsageCount', usage.boundedCount),
    xmlText('IsAttachable', true),
    ...(isWhole ? [xmlText('Description', policy.description)] : []),
    xmlTime('CreateDate', policy.createdAtMs),
    xmlTime('UpdateDate', policy.updatedAtMs),
    ...(isWhole && policy.tags.length > 0 ? [tagsXml(policy.tags)] : []),
  ].join('');
}

/** `text`: absent in lists. */
export function policyVersionXml(
  { defaultVersion }: Pick<ManagedPolicy, 'defaultVersion'>,
  { number, createdAtMs }: ManagedPolicy['versions'][number],
  document?: string,
): string {
  return [
    xmlText('Document', document && encodeDocument(document)),
    xmlText('VersionId', `v${number}`),
    xmlText('IsDefaultVersion', number === defaultVersion),
    xmlTime('CreateDate', createdAtMs),
  ].join('');
}

const createPolicy = defineIamAction({
  name: 'CreatePolicy',
  parameters: {
    PolicyName: required(policyName),
    Path: policyPath,
    PolicyDocument: required(policyDocument),
    Description: description,
    Tags: tags,
  },
  access: ({ PolicyName: name, Path: path, Tags }, { store }) => [
    { resource: arnOfPolicy(store, { path, name }), requestTags: Tags },
  ],
  async run({ PolicyName: name, Path: path, PolicyDocument, Description, Tags = [] }, context) {
    const { store, nowMs, deps } = context;
    requireManagedDocument(PolicyDocument);
    checkTags(Tags);
    if ((await store.find('policy', identityKeys.policy(name))) !== undefined) {
      const message = `A policy called ${name} already exists. Duplicate names are not allowed.`;
      throw new AppError('EntityAlreadyExists', { message });
    }
    await store.count('policy', { add: 1, max: LIMITS.managedPoliciesMax });
    const policy: ManagedPolicyRecord = {
      kind: 'policy',
      id: mintIdentityId(deps.random, 'ANPA'),
      name,
      path,
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
      tags: Tags,
      versions: [{ number: 1, createdAtMs: nowMs }],
      defaultVersion: 1,
      nextVersion: 2,
      ...(Description && { description: Description }),
    };
    store.putUnseen(identityKeys.policy(name), policy);
    store.putUnseen(identityKeys.policyVersion(name, 1), { kind: 'policy-version', text: PolicyDocument });
    const arn = arnOfPolicy(store, policy);
    return xmlElement('Policy', policyXml({ ...policy, arn }, await usageOf(store, arn), { isWhole: true }));
  },
});

const getPolicy = defineIamAction({
  name: 'GetPolicy',
  parameters: { PolicyArn: arnOfRequest },
  access: policyTargets,
  async run({ PolicyArn: arn }, { store }) {
    const policy = await requireManagedPolicy(store, arn);
    return xmlElement('Policy', policyXml(policy, await usageOf(store, arn), { isWhole: true }));
  },
});

interface Used {
  readonly policy: ManagedPolicy;
  readonly usage: PolicyUsageRecord;
}

export async function withUsage(store: IdentityStore, policies: readonly ManagedPolicy[]): Promise<Used[]> {
  const usages = await usagesOf(
    store,
    policies.map(({ arn }) => arn),
  );
  return policies.map((policy, at) => ({ policy, usage: must(usages[at], 'one for each') }));
}

function charactersOfPolicy({ description = '', tags }: ManagedPolicy): number {
  return tags.reduce((count, { key, value }) => count + key.length + value.length, description.length);
}

interface PolicySection extends Section<Used> {
  /** Where the list goes on behind a policy. */
  keyOf(policy: ManagedPolicy): string;
}

/** The account's own policies. `withTags`: a policy may have 20 KB of them. */
export function ownPolicies(
  store: IdentityStore,
  isShown: (used: Used) => boolean,
  { withTags }: { withTags: boolean },
): PolicySection {
  const prefix = identityKeys.policy('');
  return {
    prefix,
    keyOf: ({ name }) => identityKeys.policy(name),
    read: (page) =>
      pageOfRows(
        store,
        {
          kind: 'policy',
          prefix,
          async show(rows) {
            const policies = rows.map(({ record }) => ({
              ...record,
              tags: withTags ? record.tags : [],
              arn: arnOfPolicy(store, record),
            }));
            const used = await withUsage(store, policies);
            return used.filter(isShown).map((item) => ({ key: identityKeys.policy(item.policy.name), item }));
          },
          charactersOf: ({ policy }) => charactersOfPolicy(policy),
        },
        page,
      ),
  };
}

export function readyMadePolicies(store: IdentityStore, isShown: (used: Used) => boolean): PolicySection {
  const prefix = 'ready-made/';
  const keyOf = ({ name }: ManagedPolicy) => prefix + name;
  return {
    prefix,
    keyOf,
    async read(page) {
      const policies = READY_MADE_POLICIES.flatMap(({ arn }) => readyMade(arn) ?? []);
      const used = await withUsage(store, policies);
      return pageOf(used.filter(isShown), ({ policy }) => keyOf(policy), page);
    },
  };
}

const listPolicies = defineIamAction({
  name: 'ListPolicies',
  parameters: {
    Scope: orElse(choice(['All', 'AWS', 'Local']), 'All'),
    OnlyAttached: orElse(boolean, false),
    PathPrefix: policyPath,
    PolicyUsageFilter: usageFilter,
    ...paging,
  },
  access: () => [ANY_RESOURCE],
  async run({ Scope, OnlyAttached, PathPrefix, PolicyUsageFilter, ...page }, { store }) {
    const isShown = ({ policy, usage }: Used) => {
      if (!policy.path.startsWith(PathPrefix)) return false;
      if (PolicyUsageFilter === 'PermissionsBoundary') return usage.boundedCount > 0;
      return usage.attachedCount > 0 || !(OnlyAttached || PolicyUsageFilter === 'PermissionsPolicy');
    };
    const sections = [
      ...(Scope === 'AWS' ? [] : [ownPolicies(store, isShown, { withTags: false })]),
      ...(Scope === 'Local' ? [] : [readyMadePolicies(store, isShown)]),
    ];
    const { items, next } = await pageOfSections(sections, page);
    const members = items.map(({ policy, usage }) => policyXml(policy, usage, { isWhole: false }));
    return pageXml('Policies', members, next);
  },
});

const deletePolicy = defineIamAction({
  name: 'DeletePolicy',
  parameters: { PolicyArn: arnOfRequest },
  access: policyTargets,
  async run({ PolicyArn: arn }, context) {
    const { store } = context;
    const { name, versions } = await requireOwnPolicy(context, { arn, action: 'DeletePolicy' });
    const usage = await usageOf(store, arn);
    if (usage.attachedCount + usage.boundedCount > 0) {
      throw new AppError('DeleteConflict', { message: 'Cannot delete a policy attached to entities.' });
    }
    if (versions.length > 1) {
      throw new AppError('DeleteConflict', {
        message:
          "This policy has more than one version. Before you delete a policy, you must delete the policy's versions. The default version is deleted with the policy.",
      });
    }
    store.remove(identityKeys.policy(name));
    for (const { number } of versions) store.removeUnseen(identityKeys.policyVersion(name, number));
    await store.count('policy', { add: -1 });
    return undefined;
  },
});

const createPolicyVersion = defineIamAction({
  name: 'CreatePolicyVersion',
  parameters: {
    PolicyArn: arnOfRequest,
    PolicyDocument: required(policyDocument),
    SetAsDefault: orElse(boolean, false),
  },
  access: policyTargets,
  async run({ PolicyArn: arn, PolicyDocument, SetAsDefault }, context) {
    const { store, nowMs } = context;
    const policy = await requireOwnPolicy(context, { arn, action: 'CreatePolicyVersion' });
    requireManagedDocument(PolicyDocument);
    if (policy.versions.length >= LIMITS.policyVersionsMax) {
      throw new AppError('LimitExceeded', {
        message: `A managed policy can have up to ${LIMITS.policyVersionsMax} versions. Before you create a new version, you must delete an existing version.`,
      });
    }
    const version = { number: policy.nextVersion, createdAtMs: nowMs };
    const changed: ManagedPolicyRecord = {
      ...policy,
      versions: [...policy.versions, version],
      nextVersion: version.number + 1,
      ...(SetAsDefault && { defaultVersion: version.number, updatedAtMs: nowMs }),
    };
    const { name } = policy;
    if (SetAsDefault) store.put(identityKeys.policy(name), changed);
    else store.putUnseen(identityKeys.policy(name), changed);
    const key = identityKeys.policyVersion(name, version.number);
    store.putUnseen(key, { kind: 'policy-version', text: PolicyDocument });
    return xmlElement('PolicyVersion', policyVersionXml(changed, version));
  },
});

/** Throws NoSuchEntity. */
function requireVersion(
  { arn, versions }: Pick<ManagedPolicy, 'arn' | 'versions'>,
  id: string,
): ManagedPolicy['versions'][number] {
  const version = versions.find(({ number }) => `v${number}` === id);
  if (version !== undefined) return version;
  const message = `Policy ${arn} version ${id} does not exist or is not attachable.`;
  throw new AppError('NoSuchEntity', { message });
}

const deletePolicyVersion = defineIamAction({
  name: 'DeletePolicyVersion',
  parameters: { PolicyArn: arnOfRequest, VersionId: versionId },
  access: policyTargets,
  async run({ PolicyArn: arn, VersionId }, context) {
    const { store } = context;
    const policy = await requireOwnPolicy(context, { arn, action: 'DeletePolicyVersion' });
    const { number } = requireVersion({ ...policy, arn }, VersionId);
    if (number === policy.defaultVersion) {
      throw new AppError('DeleteConflict', { message: 'Cannot delete the default version of a policy.' });
    }
    const versions = policy.versions.filter((version) => version.number !== number);
    store.putUnseen(identityKeys.policy(policy.name), { ...policy, versions });
    store.removeUnseen(identityKeys.policyVersion(policy.name, number));
    return undefined;
  },
});

const getPolicyVersion = defineIamAction({
  name: 'GetPolicyVersion',
  parameters: { PolicyArn: arnOfRequest, VersionId: versionId },
  access: policyTargets,
  async run({ PolicyArn: arn, VersionId }, { store }) {
    const policy = await requireManagedPolicy(store, arn);
    const version = requireVersion(policy, VersionId);
    const document = await findVersionText(store, policy, version.number);
    return xmlElement('PolicyVersion', policyVersionXml(policy, version, document));
  },
});

const listPolicyVersions = defineIamAction({
  name: 'ListPolicyVersions',
  parameters: { PolicyArn: arnOfRequest, ...paging },
  access: policyTargets,
  async run({ PolicyArn: arn, ...page }, { store }) {
    const policy = await requireManagedPolicy(store, arn);
    // The newest first, as AWS has them.
    const keyOf = ({ number }: { number: number }) => String(Number.MAX_SAFE_INTEGER - number);
    const { items, next } = pageOf(policy.versions, keyOf, page);
    const members = items.map((version) => policyVersionXml(policy, version));
    return pageXml('Versions', members, next);
  },
});

const setDefaultPolicyVersion = defineIamAction({
  name: 'SetDefaultPolicyVersion',
  parameters: { PolicyArn: arnOfRequest, VersionId: versionId },
  access: policyTargets,
  async run({ PolicyArn: arn, VersionId }, context) {
    const { store, nowMs } = context;
    const policy = await requireOwnPolicy(context, { arn, action: 'SetDefaultPolicyVersion' });
    const { number } = requireVersion({ ...policy, arn }, VersionId);
    store.put(identityKeys.policy(policy.name), { ...policy, defaultVersion: number, updatedAtMs: nowMs });
    return undefined;
  },
});

const tagPolicy = defineIamAction({
  name: 'TagPolicy',
  parameters: { PolicyArn: arnOfRequest, Tags: required(tags) },
  access: async ({ PolicyArn, Tags }, context) => [
    { ...(await policyTarget(context, PolicyArn)), requestTags: Tags },
  ],
  async run({ PolicyArn: arn, Tags }, context) {
    const policy = await requireOwnPolicy(context, { arn, action: 'TagPolicy' });
    const changed = { ...policy, tags: mergeTags(policy.tags, Tags) };
    context.store.putUnseen(identityKeys.policy(policy.name), changed);
    return undefined;
  },
});

const untagPolicy = defineIamAction({
  name: 'UntagPolicy',
  parameters: { PolicyArn: arnOfRequest, TagKeys: required(tagKeys) },
  access: async ({ PolicyArn, TagKeys }, context) => [
    { ...(await policyTarget(context, PolicyArn)), tagKeys: TagKeys },
  ],
  async run({ PolicyArn: arn, TagKeys }, context) {
    const policy = await requireOwnPolicy(context, { arn, action: 'UntagPolicy' });
    const changed = { ...policy, tags: removeTags(policy.tags, TagKeys) };
    context.store.putUnseen(identityKeys.policy(policy.name), changed);
    return undefined;
  },
});

const listPolicyTags = defineIamAction({
  name: 'ListPolicyTags',
  parameters: { PolicyArn: arnOfRequest, ...paging },
  access: policyTargets,
  async run({ PolicyArn: arn, ...page }, { store }) {
    const policy = await requireManagedPolicy(store, arn);
    const { items, next } = pageOf(policy.tags, ({ key }) => key, page);
    const members = items.map(({ key, value }) => xmlText('Key', key) + xmlText('Value', value));
    return pageXml('Tags', members, next);
  },
});

/** As AWS names what `EntityFilter` asks for. */
const ENTITY_FILTERS = ['User', 'Role', 'Group', 'LocalManagedPolicy', 'AWSManagedPolicy'] as const;

const listEntitiesForPolicy = defineIamAction({
  name: 'ListEntitiesForPolicy',
  parameters: {
    PolicyArn: arnOfRequest,
    EntityFilter: choice(ENTITY_FILTERS),
    PathPrefix: pathPrefix,
    PolicyUsageFilter: usageFilter,
    ...paging,
  },
  access: policyTargets,
  async run({ PolicyArn: arn, EntityFilter, PathPrefix, PolicyUsageFilter, ...page }, { store }) {
    await requireManagedPolicy(store, arn);
    const isShown = ({ kind, path }: ShownHolder) =>
      path.startsWith(PathPrefix) && (EntityFilter === undefined || EntityFilter === HOLDER_LABELS[kind]);
    const sections = [
      ...(PolicyUsageFilter === 'PermissionsBoundary' ? [] : [identityKeys.attached(arn, '', '')]),
      ...(PolicyUsageFilter === 'PermissionsPolicy' ? [] : [identityKeys.bounded(arn, '', '')]),
    ].map((prefix) => holdersOf(store, prefix, isShown));
    const { items, next } = await pageOfSections(sections, page);
    // Who has it in both ways is shown once.
    const holders = [...new Map(items.map((holder) => [holder.id, holder])).values()];
    const membersOf = (kind: HolderKind) =>
      holders
        .filter((holder) => holder.kind === kind)
        .map(
          ({ name, id }) =>
            xmlText(`${HOLDER_LABELS[kind]}Name`, name) + xmlText(`${HOLDER_LABELS[kind]}Id`, id),
        );
    return (
      xmlMembers('PolicyGroups', membersOf('group')) +
      xmlMembers('PolicyUsers', membersOf('user')) +
      xmlMembers('PolicyRoles', membersOf('role')) +
      pageEndXml(next)
    );
  },
});

type ShownHolder = Pick<PolicyHolder, 'kind' | 'id' | 'name' | 'path'>;

/** Those that an index of a policy leads to. */
function holdersOf(
  store: IdentityStore,
  prefix: string,
  isShown: (holder: ShownHolder) => boolean,
): Section<ShownHolder> {
  return {
    prefix,
    read: (page) =>
      pageOfRows(
        store,
        {
          kind: 'index',
          prefix,
          async show(indices) {
            const holders = await findHolders(
              store,
              indices.flatMap(({ record }) => record.to ?? []),
            );
            return indices.flatMap(({ key, record: { to } }) => {
              const item = to === undefined ? undefined : holders.get(to);
              return item !== undefined && isShown(item) ? [{ key, item }] : [];
            });
          },
          charactersOf: ({ name, path }) => name.length + path.length,
        },
        page,
      ),
  };
}

async function findHolders(
  store: IdentityStore,
  keys: readonly string[],
): Promise<ReadonlyMap<string, ShownHolder>> {
  const holders = new Map<string, ShownHolder>();
  for (const kind of ['user', 'group', 'role'] as const) {
    const ofKind = keys.filter((key) => key.startsWith(`${kind}/`));
    const records = await store.lookAll(kind, ofKind);
    for (const [at, key] of ofKind.entries()) {
      const record = records[at];
      if (record === undefined) continue;
      const { id, name, path } = record;
      holders.set(key, { kind, id, name, path });
    }
  }
  return holders;
}

export const POLICY_ACTIONS: readonly QueryAction[] = [
  createPolicy,
  getPolicy,
  listPolicies,
  deletePolicy,
  createPolicyVersion,
  deletePolicyVersion,
  getPolicyVersion,
  listPolicyVersions,
  setDefaultPolicyVersion,
  tagPolicy,
  untagPolicy,
  listPolicyTags,
  listEntitiesForPolicy,
];

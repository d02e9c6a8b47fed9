// Roles: who may assume them, for how long, their paths, tags and boundaries.

import type { IdentityStore } from '../../accounts/identity-store.ts';
import { mintIdentityId } from '../../accounts/mint-keys.ts';
import { xmlElement, xmlText } from '../../base/xml/write-xml.ts';
import { hasRoom, POLICY_SIZES } from '../../policy/documents/compile-policy.ts';
import { SYSTEM_SHARD } from '../../ports/metadata/port.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { identityKeys, type RoleRecord, type RoleUseRecord } from '../../types/records/identity-records.ts';
import { requireDone } from '../../types/require-done.ts';
import { findPrincipalIds } from '../auth/principal-ids.ts';
import { noteBoundary, requireBoundary } from './boundaries.ts';
import { type AccessTarget, type ActionContext, ANY_RESOURCE, defineIamAction } from './iam-action.ts';
import {
  checkTags,
  identityArn,
  mergeTags,
  paging,
  pathOrRoot,
  pathPrefix,
  policyArn,
  removeTags,
  roleName,
  tagKeys,
  tags,
} from './identity-parameters.ts';
import { listBelow, pageOf, pageOfRows, pageXml } from './list-pages.ts';
import { integer, required, text } from './parameter-rules.ts';
import { encodeDocument, policyDocument, requireDocument } from './policy-documents.ts';
import { holderTarget } from './policy-holders.ts';
import { xmlTime } from './query-protocol.ts';
import type { QueryAction } from './query-service.ts';
import { boundaryXml, tagsXml } from './users.ts';

const description = text({
  charactersMin: 0,
  charactersMax: 1000,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: AWS's pattern
  pattern: /^[\u0009\u000a\u000d\u0020-\u007e\u00a1-\u00ff]*$/,
});
const maxSessionDuration = integer({ min: 3600, max: 43_200 });

/** Throws NoSuchEntity. */
export async function requireRole(store: IdentityStore, name: string): Promise<RoleRecord> {
  const role = await store.find('role', identityKeys.role(name));
  if (role !== undefined) return role;
  throw new AppError('NoSuchEntity', { message: `The role with name ${name} cannot be found.` });
}

/** Throws MalformedPolicyDocument, LimitExceeded. */
async function takeTrustPolicy(
  { deps }: ActionContext,
  document: string,
): Promise<Pick<RoleRecord, 'trustPolicy' | 'trustedIds'>> {
  const policy = requireDocument(document, 'trust');
  const max = POLICY_SIZES.trustCharactersMax;
  if (!hasRoom(document, max))
    throw new AppError('LimitExceeded', { message: `Cannot exceed quota for ACLSizePerRole: ${max}` });
  const trustedIds = await findPrincipalIds(policy, async (accountId, keys) => {
    const query = { accountId, keys };
    return requireDone(await deps.metadata.query({ shard: SYSTEM_SHARD }, 'read-identities', query)).rows;
  });
  return { trustPolicy: document, ...(trustedIds && { trustedIds }) };
}

/** `isWhole`: with its tags and boundary, which lists leave out. */
function roleXml({ accountId }: IdentityStore, role: RoleRecord, { isWhole }: { isWhole: boolean }): string {
  return [
    xmlText('Path', role.path),
    xmlText('RoleName', role.name),
    xmlText('RoleId', role.id),
    xmlText('Arn', identityArn(accountId, 'role', role)),
    xmlTime('CreateDate', role.createdAtMs),
    xmlText('AssumeRolePolicyDocument', encodeDocument(role.trustPolicy)),
    xmlText('Description', role.description),
    xmlText('MaxSessionDuration', role.maxSessionSeconds),
    ...(isWhole && role.boundary !== undefined ? [boundaryXml(role.boundary)] : []),
    ...(isWhole && role.tags.length > 0 ? [tagsXml(role.tags)] : []),
  ].join('');
}

/** The role with when its sessions were used last. */
async function wholeRoleXml(store: IdentityStore, role: RoleRecord): Promise<string> {
  const use = await store.find('role-use', identityKeys.roleUse(role.id));
  return xmlElement('Role', roleXml(store, role, { isWhole: true }), lastUsedXml(use));
}

/** `use`: none is known. */
export function lastUsedXml(use: RoleUseRecord | undefined): string {
  if (use === undefined) return xmlElement('RoleLastUsed');
  return xmlElement('RoleLastUsed', xmlTime('LastUsedDate', use.atMs), xmlText('Region', use.region));
}

async function roleTargets({ RoleName: name }: { RoleName: string }, context: ActionContext) {
  return [await holderTarget(context, { kind: 'role', name })];
}

const createRole = defineIamAction({
  name: 'CreateRole',
  parameters: {
    RoleName: required(roleName),
    Path: pathOrRoot,
    AssumeRolePolicyDocument: required(policyDocument),
    Description: description,
    MaxSessionDuration: maxSessionDuration,
    PermissionsBoundary: policyArn,
    Tags: tags,
  },
  access: ({ RoleName: name, Path: path, PermissionsBoundary, Tags }, { store }): AccessTarget[] => [
    {
      resource: identityArn(store.accountId, 'role', { path, name }),
      requestTags: Tags,
      values: { 'iam:permissionsboundary': PermissionsBoundary },
    },
  ],
  async run(values, context) {
    const { RoleName: name, Path: path, PermissionsBoundary: boundary, Description, Tags = [] } = values;
    const { store, nowMs, deps } = context;
    const trust = await takeTrustPolicy(context, values.AssumeRolePolicyDocument);
    checkTags(Tags);
    const key = identityKeys.role(name);
    if ((await store.find('role', key)) !== undefined) {
      throw new AppError('EntityAlreadyExists', { message: `Role with name ${name} already exists.` });
    }
    if (boundary !== undefined) await requireBoundary(store, boundary);
    await store.count('role', { add: 1, max: LIMITS.rolesMax });
    const role: RoleRecord = {
      kind: 'role',
      id: mintIdentityId(deps.random, 'AROA'),
      name,
      path,
      createdAtMs: nowMs,
      ...trust,
      maxSessionSeconds: values.MaxSessionDuration ?? 3600,
      tags: Tags,
      inlinePolicies: [],
      attachedPolicies: [],
      ...(Description && { description: Description }),
      ...(boundary !== undefined && { boundary }),
    };
    store.putUnseen(key, role);
    store.putUnseen(identityKeys.id(role.id), { kind: 'index', to: key });
    await noteBoundary(store, { kind: 'role', name }, { after: boundary });
    return wholeRoleXml(store, role);
  },
});

const getRole = defineIamAction({
  name: 'GetRole',
  parameters: { RoleName: required(roleName) },
  access: roleTargets,
  async run({ RoleName }, { store }) {
    return wholeRoleXml(store, await requireRole(store, RoleName));
  },
});

const listRoles = defineIamAction({
  name: 'ListRoles',
  parameters: { PathPrefix: pathPrefix, ...paging },
  access: () => [ANY_RESOURCE],
  async run({ PathPrefix, ...page }, { store }) {
    const roles = listBelow({ kind: 'role', pathPrefix: PathPrefix }, (role) =>
      roleXml(store, role, { isWhole: false }),
    );
    const { items, next } = await pageOfRows(store, roles, page);
    return pageXml('Roles', items, next);
  },
});

const updateRole = defineIamAction({
  name: 'UpdateRole',
  parameters: {
    RoleName: required(roleName),
    Description: description,
    MaxSessionDuration: maxSessionDuration,
  },
  access: roleTargets,
  async run({ RoleName, Description, MaxSessionDuration }, { store }) {
    const role = await requireRole(store, RoleName);
    const maxSessionSeconds = MaxSessionDuration ?? role.maxSessionSeconds;
    store.put(identityKeys.role(RoleName), describe({ ...role, maxSessionSeconds }, Description));
    // AWS has an empty result here, which SDKs look for.
    return '';
  },
});

const updateRoleDescription = defineIamAction({
  name: 'UpdateRoleDescription',
  parameters: { RoleName: required(roleName), Description: required(description) },
  access: roleTargets,
  async run({ RoleName, Description }, { store }) {
    const role = describe(await requireRole(store, RoleName), Description);
    store.putUnseen(identityKeys.role(RoleName), role);
    return wholeRoleXml(store, role);
  },
});

/** undefined: as it was; an empty one removes it. */
function describe(role: RoleRecord, given: string | undefined): RoleRecord {
  if (given === undefined) return role;
  const { description: _, ...rest } = role;
  return given === '' ? rest : { ...rest, description: given };
}

const updateAssumeRolePolicy = defineIamAction({
  name: 'UpdateAssumeRolePolicy',
  parameters: { RoleName: required(roleName), PolicyDocument: required(policyDocument) },
  access: roleTargets,
  async run({ RoleName, PolicyDocument }, context) {
    const { store } = context;
    const { trustedIds: _, ...role } = await requireRole(store, RoleName);
    const trust = await takeTrustPolicy(context, PolicyDocument);
    store.put(identityKeys.role(RoleName), { ...role, ...trust });
    return undefined;
  },
});

const deleteRole = defineIamAction({
  name: 'DeleteRole',
  parameters: { RoleName: required(roleName) },
  access: roleTargets,
  async run({ RoleName }, { store }) {
    const { id, name, boundary, attachedPolicies, inlinePolicies } = await requireRole(store, RoleName);
    if (attachedPolicies.length > 0) {
      throw new AppError('DeleteConflict', {
        message: 'Cannot delete entity, must detach all policies first.',
      });
    }
    if (inlinePolicies.length > 0) {
      throw new AppError('DeleteConflict', { message: 'Cannot delete entity, must delete policies first.' });
    }
    store.remove(identityKeys.role(RoleName));
    store.removeUnseen(identityKeys.id(id));
    store.removeUnseen(identityKeys.roleUse(id));
    await noteBoundary(store, { kind: 'role', name }, { before: boundary });
    await store.count('role', { add: -1 });
    return undefined;
  },
});

const tagRole = defineIamAction({
  name: 'TagRole',
  parameters: { RoleName: required(roleName), Tags: required(tags) },
  async access(values, context) {
    const [target] = await roleTargets(values, context);
    return [{ ...target, requestTags: values.Tags } as AccessTarget];
  },
  async run({ RoleName, Tags }, { store }) {
    const role = await requireRole(store, RoleName);
    store.put(identityKeys.role(RoleName), { ...role, tags: mergeTags(role.tags, Tags) });
    return undefined;
  },
});

const untagRole = defineIamAction({
  name: 'UntagRole',
  parameters: { RoleName: required(roleName), TagKeys: required(tagKeys) },
  async access(values, context) {
    const [target] = await roleTargets(values, context);
    return [{ ...target, tagKeys: values.TagKeys } as AccessTarget];
  },
  async run({ RoleName, TagKeys }, { store }) {
    const role = await requireRole(store, RoleName);
    store.put(identityKeys.role(RoleName), { ...role, tags: removeTags(role.tags, TagKeys) });
    return undefined;
  },
});

const listRoleTags = defineIamAction({
  name: 'ListRoleTags',
  parameters: { RoleName: required(roleName), ...paging },
  access: roleTargets,
  async run({ RoleName, ...page }, { store }) {
    const role = await requireRole(store, RoleName);
    const { items, next } = pageOf(role.tags, ({ key }) => key, page);
    return pageXml(
      'Tags',
      items.map(({ key, value }) => xmlText('Key', key) + xmlText('Value', value)),
      next,
    );
  },
});

export const ROLE_ACTIONS: readonly QueryAction[] = [
  createRole,
  getRole,
  listRoles,
  updateRole,
  updateRoleDescription,
  updateAssumeRolePolicy,
  deleteRole,
  tagRole,
  untagRole,
  listRoleTags,
];

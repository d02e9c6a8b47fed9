// Groups, and which users are in them. Users name their groups by id, so that a group may get another name.

import type { IdentityStore } from '../../accounts/identity-store.ts';
import { mintIdentityId } from '../../accounts/mint-keys.ts';
import { renameUses } from '../../accounts/policy-uses.ts';
import { xmlElement, xmlText } from '../../base/xml/write-xml.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { type GroupRecord, identityKeys, type UserRecord } from '../../types/records/identity-records.ts';
import { type AccessTarget, type ActionContext, ANY_RESOURCE, defineIamAction } from './iam-action.ts';
import {
  groupName,
  identityArn,
  newPath,
  paging,
  pathOrRoot,
  pathPrefix,
  userName,
} from './identity-parameters.ts';
import { listBelow, pageOf, pageOfRows, pageXml } from './list-pages.ts';
import { required } from './parameter-rules.ts';
import { xmlTime } from './query-protocol.ts';
import { deleteConflict, requireUser, userTarget, userXml } from './users.ts';

/** What policies judge where a group is acted on. One that does not exist has no path. */
async function groupTarget({ store }: ActionContext, name: string): Promise<AccessTarget> {
  const group = await store.find('group', identityKeys.group(name));
  return { resource: identityArn(store.accountId, 'group', group ?? { path: '/', name }) };
}

/** Throws NoSuchEntity. */
async function requireGroup(store: IdentityStore, name: string): Promise<GroupRecord> {
  const group = await store.find('group', identityKeys.group(name));
  if (group !== undefined) return group;
  throw new AppError('NoSuchEntity', { message: `The group with name ${name} cannot be found.` });
}

function groupExists(name: string): AppError {
  return new AppError('EntityAlreadyExists', { message: `Group with name ${name} already exists.` });
}

function groupXml({ accountId }: IdentityStore, group: GroupRecord): string {
  return [
    xmlText('Path', group.path),
    xmlText('GroupName', group.name),
    xmlText('GroupId', group.id),
    xmlText('Arn', identityArn(accountId, 'group', group)),
    xmlTime('CreateDate', group.createdAtMs),
  ].join('');
}

/** The groups of a user, in the order of their ids. */
export async function groupsOf(
  store: IdentityStore,
  { groups: ids }: Pick<UserRecord, 'groups'>,
): Promise<GroupRecord[]> {
  const indices = await store.findAll('index', ids.map(identityKeys.id));
  const groups = await store.findAll(
    'group',
    indices.flatMap((index) => index?.to ?? []),
  );
  return groups.filter((group) => group !== undefined);
}

const createGroup = defineIamAction({
  name: 'CreateGroup',
  parameters: { GroupName: required(groupName), Path: pathOrRoot },
  access: ({ GroupName: name, Path: path }, { store }) => [
    { resource: identityArn(store.accountId, 'group', { path, name }) },
  ],
  async run({ GroupName: name, Path: path }, { store, nowMs, deps }) {
    if ((await store.find('group', identityKeys.group(name))) !== undefined) throw groupExists(name);
    await store.count('group', { add: 1, max: LIMITS.groupsMax });
    const id = mintIdentityId(deps.random, 'AGPA');
    const group: GroupRecord = {
      kind: 'group',
      id,
      name,
      path,
      createdAtMs: nowMs,
      inlinePolicies: [],
      attachedPolicies: [],
    };
    store.putUnseen(identityKeys.group(name), group);
    store.putUnseen(identityKeys.id(id), { kind: 'index', to: identityKeys.group(name) });
    return xmlElement('Group', groupXml(store, group));
  },
});

const getGroup = defineIamAction({
  name: 'GetGroup',
  parameters: { GroupName: required(groupName), ...paging },
  access: async ({ GroupName }, context) => [await groupTarget(context, GroupName)],
  async run({ GroupName, ...paged }, { store }) {
    const group = await requireGroup(store, GroupName);
    const { items, next } = await pageOfRows(
      store,
      {
        kind: 'index',
        prefix: identityKeys.member(group.id, ''),
        async show(rows) {
          const users = await store.lookAll(
            'user',
            rows.map(({ record }) => record.to ?? ''),
          );
          return rows.flatMap(({ key }, at) => {
            const user = users[at];
            return user === undefined ? [] : [{ key, item: userXml(store, user, { isWhole: false }) }];
          });
        },
        charactersOf: (xml) => xml.length,
      },
      paged,
    );
    return xmlElement('Group', groupXml(store, group)) + pageXml('Users', items, next);
  },
});

const listGroups = defineIamAction({
  name: 'ListGroups',
  parameters: { PathPrefix: pathPrefix, ...paging },
  access: () => [ANY_RESOURCE],
  async run({ PathPrefix, ...paged }, { store }) {
    const groups = listBelow({ kind: 'group', pathPrefix: PathPrefix }, (group) => groupXml(store, group));
    const { items, next } = await pageOfRows(store, groups, paged);
    return pageXml('Groups', items, next);
  },
});

const updateGroup = defineIamAction({
  name: 'UpdateGroup',
  parameters: { GroupName: required(groupName), NewGroupName: groupName, NewPath: newPath },
  async access({ GroupName, NewGroupName, NewPath }, context) {
    const before = await groupTarget(context, GroupName);
    const { store } = context;
    const group = await store.find('group', identityKeys.group(GroupName));
    if (group === undefined) return [before];
    const after = { name: NewGroupName ?? group.name, path: NewPath ?? group.path };
    return [before, { resource: identityArn(store.accountId, 'group', after) }];
  },
  async run({ GroupName, NewGroupName, NewPath }, { store }) {
    const before = await requireGroup(store, GroupName);
    const group = { ...before, name: NewGroupName ?? before.name, path: NewPath ?? before.path };
    if (group.name === before.name && group.path === before.path) return undefined;
    const [keyBefore, key] = [identityKeys.group(before.name), identityKeys.group(group.name)];
    if (key !== keyBefore) {
      if ((await store.find('group', key)) !== undefined) throw groupExists(group.name);
      store.remove(keyBefore);
      store.putUnseen(identityKeys.id(group.id), { kind: 'index', to: key });
      renameUses(store, group, { before: before.name, after: group.name });
    }
    store.put(key, group);
    return undefined;
  },
});

const deleteGroup = defineIamAction({
  name: 'DeleteGroup',
  parameters: { GroupName: required(groupName) },
  access: async ({ GroupName }, context) => [await groupTarget(context, GroupName)],
  async run({ GroupName }, { store }) {
    const group = await requireGroup(store, GroupName);
    const members = await store.range({ prefix: identityKeys.member(group.id, ''), limit: 1 });
    if (members.length > 0) throw deleteConflict('remove users from group');
    if (group.inlinePolicies.length > 0) throw deleteConflict('delete policies');
    if (group.attachedPolicies.length > 0) throw deleteConflict('detach all policies');
    await store.count('group', { add: -1 });
    // Nobody is in it: no decision rests on it.
    store.removeUnseen(identityKeys.group(group.name));
    store.removeUnseen(identityKeys.id(group.id));
    return undefined;
  },
});

const addUserToGroup = defineIamAction({
  name: 'AddUserToGroup',
  parameters: { GroupName: required(groupName), UserName: required(userName) },
  access: async ({ GroupName }, context) => [await groupTarget(context, GroupName)],
  async run({ GroupName, UserName }, { store }) {
    const group = await requireGroup(store, GroupName);
    const user = await requireUser(store, UserName);
    if (user.groups.includes(group.id)) return undefined;
    if (user.groups.length >= LIMITS.groupsPerUserMax) {
      const message = `Cannot exceed quota for GroupsPerUser: ${LIMITS.groupsPerUserMax}`;
      throw new AppError('LimitExceeded', { message });
    }
    const key = identityKeys.user(user.name);
    // It may get a policy that denies.
    store.put(key, { ...user, groups: [...user.groups, group.id].sort() });
    store.putUnseen(identityKeys.member(group.id, user.name), { kind: 'index', to: key });
    return undefined;
  },
});

const removeUserFromGroup = defineIamAction({
  name: 'RemoveUserFromGroup',
  parameters: { GroupName: required(groupName), UserName: required(userName) },
  access: async ({ GroupName }, context) => [await groupTarget(context, GroupName)],
  async run({ GroupName, UserName }, { store }) {
    const group = await requireGroup(store, GroupName);
    const user = await requireUser(store, UserName);
    if (!user.groups.includes(group.id)) return undefined;
    const groups = user.groups.filter((id) => id !== group.id);
    store.put(identityKeys.user(user.name), { ...user, groups });
    store.removeUnseen(identityKeys.member(group.id, user.name));
    return undefined;
  },
});

const listGroupsForUser = defineIamAction({
  name: 'ListGroupsForUser',
  parameters: { UserName: required(userName), ...paging },
  access: async ({ UserName }, context) => [await userTarget(context, UserName)],
  async run({ UserName, ...paged }, { store }) {
    const groups = await groupsOf(store, await requireUser(store, UserName));
    const { items, next } = pageOf(groups, ({ name }) => name.toLowerCase(), paged);
    return pageXml(
      'Groups',
      items.map((group) => groupXml(store, group)),
      next,
    );
  },
});

export const GROUP_ACTIONS = [
  createGroup,
  getGroup,
  listGroups,
  updateGroup,
  deleteGroup,
  addUserToGroup,
  removeUserFromGroup,
  listGroupsForUser,
];

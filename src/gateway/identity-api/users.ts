// Users: who they are, their paths and their tags. Their keys, groups and passwords are in files of their own.

import type { IdentityStore } from '../../accounts/identity-store.ts';
import { mintIdentityId } from '../../accounts/mint-keys.ts';
import { renameUses } from '../../accounts/policy-uses.ts';
import { xmlElement, xmlText } from '../../base/xml/write-xml.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { identityKeys, type UserRecord } from '../../types/records/identity-records.ts';
import type { Tag } from '../../types/tags.ts';
import { noteBoundary, requireBoundary } from './boundaries.ts';
import { type AccessTarget, type ActionContext, ANY_RESOURCE, defineIamAction } from './iam-action.ts';
import {
  checkTags,
  identityArn,
  mergeTags,
  newPath,
  newUserName,
  paging,
  pathOrRoot,
  pathPrefix,
  policyArn,
  removeTags,
  tagKeys,
  tags,
  userName,
} from './identity-parameters.ts';
import { listBelow, pageEndXml, pageOf, pageOfRows, pageXml } from './list-pages.ts';
import { required } from './parameter-rules.ts';
import { xmlMembers, xmlTime } from './query-protocol.ts';

/** What policies judge where a user is acted on. One that does not exist has no path. */
export async function userTarget(
  { store }: ActionContext,
  name: string,
): Promise<AccessTarget & { readonly resourceTags: readonly Tag[] }> {
  const user = await store.find('user', identityKeys.user(name));
  const resource = identityArn(store.accountId, 'user', user ?? { path: '/', name });
  const boundary = { 'iam:permissionsboundary': user?.boundary };
  return { resource, resourceTags: user?.tags ?? [], values: boundary };
}

/** Throws NoSuchEntity. */
export async function requireUser(store: IdentityStore, name: string): Promise<UserRecord> {
  const user = await store.find('user', identityKeys.user(name));
  if (user === undefined) throw noSuchUser(name);
  return user;
}

export function noSuchUser(name: string): AppError {
  return new AppError('NoSuchEntity', { message: `The user with name ${name} cannot be found.` });
}

/**
 * The caller's own name; undefined: it is no user. It is found by the user's id: while the request came in, the user may have got
 * another name, and the one that it had may be another user's. Throws InvalidClientTokenId where the user is gone.
 */
export async function ownUserName({ caller, store }: ActionContext): Promise<string | undefined> {
  if (caller.userName === undefined) return undefined;
  const index = await store.find('index', identityKeys.id(caller.identity.id));
  const user = index?.to === undefined ? undefined : await store.find('user', index.to);
  if (user === undefined) throw new AppError('InvalidClientTokenId');
  return user.name;
}

/** The name that a request gives, or else the caller's own. Throws as ownUserName, and ValidationError where there is neither. */
export async function userNameOf(context: ActionContext, given: string | undefined): Promise<string> {
  const name = given ?? (await ownUserName(context));
  if (name !== undefined) return name;
  throw new AppError('ValidationError', {
    message: 'Must specify userName when calling with non-User credentials',
  });
}

function userExists(name: string): AppError {
  return new AppError('EntityAlreadyExists', { message: `User with name ${name} already exists.` });
}

export function tagsXml(list: readonly Tag[]): string {
  return xmlMembers(
    'Tags',
    list.map(({ key, value }) => xmlText('Key', key) + xmlText('Value', value)),
  );
}

/** `isWhole`: with its tags and boundary, which lists leave out. */
export function userXml(
  { accountId }: IdentityStore,
  user: UserRecord,
  { isWhole }: { isWhole: boolean },
): string {
  const { boundary } = user;
  return [
    xmlText('Path', user.path),
    xmlText('UserName', user.name),
    xmlText('UserId', user.id),
    xmlText('Arn', identityArn(accountId, 'user', user)),
    xmlTime('CreateDate', user.createdAtMs),
    ...(isWhole && boundary !== undefined ? [boundaryXml(boundary)] : []),
    ...(isWhole && user.tags.length > 0 ? [tagsXml(user.tags)] : []),
  ].join('');
}

export function boundaryXml(arn: string): string {
  return xmlElement(
    'PermissionsBoundary',
    xmlText('PermissionsBoundaryType', 'Policy'),
    xmlText('PermissionsBoundaryArn', arn),
  );
}

const createUser = defineIamAction({
  name: 'CreateUser',
  parameters: {
    UserName: required(newUserName),
    Path: pathOrRoot,
    PermissionsBoundary: policyArn,
    Tags: tags,
  },
  access: ({ UserName: name, Path: path, PermissionsBoundary, Tags }, { store }) => [
    {
      resource: identityArn(store.accountId, 'user', { path, name }),
      requestTags: Tags,
      values: { 'iam:permissionsboundary': PermissionsBoundary },
    },
  ],
  async run({ UserName: name, Path: path, PermissionsBoundary: boundary, Tags = [] }, context) {
    const { store, nowMs, deps } = context;
    checkTags(Tags);
    if ((await store.find('user', identityKeys.user(name))) !== undefined) {
      throw userExists(name);
    }
    if (boundary !== undefined) await requireBoundary(store, boundary);
    await store.count('user', { add: 1, max: LIMITS.usersMax });
    const user: UserRecord = {
      kind: 'user',
      id: mintIdentityId(deps.random, 'AIDA'),
      name,
      path,
      createdAtMs: nowMs,
      tags: Tags,
      groups: [],
      inlinePolicies: [],
      attachedPolicies: [],
      accessKeys: [],
      mfaDevices: [],
      ...(boundary !== undefined && { boundary }),
    };
    store.putUnseen(identityKeys.user(name), user);
    store.putUnseen(identityKeys.id(user.id), { kind: 'index', to: identityKeys.user(name) });
    await noteBoundary(store, user, { after: boundary });
    return xmlElement('User', userXml(store, user, { isWhole: true }));
  },
});

const getUser = defineIamAction({
  name: 'GetUser',
  parameters: { UserName: userName },
  async access({ UserName }, context) {
    const { caller } = context;
    const name = UserName ?? (await ownUserName(context));
    return [name === undefined ? { resource: caller.principal.arn } : await userTarget(context, name)];
  },
  async run({ UserName }, context) {
    const { caller, store } = context;
    if (UserName === undefined && caller.principal.kind === 'root')
      return xmlElement('User', rootXml(context));
    const user = await requireUser(store, await userNameOf(context, UserName));
    return xmlElement('User', userXml(store, user, { isWhole: true }));
  },
});

/** The account itself, as AWS shows its root: without name and path. */
function rootXml({ caller }: ActionContext): string {
  const { account, principal } = caller;
  return [
    xmlText('UserId', account.accountId),
    xmlText('Arn', principal.arn),
    xmlTime('CreateDate', account.createdAtMs),
  ].join('');
}

const listUsers = defineIamAction({
  name: 'ListUsers',
  parameters: { PathPrefix: pathPrefix, ...paging },
  access: () => [ANY_RESOURCE],
  async run({ PathPrefix, ...paged }, { store }) {
    const users = listBelow({ kind: 'user', pathPrefix: PathPrefix }, (user) =>
      userXml(store, user, { isWhole: false }),
    );
    const { items, next } = await pageOfRows(store, users, paged);
    return pageXml('Users', items, next);
  },
});

const updateUser = defineIamAction({
  name: 'UpdateUser',
  parameters: { UserName: required(userName), NewUserName: newUserName, NewPath: newPath },
  async access({ UserName, NewUserName, NewPath }, context) {
    const before = await userTarget(context, UserName);
    const { store } = context;
    const user = await store.find('user', identityKeys.user(UserName));
    if (user === undefined) return [before];
    const after = { name: NewUserName ?? user.name, path: NewPath ?? user.path };
    return [before, { ...before, resource: identityArn(store.accountId, 'user', after) }];
  },
  async run({ UserName, NewUserName, NewPath }, { store }) {
    const before = await requireUser(store, UserName);
    const user = { ...before, name: NewUserName ?? before.name, path: NewPath ?? before.path };
    if (user.name === before.name && user.path === before.path) return undefined;
    const [keyBefore, key] = [identityKeys.user(before.name), identityKeys.user(user.name)];
    if (key !== keyBefore) {
      if ((await store.find('user', key)) !== undefined) throw userExists(user.name);
      store.remove(keyBefore);
      moveIndices(store, before, user);
    }
    store.put(key, user);
    return undefined;
  },
});

/** Indices that lead to a user by its name do so by the new one. */
function moveIndices(store: IdentityStore, before: UserRecord, after: UserRecord): void {
  const index = { kind: 'index', to: identityKeys.user(after.name) } as const;
  store.putUnseen(identityKeys.id(after.id), index);
  for (const groupId of after.groups) {
    store.removeUnseen(identityKeys.member(groupId, before.name));
    store.putUnseen(identityKeys.member(groupId, after.name), index);
  }
  renameUses(store, after, { before: before.name, after: after.name });
}

const deleteUser = defineIamAction({
  name: 'DeleteUser',
  parameters: { UserName: required(userName) },
  access: async ({ UserName }, context) => [await userTarget(context, UserName)],
  async run({ UserName }, { store }) {
    const user = await requireUser(store, UserName);
    const left = whatIsLeft(user);
    if (left !== undefined) throw deleteConflict(left);
    await store.count('user', { add: -1 });
    store.remove(identityKeys.user(user.name));
    store.removeUnseen(identityKeys.id(user.id));
    await noteBoundary(store, user, { before: user.boundary });
    return undefined;
  },
});

/** What AWS says must be done first. */
function whatIsLeft(user: UserRecord): string | undefined {
  if (user.groups.length > 0) return 'remove users from group';
  if (user.inlinePolicies.length > 0) return 'delete policies';
  if (user.attachedPolicies.length > 0) return 'detach all policies';
  if (user.accessKeys.length > 0) return 'delete access keys';
  if (user.loginProfile !== undefined) return 'delete login profile';
  return user.mfaDevices.length > 0 ? 'delete MFA device' : undefined;
}

export function deleteConflict(whatFirst: string): AppError {
  return new AppError('DeleteConflict', { message: `Cannot delete entity, must ${whatFirst} first.` });
}

const tagUser = defineIamAction({
  name: 'TagUser',
  parameters: { UserName: required(userName), Tags: required(tags) },
  access: async ({ UserName, Tags }, context) => [
    { ...(await userTarget(context, UserName)), requestTags: Tags },
  ],
  async run({ UserName, Tags }, { store }) {
    const user = await requireUser(store, UserName);
    store.put(identityKeys.user(user.name), { ...user, tags: mergeTags(user.tags, Tags) });
    return undefined;
  },
});

const untagUser = defineIamAction({
  name: 'UntagUser',
  parameters: { UserName: required(userName), TagKeys: required(tagKeys) },
  access: async ({ UserName, TagKeys }, context) => [
    { ...(await userTarget(context, UserName)), tagKeys: TagKeys },
  ],
  async run({ UserName, TagKeys }, { store }) {
    const user = await requireUser(store, UserName);
    store.put(identityKeys.user(user.name), { ...user, tags: removeTags(user.tags, TagKeys) });
    return undefined;
  },
});

const listUserTags = defineIamAction({
  name: 'ListUserTags',
  parameters: { UserName: required(userName), ...paging },
  access: async ({ UserName }, context) => [await userTarget(context, UserName)],
  async run({ UserName, ...paged }, { store }) {
    const user = await requireUser(store, UserName);
    const { items, next } = pageOf(user.tags, ({ key }) => key, paged);
    return tagsXml(items) + pageEndXml(next);
  },
});

export const USER_ACTIONS = [
  createUser,
  getUser,
  listUsers,
  updateUser,
  deleteUser,
  tagUser,
  untagUser,
  listUserTags,
];

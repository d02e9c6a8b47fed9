// Users: who they are, their paths and their tags. Their keys, groups and passwords are in files of their own.

import { mintIdentityId } from '../../accounts/mint-keys.ts';
import { xmlElement, xmlText } from '../../base/xml/write-xml.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { identityKeys, type UserRecord } from '../../types/records/identity-records.ts';
import type { Tag } from '../../types/tags.ts';
import { noteBoundary, requireBoundary } from './boundaries.ts';
import { type AccessTarget, type ActionContext, defineIamAction } from './iam-action.ts';
import {
  checkTags,
  identityArn,
  newUserName,
  pathOrRoot,
  policyArn,
  tags,
  userName,
} from './identity-parameters.ts';
import type { IdentityStore } from './identity-store.ts';
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

/** The name that a request gives, or else the caller's. Throws ValidationError where there is neither. */
export function userNameOf({ caller }: ActionContext, given: string | undefined): string {
  const name = given ?? caller.userName;
  if (name !== undefined) return name;
  throw new AppError('ValidationError', {
    message: 'Must specify userName when calling with non-User credentials',
  });
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
      throw new AppError('EntityAlreadyExists', { message: `User with name ${name} already exists.` });
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
    await noteBoundary(store, { kind: 'user', name }, { after: boundary });
    return xmlElement('User', userXml(store, user, { isWhole: true }));
  },
});

const getUser = defineIamAction({
  name: 'GetUser',
  parameters: { UserName: userName },
  async access({ UserName }, context) {
    const { caller } = context;
    const name = UserName ?? caller.userName;
    return [name === undefined ? { resource: caller.principal.arn } : await userTarget(context, name)];
  },
  async run({ UserName }, context) {
    const { caller, store } = context;
    if (UserName === undefined && caller.principal.kind === 'root')
      return xmlElement('User', rootXml(context));
    const user = await requireUser(store, userNameOf(context, UserName));
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

export const USER_ACTIONS = [createUser, getUser];

// What policies are put on, users, groups and roles, where an action is the same for all three.

import type { IdentityStore } from '../../accounts/identity-store.ts';
import { AppError } from '../../types/errors.ts';
import {
  type GroupRecord,
  type HolderKind,
  identityKeys,
  type RoleRecord,
  type UserRecord,
} from '../../types/records/identity-records.ts';
import type { AccessTarget, ActionContext } from './iam-action.ts';
import { groupName, identityArn, roleName, userName } from './identity-parameters.ts';
import { named, type Rule, required } from './parameter-rules.ts';

export type PolicyHolder = UserRecord | GroupRecord | RoleRecord;

export const HOLDER_KINDS: readonly HolderKind[] = ['user', 'group', 'role'];

/** In names of actions and parameters. */
export const HOLDER_LABELS: Readonly<Record<HolderKind, string>> = {
  user: 'User',
  group: 'Group',
  role: 'Role',
};

const NAMES = { user: userName, group: groupName, role: roleName };

/** The parameter that names it, as `UserName`. */
export function holderName(kind: HolderKind): Rule<string> {
  return named(`${HOLDER_LABELS[kind]}Name`, required(NAMES[kind]));
}

/** Throws NoSuchEntity. */
export async function requireHolder(
  store: IdentityStore,
  { kind, name }: { kind: HolderKind; name: string },
): Promise<PolicyHolder> {
  const holder = await store.find(kind, identityKeys[kind](name));
  if (holder !== undefined) return holder;
  throw new AppError('NoSuchEntity', { message: `The ${kind} with name ${name} cannot be found.` });
}

/** What policies judge where it is acted on. One that does not exist has no path. */
export async function holderTarget(
  { store }: ActionContext,
  { kind, name }: { kind: HolderKind; name: string },
): Promise<AccessTarget> {
  const holder = await store.find(kind, identityKeys[kind](name));
  const resource = identityArn(store.accountId, kind, holder ?? { path: '/', name });
  if (holder === undefined || holder.kind === 'group') return { resource };
  return { resource, resourceTags: holder.tags, values: { 'iam:permissionsboundary': holder.boundary } };
}

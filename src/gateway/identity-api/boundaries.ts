// Permissions boundaries of users and roles: put, removed, and the index of who has which.

import type { IdentityStore } from '../../accounts/identity-store.ts';
import { noteUse } from '../../accounts/policy-uses.ts';
import { AppError } from '../../types/errors.ts';
import { type HolderKind, identityKeys } from '../../types/records/identity-records.ts';
import { defineIamAction } from './iam-action.ts';
import { policyArn } from './identity-parameters.ts';
import { requireAttachable } from './managed-policies.ts';
import { required } from './parameter-rules.ts';
import { HOLDER_LABELS, holderName, holderTarget, requireHolder } from './policy-holders.ts';
import type { QueryAction } from './query-service.ts';

type BoundedKind = Exclude<HolderKind, 'group'>;

/** Throws NoSuchEntity, InvalidInput. */
export async function requireBoundary(store: IdentityStore, arn: string): Promise<void> {
  await requireAttachable(store, arn);
}

/** Writes the index; the row of the holder is the caller's to write. */
export async function noteBoundary(
  store: IdentityStore,
  holder: { kind: BoundedKind; name: string },
  { before, after }: { before?: string | undefined; after?: string | undefined },
): Promise<void> {
  if (before === after) return;
  if (before !== undefined) await noteUse(store, { ...holder, arn: before, as: 'bounded' }, -1);
  if (after !== undefined) await noteUse(store, { ...holder, arn: after, as: 'bounded' }, 1);
}

function actionsOf(kind: BoundedKind): QueryAction[] {
  const label = HOLDER_LABELS[kind];
  const Holder = holderName(kind);

  async function requireBounded(store: IdentityStore, name: string) {
    const holder = await requireHolder(store, { kind, name });
    return holder.kind === 'group' ? undefined : holder;
  }

  const put = defineIamAction({
    name: `Put${label}PermissionsBoundary`,
    parameters: { Holder, PermissionsBoundary: required(policyArn) },
    async access({ Holder: name, PermissionsBoundary: boundary }, context) {
      const target = await holderTarget(context, { kind, name });
      return [{ ...target, values: { 'iam:permissionsboundary': boundary } }];
    },
    async run({ Holder: name, PermissionsBoundary: boundary }, { store }) {
      const holder = await requireBounded(store, name);
      if (holder === undefined) return undefined;
      await requireBoundary(store, boundary);
      store.put(identityKeys[kind](name), { ...holder, boundary });
      await noteBoundary(store, { kind, name }, { before: holder.boundary, after: boundary });
      return undefined;
    },
  });

  const remove = defineIamAction({
    name: `Delete${label}PermissionsBoundary`,
    parameters: { Holder },
    access: async ({ Holder: name }, context) => [await holderTarget(context, { kind, name })],
    async run({ Holder: name }, { store }) {
      const holder = await requireBounded(store, name);
      if (holder?.boundary === undefined) {
        const message = `${label} ${name} does not have a permissions boundary.`;
        throw new AppError('NoSuchEntity', { message });
      }
      const { boundary, ...unbounded } = holder;
      store.put(identityKeys[kind](name), unbounded);
      await noteBoundary(store, { kind, name }, { before: boundary });
      return undefined;
    },
  });

  return [put, remove];
}

export const BOUNDARY_ACTIONS: readonly QueryAction[] = [...actionsOf('user'), ...actionsOf('role')];

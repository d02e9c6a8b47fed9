// Permissions boundaries of users and roles: the managed policy that is named, and the index of who has it.
import { AppError } from '../../types/errors.ts';
import { type HolderKind, identityKeys } from '../../types/records/identity-records.ts';
import type { IdentityStore } from './identity-store.ts';

const ARN = /^arn:aws:iam::(\d{12}):policy(\/(?:[\x21-\x7e]+\/)?)([\w+=,.@-]{1,128})$/;

/** Throws NoSuchEntity, InvalidInput. */
export async function requireBoundary(store: IdentityStore, arn: string): Promise<void> {
  const [whole, accountId, path, name = ''] = ARN.exec(arn) ?? [];
  if (whole === undefined) throw new AppError('InvalidInput', { message: `ARN ${arn} is not valid.` });
  const policy =
    accountId === store.accountId ? await store.find('policy', identityKeys.policy(name)) : undefined;
  if (policy === undefined || policy.path !== path || policy.name !== name) {
    throw new AppError('NoSuchEntity', { message: `Policy ${arn} does not exist.` });
  }
}

/** Writes the index; the row of the holder is the caller's to write. */
export function noteBoundary(
  store: IdentityStore,
  holder: { kind: Exclude<HolderKind, 'group'>; name: string },
  { before, after }: { before?: string | undefined; after?: string | undefined },
): void {
  const { kind, name } = holder;
  if (before !== undefined) store.removeUnseen(identityKeys.bounded(before, kind, name));
  if (after === undefined) return;
  const to = kind === 'user' ? identityKeys.user(name) : identityKeys.role(name);
  store.putUnseen(identityKeys.bounded(after, kind, name), { kind: 'index', to });
}

// From the list that a request gives to the one that is stored: whom its names mean, what a canned name means, and whether
// the accounts may share with everybody. And who owns what a request makes.
import { normaliseEmail } from '../../../accounts/account-rules.ts';
import { SYSTEM_SHARD } from '../../../ports/metadata/port.ts';
import { cannedGrants, type Grant, type Grantee, isPublic, storedGrants } from '../../../types/acl.ts';
import { AppError } from '../../../types/errors.ts';
import type { AccountId } from '../../../types/names.ts';
import { type AccountRecord, mayBePublic } from '../../../types/records/rows.ts';
import type { OperationContext } from '../context.ts';
import type { GivenAcl, NamedGrantee } from '../request/acl-headers.ts';
import { invalidArgument } from '../request/arguments.ts';

/** Whom the list is for. `bucketOwner`: of an object's; absent: the list is the bucket's own. */
export interface AclOwners {
  owner: AccountId;
  bucketOwner?: AccountId;
}

/**
 * The list to store; undefined: what `private` means. InvalidArgument or UnresolvableGrantByEmailAddress for grantees that are
 * not there (s3-behaviour 6); AccessDenied where it may not be public, or names another owner than it has.
 */
export async function resolveAcl(
  context: OperationContext,
  given: GivenAcl | undefined,
  owners: AclOwners,
): Promise<Grant[] | undefined> {
  if (given === undefined) return undefined;
  const { owner, bucketOwner = owner } = owners;
  const grants = storedGrants(
    owner,
    given.kind === 'canned' ? cannedGrants(given.name, owners) : await resolveGrants(context, given, owner),
  );
  if (isPublic(grants)) await requireMayBePublic(context, bucketOwner);
  return grants;
}

async function resolveGrants(
  context: OperationContext,
  given: Extract<GivenAcl, { kind: 'grants' }>,
  owner: AccountId,
): Promise<Grant[]> {
  if (given.owner !== undefined && given.owner !== (await context.ownerOf(owner)).id)
    throw new AppError('AccessDenied');
  const known = new Map<string, Grantee>();
  const grants: Grant[] = [];
  for (const { grantee, permission } of given.grants) {
    const text = JSON.stringify(grantee);
    const found = known.get(text) ?? (await findGrantee(context, grantee));
    known.set(text, found);
    grants.push({ grantee: found, permission });
  }
  return grants;
}

async function findGrantee(context: OperationContext, grantee: NamedGrantee): Promise<Grantee> {
  if (grantee.kind === 'group') return grantee.group;
  const { kind, name } = grantee;
  const { caller } = context;
  if (kind === 'id' && caller.kind === 'account' && caller.account.canonicalId === name)
    return caller.account.accountId;
  const query = kind === 'id' ? { canonicalId: name } : { email: normaliseEmail(name) };
  const { value } = await context.metadata.query({ shard: SYSTEM_SHARD }, 'find-account', query);
  if (value.account !== null) return value.account.accountId;
  if (kind === 'email')
    throw new AppError('UnresolvableGrantByEmailAddress', { fields: { EmailAddress: name } });
  throw invalidArgument({ name: 'CanonicalUser/ID', value: name, message: 'Invalid id' });
}

/** AccessDenied unless the bucket's owner, and the caller where it is another account, may share with everybody. */
export async function requireMayBePublic(context: OperationContext, bucketOwner: AccountId): Promise<void> {
  const { caller } = context;
  const accounts: (AccountRecord | null)[] = caller.kind === 'account' ? [caller.account] : [];
  if (accounts[0]?.accountId !== bucketOwner) {
    const query = { accountId: bucketOwner };
    const { value } = await context.metadata.query({ shard: SYSTEM_SHARD }, 'get-account', query);
    accounts.push(value.account);
  }
  if (accounts.every((account) => account !== null && mayBePublic(account))) return;
  throw new AppError('AccessDenied', {
    message: 'The account may not share with everybody. The operator of the service can allow it.',
  });
}

/** Who owns what the request makes: its caller. What nobody known makes is the bucket owner's, who can then look after it. */
export function writerOf({ caller, bucket }: OperationContext): AccountId {
  return caller.kind === 'account' ? caller.account.accountId : bucket().record.owner;
}

/** The same, for versions and uploads: the bucket admits another account's before the first of them. */
export async function admitWriter(context: OperationContext): Promise<AccountId> {
  const writer = writerOf(context);
  const { record, homeShard, believed } = context.bucket();
  if (writer === record.owner || record.mayHaveForeignObjects) return writer;
  const { value } = await context.metadata.execute(
    { shard: homeShard, bucket: believed },
    'admit-foreign-objects',
    { bucketId: believed.bucketId },
  );
  if (value.kind === 'no-such-bucket')
    throw new AppError('NoSuchBucket', { fields: { BucketName: believed.name } });
  return writer;
}

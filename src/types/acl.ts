// Access control lists of buckets and objects (AWS "Access control list (ACL) overview"): who owns a thing, and what its
// grants allow to whom. Pure: the stored form, the canned lists, and what a list grants to a caller. Documents and headers
// are read by the gateway (gateway/s3/request/acl-headers.ts, gateway/s3/xml/acl-xml.ts).
import { assert } from '../base/assert.ts';
import type { ByteReader, ByteWriter } from '../base/bytes/byte-cursor.ts';
import type { AccountId } from './names.ts';

/** Also the numbers of the stored form, so the order is for good. */
export const ACL_PERMISSIONS = ['READ', 'WRITE', 'READ_ACP', 'WRITE_ACP', 'FULL_CONTROL'] as const;
export type AclPermission = (typeof ACL_PERMISSIONS)[number];

/** Groups of AWS; the order is stored, too. LogDelivery may be named, and nobody here is one of it. */
export const ACL_GROUPS = ['AllUsers', 'AuthenticatedUsers', 'LogDelivery'] as const;
export type AclGroup = (typeof ACL_GROUPS)[number];

export const ACL_GROUP_URIS: Readonly<Record<AclGroup, string>> = {
  AllUsers: 'http://acs.amazonaws.com/groups/global/AllUsers',
  AuthenticatedUsers: 'http://acs.amazonaws.com/groups/global/AuthenticatedUsers',
  LogDelivery: 'http://acs.amazonaws.com/groups/s3/LogDelivery',
};

/** Accounts are 12 digits, so the two cannot be confused. */
export type Grantee = AccountId | AclGroup;

export interface Grant {
  grantee: Grantee;
  permission: AclPermission;
}

/** Grants of one list (AWS, the page above). */
export const ACL_GRANTS_MAX = 100;

/** `grants` is absent in what is stored where it is what `private` means: all for the owner, nothing for anybody else. */
export interface Acl {
  owner: AccountId;
  grants?: readonly Grant[] | undefined;
}

export function isGroup(grantee: Grantee): grantee is AclGroup {
  return (ACL_GROUPS as readonly string[]).includes(grantee);
}

/** The grants as answers show them. */
export function grantsOf({ owner, grants }: Acl): readonly Grant[] {
  return grants ?? [{ grantee: owner, permission: 'FULL_CONTROL' }];
}

/** The form that is stored: groups first, no grant twice; undefined where it is the list of `private`. */
export function storedGrants(owner: AccountId, given: readonly Grant[]): Grant[] | undefined {
  const byText = new Map(given.map((grant) => [`${grant.grantee} ${grant.permission}`, grant]));
  const distinct = [...byText.values()];
  const [first] = distinct;
  if (distinct.length === 1 && first?.grantee === owner && first.permission === 'FULL_CONTROL')
    return undefined;
  const isOfGroup = ({ grantee }: Grant) => isGroup(grantee);
  return [...distinct.filter(isOfGroup), ...distinct.filter((grant) => !isOfGroup(grant))];
}

const PUBLIC: ReadonlySet<Grantee> = new Set(['AllUsers', 'AuthenticatedUsers']);

/** Whether it grants anything to everybody, or to everybody who has an account. */
export function isPublic(grants: readonly Grant[] | undefined): boolean {
  return grants?.some(({ grantee }) => PUBLIC.has(grantee)) ?? false;
}

/** The list without what it grants to everybody. */
export function withoutPublicGrants({ owner, grants }: Acl): Acl {
  return { owner, grants: grants?.filter(({ grantee }) => !PUBLIC.has(grantee)) };
}

// ---- canned lists ----

export const CANNED_ACLS = [
  'private',
  'public-read',
  'public-read-write',
  'authenticated-read',
  'aws-exec-read',
  'bucket-owner-read',
  'bucket-owner-full-control',
  'log-delivery-write',
] as const;
export type CannedAcl = (typeof CANNED_ACLS)[number];

const READ_BY_ALL: Grant = { grantee: 'AllUsers', permission: 'READ' };

const OF_GROUPS: Readonly<Partial<Record<CannedAcl, readonly Grant[]>>> = {
  'public-read': [READ_BY_ALL],
  'public-read-write': [READ_BY_ALL, { grantee: 'AllUsers', permission: 'WRITE' }],
  'authenticated-read': [{ grantee: 'AuthenticatedUsers', permission: 'READ' }],
  'log-delivery-write': [
    { grantee: 'LogDelivery', permission: 'WRITE' },
    { grantee: 'LogDelivery', permission: 'READ_ACP' },
  ],
};

/**
 * What a canned list means, the owner's grant last (s3-behaviour 3). `bucketOwner`: of an object; on a bucket the lists that
 * grant to its owner mean `private`, as AWS has it. So does aws-exec-read, which is for a service that is not here.
 */
export function cannedGrants(
  name: CannedAcl,
  { owner, bucketOwner = owner }: { owner: AccountId; bucketOwner?: AccountId },
): Grant[] {
  const grants: Grant[] = [...(OF_GROUPS[name] ?? [])];
  if (bucketOwner !== owner && name === 'bucket-owner-read')
    grants.push({ grantee: bucketOwner, permission: 'READ' });
  if (bucketOwner !== owner && name === 'bucket-owner-full-control')
    grants.push({ grantee: bucketOwner, permission: 'FULL_CONTROL' });
  return [...grants, { grantee: owner, permission: 'FULL_CONTROL' }];
}

// ---- what a list allows ----

/**
 * What the list grants: nothing, something to the caller's account, or something to a group that everybody is in (`AclGrant`
 * of policy/evaluate.ts). Undefined caller: anonymous. An owner may read and write the list whatever it says (s3-behaviour 7).
 */
export function aclGrantFor(
  acl: Acl,
  caller: AccountId | undefined,
  permission: AclPermission,
): 'none' | 'account' | 'everyone' {
  const grantees = new Set(
    grantsOf(acl)
      .filter((grant) => grant.permission === permission || grant.permission === 'FULL_CONTROL')
      .map(({ grantee }) => grantee),
  );
  if (grantees.has('AllUsers')) return 'everyone';
  if (caller === undefined) return 'none';
  if (grantees.has('AuthenticatedUsers')) return 'everyone';
  if (grantees.has(caller)) return 'account';
  const isOfList = permission === 'READ_ACP' || permission === 'WRITE_ACP';
  return isOfList && caller === acl.owner ? 'account' : 'none';
}

/** Which list decides, the bucket's or the object's, and what it has to grant. */
export interface AclNeed {
  of: 'bucket' | 'object';
  permission: AclPermission;
}

const BUCKET_READ: AclNeed = { of: 'bucket', permission: 'READ' };
/** It covers overwriting and deleting (s3-behaviour 2). */
const BUCKET_WRITE: AclNeed = { of: 'bucket', permission: 'WRITE' };
const OBJECT_READ: AclNeed = { of: 'object', permission: 'READ' };
const OBJECT_READ_ACP: AclNeed = { of: 'object', permission: 'READ_ACP' };
const OBJECT_WRITE_ACP: AclNeed = { of: 'object', permission: 'WRITE_ACP' };

/** AWS "Mapping of ACL permissions and access policy permissions". To remove a version by its id is for policies alone. */
const NEEDS: ReadonlyMap<string, AclNeed> = new Map([
  ['s3:ListBucket', BUCKET_READ],
  ['s3:ListBucketVersions', BUCKET_READ],
  ['s3:ListBucketMultipartUploads', BUCKET_READ],
  ['s3:PutObject', BUCKET_WRITE],
  ['s3:DeleteObject', BUCKET_WRITE],
  ['s3:AbortMultipartUpload', BUCKET_WRITE],
  ['s3:ListMultipartUploadParts', BUCKET_WRITE],
  ['s3:GetBucketAcl', { of: 'bucket', permission: 'READ_ACP' }],
  ['s3:PutBucketAcl', { of: 'bucket', permission: 'WRITE_ACP' }],
  ['s3:GetObject', OBJECT_READ],
  ['s3:GetObjectVersion', OBJECT_READ],
  ['s3:GetObjectAcl', OBJECT_READ_ACP],
  ['s3:GetObjectVersionAcl', OBJECT_READ_ACP],
  ['s3:PutObjectAcl', OBJECT_WRITE_ACP],
  ['s3:PutObjectVersionAcl', OBJECT_WRITE_ACP],
]);

const OF_NEW_OBJECT: ReadonlySet<string> = new Set(['s3:PutObjectAcl', 's3:PutObjectTagging']);

/**
 * What a list must grant for the action; undefined: no list can. `isOfNewObject`: the request makes the object that the action
 * is about, and brings its list or tags along: then who may write into the bucket may do that, too.
 */
export function aclNeedOf(action: string, options: { isOfNewObject: boolean }): AclNeed | undefined {
  return options.isOfNewObject && OF_NEW_OBJECT.has(action) ? BUCKET_WRITE : NEEDS.get(action);
}

// ---- the stored form, in versions ----

/** Bits of a grant's first byte: permission 4 | group 4, where 0 is an account, which follows in 6 bytes. */
const GROUP_SHIFT = 4;
const PERMISSION_MASK = 15;
const ACCOUNT_BYTES = 6;

/** Bytes of the stored form: count 1 | grants. */
export function grantsBytes(grants: readonly Grant[]): number {
  const accountCount = grants.filter(({ grantee }) => !isGroup(grantee)).length;
  return 1 + grants.length + ACCOUNT_BYTES * accountCount;
}

export function writeGrants(writer: ByteWriter, grants: readonly Grant[]): void {
  assert(grants.length <= ACL_GRANTS_MAX, 'a list is bounded');
  writer.uint(grants.length, 1);
  for (const { grantee, permission } of grants) {
    const group = isGroup(grantee) ? 1 + ACL_GROUPS.indexOf(grantee) : 0;
    writer.uint((group << GROUP_SHIFT) | ACL_PERMISSIONS.indexOf(permission), 1);
    if (group === 0) writer.uint(Number(grantee), ACCOUNT_BYTES);
  }
}

export function readGrants(reader: ByteReader): Grant[] {
  const grants: Grant[] = [];
  for (let left = reader.uint(1); left > 0; left--) {
    const first = reader.uint(1);
    const permission = ACL_PERMISSIONS[first & PERMISSION_MASK];
    const group = first >> GROUP_SHIFT;
    const grantee =
      group === 0
        ? (String(reader.uint(ACCOUNT_BYTES)).padStart(12, '0') as AccountId)
        : ACL_GROUPS[group - 1];
    assert(
      permission !== undefined && grantee !== undefined,
      'a stored grant is one of those that are known',
    );
    grants.push({ grantee, permission });
  }
  return grants;
}

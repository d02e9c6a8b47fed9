// Access control lists as headers bring them: x-amz-acl with a canned name, or x-amz-grant-* with grantees (AWS "Access
// control list (ACL) overview"). Whom the names mean is found later (sharing/resolve-acl.ts).
import type { AccessPair } from '../../../policy/authorize.ts';
import {
  ACL_GRANTS_MAX,
  ACL_GROUP_URIS,
  ACL_GROUPS,
  type AclGroup,
  type AclPermission,
  CANNED_ACLS,
  type CannedAcl,
} from '../../../types/acl.ts';
import { AppError } from '../../../types/errors.ts';
import type { OperationRequest } from '../operation.ts';
import { invalidArgument } from './arguments.ts';

/** A grantee by the name that a request has for it. */
export type NamedGrantee =
  | { readonly kind: 'id' | 'email'; readonly name: string }
  | { readonly kind: 'group'; readonly group: AclGroup };

export interface NamedGrant {
  readonly grantee: NamedGrantee;
  readonly permission: AclPermission;
}

/** What a request says. `owner`, of a document: the canonical id that it names. */
export type GivenAcl =
  | { readonly kind: 'canned'; readonly name: CannedAcl }
  | { readonly kind: 'grants'; readonly grants: readonly NamedGrant[]; readonly owner?: string };

const CANNED_HEADER = 'x-amz-acl';
const GRANT_HEADERS: ReadonlyMap<string, AclPermission> = new Map([
  ['x-amz-grant-read', 'READ'],
  ['x-amz-grant-write', 'WRITE'],
  ['x-amz-grant-read-acp', 'READ_ACP'],
  ['x-amz-grant-write-acp', 'WRITE_ACP'],
  ['x-amz-grant-full-control', 'FULL_CONTROL'],
]);
/** For the `options` of rows that understand them. */
export const ACL_HEADERS: readonly string[] = [CANNED_HEADER, ...GRANT_HEADERS.keys()];

const GRANTEE = /^[ \t]*(id|emailaddress|uri)[ \t]*=[ \t]*(?:"([^"]*)"|([^"\s]+))[ \t]*$/i;

/** undefined: no such header. InvalidArgument, InvalidRequest for both kinds at once, MalformedACLError for too many grants. */
export function parseAclHeaders(headers: OperationRequest['headers']): GivenAcl | undefined {
  const grants = parseGrantHeaders(headers);
  const canned = headers[CANNED_HEADER];
  if (canned === undefined) return grants && { kind: 'grants', grants };
  if (grants !== undefined) {
    throw new AppError('InvalidRequest', {
      message: 'Specifying both Canned ACLs and Header Grants is not allowed',
    });
  }
  const name = CANNED_ACLS.find((each) => each === canned);
  if (name !== undefined) return { kind: 'canned', name };
  throw invalidArgument({ name: CANNED_HEADER, value: canned, message: 'Unknown canned ACL' });
}

function parseGrantHeaders(headers: OperationRequest['headers']): NamedGrant[] | undefined {
  let grants: NamedGrant[] | undefined;
  for (const [name, permission] of GRANT_HEADERS) {
    const header = headers[name];
    if (header === undefined) continue;
    const grantees = header.split(',').map((text) => parseGrantee(name, text));
    grants = [...(grants ?? []), ...grantees.map((grantee) => ({ grantee, permission }))];
  }
  if (grants !== undefined) requireFew(grants);
  return grants;
}

function parseGrantee(header: string, text: string): NamedGrantee {
  const [, type, quoted, bare] = GRANTEE.exec(text) ?? [];
  const name = quoted ?? bare ?? '';
  if (type === undefined || name === '')
    throw invalidArgument({ name: header, value: text.trim(), message: 'Argument format not recognized' });
  if (type.toLowerCase() === 'uri') return groupOf(name);
  return { kind: type.toLowerCase() === 'id' ? 'id' : 'email', name };
}

/** InvalidArgument for what is no group. */
export function groupOf(uri: string): NamedGrantee {
  const group = ACL_GROUPS.find((each) => ACL_GROUP_URIS[each] === uri);
  if (group !== undefined) return { kind: 'group', group };
  throw invalidArgument({ name: 'uri', value: uri, message: 'Invalid group uri' });
}

/** MalformedACLError for more than a list may have. */
export function requireFew(grants: readonly NamedGrant[]): void {
  if (grants.length <= ACL_GRANTS_MAX) return;
  throw new AppError('MalformedACLError', {
    message: `An access control list has ${ACL_GRANTS_MAX} grants at most.`,
  });
}

/** Whether it says nothing that would not be so without it. */
export function isPrivate(given: GivenAcl | undefined): boolean {
  return given === undefined || (given.kind === 'canned' && given.name === 'private');
}

/** What a request that makes an object with a list of its own needs besides (AWS PutObject, "Permissions"). */
export function aclAccess(resource: string, given: GivenAcl | undefined): readonly AccessPair[] {
  return isPrivate(given) ? [] : [['s3:PutObjectAcl', resource, undefined, { isOfNewObject: true }]];
}

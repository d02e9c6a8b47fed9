// The six roles of members (extensions 1.5), each as the policy of the IAM user that the member is.
import { MEMBER_ROLES, type MemberRole } from '../types/tenancy.ts';
import { refuse } from './account-rules.ts';

export const MEMBER_POLICY = 'member-role';
/** Path of users that are members. */
export const MEMBER_PATH = '/members/';

/** Also what takes data away without a delete: a rule that expires it, what governance mode keeps, and letting others delete. */
const DELETES = [
  's3:Delete*',
  's3:AbortMultipartUpload',
  's3:PutLifecycleConfiguration',
  's3:BypassGovernanceRetention',
  's3:PutBucketPolicy',
  's3:PutBucketAcl',
];

const STATEMENTS: Readonly<Record<MemberRole, readonly object[]>> = {
  Root: [allow(['*'])],
  Administrator: [allow(['*'])],
  'Full Access': [allow(['s3:*'])],
  'Full Access Limited': [allow(['s3:*']), { ...allow(DELETES), Effect: 'Deny' }],
  'Download Only': [allow(['s3:Get*', 's3:List*'])],
  'Read Only': [allow(['s3:List*', 's3:GetBucket*', 's3:GetLifecycleConfiguration'])],
};

function allow(actions: readonly string[]) {
  return { Effect: 'Allow', Action: actions, Resource: '*' };
}

/** Of a member that is not active: nothing, whatever else its user is let do. */
const NOTHING = [{ Effect: 'Deny', Action: '*', Resource: '*' }];

const INACTIVE = documentOf(NOTHING);

function documentOf(statements: readonly object[]): string {
  return JSON.stringify({ Version: '2012-10-17', Statement: statements });
}

export function memberPolicy(role: MemberRole, { isActive }: { isActive: boolean }): string {
  return isActive ? documentOf(STATEMENTS[role]) : INACTIVE;
}

/** Of a user's policies: whether it is a member that is not active. Sessions of roles that it began have none of them. */
export function isInactiveMember(policies: readonly { name: string; text: string }[]): boolean {
  return policies.some(({ name, text }) => name === MEMBER_POLICY && text === INACTIVE);
}

/** A role in any spelling. Throws ValidationError. */
export function readRole(text: string): MemberRole {
  const plain = (name: string) => name.toLowerCase().replace(/[\s_]/g, '');
  const given = plain(text) === 'admin' ? 'administrator' : plain(text);
  const role = MEMBER_ROLES.find((name) => plain(name) === given);
  if (role === undefined) refuse({ memberRole: `must be one of ${MEMBER_ROLES.join(', ')}` });
  return role as MemberRole;
}

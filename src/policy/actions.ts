// The actions that policies may name: one row each, with the types of its resources and with its condition keys beside the
// global ones. S3 actions of AWS without an operation here are rows too (`isInert`): policies written for AWS name them.
// The actions that S3 operations ask for are the shorter list src/types/policy/actions.ts, which says why there are two.
import { type ConditionKeyName, familyOf } from './condition-keys.ts';

/** How ARNs of each type look. `any`: the action is of no resource, and is allowed on `*` alone. */
export const RESOURCE_FORMS = {
  any: '*',
  bucket: 'arn:aws:s3:::BUCKET',
  object: 'arn:aws:s3:::BUCKET/KEY',
  user: 'arn:aws:iam::ACCOUNT:user/PATH/NAME',
  group: 'arn:aws:iam::ACCOUNT:group/PATH/NAME',
  role: 'arn:aws:iam::ACCOUNT:role/PATH/NAME',
  policy: 'arn:aws:iam::ACCOUNT:policy/PATH/NAME',
  mfa: 'arn:aws:iam::ACCOUNT:mfa/PATH/NAME',
} as const;

export type ResourceType = keyof typeof RESOURCE_FORMS;

export interface ActionRow {
  readonly action: string;
  readonly resources: readonly ResourceType[];
  readonly keys: readonly ConditionKeyName[];
  /** Nothing here asks for it. */
  readonly isInert: boolean;
}

/** Of every action of S3. */
export const S3_REQUEST_KEYS: readonly ConditionKeyName[] = [
  's3:authType',
  's3:ResourceAccount',
  's3:signatureAge',
  's3:signatureversion',
  's3:TlsVersion',
  's3:x-amz-content-sha256',
];

const LISTING = ['s3:prefix', 's3:delimiter', 's3:max-keys'] as const;
const GRANTS = [
  's3:x-amz-acl',
  's3:x-amz-grant-full-control',
  's3:x-amz-grant-read',
  's3:x-amz-grant-read-acp',
  's3:x-amz-grant-write',
  's3:x-amz-grant-write-acp',
] as const;
const STORED_TAGS = ['s3:ExistingObjectTag/'] as const;
const GIVEN_TAGS = ['s3:RequestObjectTag/', 's3:RequestObjectTagKeys'] as const;
const VERSION = ['s3:VersionId'] as const;
const RETENTION = [
  's3:object-lock-mode',
  's3:object-lock-retain-until-date',
  's3:object-lock-remaining-retention-days',
] as const;
const HOLD = ['s3:object-lock-legal-hold'] as const;
const WRITTEN = [
  ...GRANTS,
  ...GIVEN_TAGS,
  ...RETENTION,
  ...HOLD,
  's3:x-amz-copy-source',
  's3:x-amz-metadata-directive',
  's3:x-amz-storage-class',
  's3:x-amz-server-side-encryption',
  's3:x-amz-server-side-encryption-customer-algorithm',
  's3:if-match',
  's3:if-none-match',
] as const;

type Keys = readonly ConditionKeyName[];

/** Of buckets. Names without the service. */
const BUCKET_ACTIONS: Readonly<Record<string, Keys>> = {
  CreateBucket: [...GRANTS, 's3:LocationConstraint'],
  DeleteBucket: [],
  DeleteBucketPolicy: [],
  GetBucketAcl: [],
  GetBucketCompliance: [],
  GetBucketLocation: [],
  GetBucketLogging: [],
  GetBucketNotification: [],
  GetBucketObjectLockConfiguration: [],
  GetBucketPolicy: [],
  GetBucketVersioning: [],
  GetBucketWebsite: [],
  GetInventoryConfiguration: [],
  GetLifecycleConfiguration: [],
  GetReplicationConfiguration: [],
  ListBucket: LISTING,
  ListBucketMultipartUploads: [],
  ListBucketVersions: LISTING,
  PutBucketAcl: GRANTS,
  PutBucketCompliance: [],
  PutBucketLogging: [],
  PutBucketNotification: [],
  PutBucketObjectLockConfiguration: [],
  PutBucketPolicy: [],
  PutBucketVersioning: [],
  PutLifecycleConfiguration: [],
  PutReplicationConfiguration: [],
};

const OBJECT_ACTIONS: Readonly<Record<string, Keys>> = {
  AbortMultipartUpload: [],
  BypassGovernanceRetention: [...GRANTS, ...GIVEN_TAGS, ...RETENTION, ...HOLD, 's3:x-amz-copy-source'],
  DeleteObject: ['s3:if-match'],
  DeleteObjectTagging: STORED_TAGS,
  DeleteObjectVersion: [...VERSION, 's3:if-match'],
  DeleteObjectVersionTagging: [...STORED_TAGS, ...VERSION],
  GetObject: STORED_TAGS,
  GetObjectAcl: STORED_TAGS,
  GetObjectCompliance: [],
  GetObjectLegalHold: [],
  GetObjectRetention: [],
  GetObjectTagging: STORED_TAGS,
  GetObjectVersion: [...STORED_TAGS, ...VERSION],
  GetObjectVersionAcl: [...STORED_TAGS, ...VERSION],
  GetObjectVersionTagging: [...STORED_TAGS, ...VERSION],
  ListMultipartUploadParts: [],
  PutObject: WRITTEN,
  PutObjectAcl: [...GRANTS, ...STORED_TAGS, 's3:x-amz-storage-class'],
  PutObjectCompliance: [],
  PutObjectLegalHold: HOLD,
  PutObjectRetention: RETENTION,
  PutObjectTagging: [...STORED_TAGS, ...GIVEN_TAGS],
  PutObjectVersionAcl: [...GRANTS, ...STORED_TAGS, ...VERSION, 's3:x-amz-storage-class'],
  PutObjectVersionTagging: [...STORED_TAGS, ...GIVEN_TAGS, ...VERSION],
};

/** AWS "Actions, resources, and condition keys for Amazon S3": operations that service 4.6 does not have, and replication. */
const INERT_BUCKET_ACTIONS = [
  'DeleteBucketWebsite',
  'GetAccelerateConfiguration',
  'GetAnalyticsConfiguration',
  'GetBucketCORS',
  'GetBucketOwnershipControls',
  'GetBucketPolicyStatus',
  'GetBucketPublicAccessBlock',
  'GetBucketRequestPayment',
  'GetBucketTagging',
  'GetEncryptionConfiguration',
  'GetIntelligentTieringConfiguration',
  'GetMetricsConfiguration',
  'PutAccelerateConfiguration',
  'PutAnalyticsConfiguration',
  'PutBucketCORS',
  'PutBucketOwnershipControls',
  'PutBucketPublicAccessBlock',
  'PutBucketRequestPayment',
  'PutBucketTagging',
  'PutBucketWebsite',
  'PutEncryptionConfiguration',
  'PutIntelligentTieringConfiguration',
  'PutInventoryConfiguration',
  'PutMetricsConfiguration',
];

const INERT_OBJECT_ACTIONS = [
  'GetObjectAttributes',
  'GetObjectTorrent',
  'GetObjectVersionAttributes',
  'GetObjectVersionForReplication',
  'GetObjectVersionTorrent',
  'InitiateReplication',
  'ObjectOwnerOverrideToBucketOwner',
  'ReplicateDelete',
  'ReplicateObject',
  'ReplicateTags',
  'RestoreObject',
];

const TAGGED = ['aws:RequestTag/', 'aws:TagKeys'] as const;
const TAGS_OF = ['aws:ResourceTag/', 'iam:ResourceTag/'] as const;
const BOUNDED = ['iam:PermissionsBoundary'] as const;
const ATTACHED = ['iam:PolicyARN', ...BOUNDED] as const;

type IdentityAction = readonly [resources: readonly ResourceType[], keys?: Keys];

/** extensions 3.3, and what goes with it: tags, boundaries and simulation. */
const IAM_ACTIONS: Readonly<Record<string, IdentityAction>> = {
  AddUserToGroup: [['group']],
  AttachGroupPolicy: [['group'], ['iam:PolicyARN']],
  AttachRolePolicy: [['role'], ATTACHED],
  AttachUserPolicy: [['user'], ATTACHED],
  ChangePassword: [['user']],
  CreateAccessKey: [['user']],
  CreateAccountAlias: [['any']],
  CreateGroup: [['group']],
  CreateLoginProfile: [['user']],
  CreatePolicy: [['policy'], TAGGED],
  CreatePolicyVersion: [['policy']],
  CreateRole: [['role'], [...TAGGED, ...BOUNDED]],
  CreateUser: [['user'], [...TAGGED, ...BOUNDED]],
  CreateVirtualMFADevice: [['mfa'], TAGGED],
  DeactivateMFADevice: [['user']],
  DeleteAccessKey: [['user']],
  DeleteAccountAlias: [['any']],
  DeleteAccountPasswordPolicy: [['any']],
  DeleteGroup: [['group']],
  DeleteGroupPolicy: [['group']],
  DeleteLoginProfile: [['user']],
  DeletePolicy: [['policy']],
  DeletePolicyVersion: [['policy']],
  DeleteRole: [['role']],
  DeleteRolePermissionsBoundary: [['role'], BOUNDED],
  DeleteRolePolicy: [['role'], BOUNDED],
  DeleteUser: [['user']],
  DeleteUserPermissionsBoundary: [['user'], BOUNDED],
  DeleteUserPolicy: [['user'], BOUNDED],
  DeleteVirtualMFADevice: [['mfa']],
  DetachGroupPolicy: [['group'], ['iam:PolicyARN']],
  DetachRolePolicy: [['role'], ATTACHED],
  DetachUserPolicy: [['user'], ATTACHED],
  EnableMFADevice: [['user']],
  GetAccessKeyLastUsed: [['user']],
  GetAccountAuthorizationDetails: [['any']],
  GetAccountPasswordPolicy: [['any']],
  GetAccountSummary: [['any']],
  GetContextKeysForCustomPolicy: [['any']],
  GetContextKeysForPrincipalPolicy: [['group', 'role', 'user']],
  GetGroup: [['group']],
  GetGroupPolicy: [['group']],
  GetLoginProfile: [['user']],
  GetPolicy: [['policy']],
  GetPolicyVersion: [['policy']],
  GetRole: [['role']],
  GetRolePolicy: [['role']],
  GetUser: [['user']],
  GetUserPolicy: [['user']],
  ListAccessKeys: [['user']],
  ListAccountAliases: [['any']],
  ListAttachedGroupPolicies: [['group']],
  ListAttachedRolePolicies: [['role']],
  ListAttachedUserPolicies: [['user']],
  ListEntitiesForPolicy: [['policy']],
  ListGroupPolicies: [['group']],
  ListGroups: [['any']],
  ListGroupsForUser: [['user']],
  ListMFADevices: [['user']],
  ListPolicies: [['any']],
  ListPolicyTags: [['policy']],
  ListPolicyVersions: [['policy']],
  ListRolePolicies: [['role']],
  ListRoleTags: [['role']],
  ListRoles: [['any']],
  ListUserPolicies: [['user']],
  ListUserTags: [['user']],
  ListUsers: [['any']],
  ListVirtualMFADevices: [['any']],
  PutGroupPolicy: [['group']],
  PutRolePermissionsBoundary: [['role'], BOUNDED],
  PutRolePolicy: [['role'], BOUNDED],
  PutUserPermissionsBoundary: [['user'], BOUNDED],
  PutUserPolicy: [['user'], BOUNDED],
  RemoveUserFromGroup: [['group']],
  ResyncMFADevice: [['user']],
  SetDefaultPolicyVersion: [['policy']],
  SimulateCustomPolicy: [['any']],
  SimulatePrincipalPolicy: [['group', 'role', 'user']],
  TagPolicy: [['policy'], TAGGED],
  TagRole: [['role'], TAGGED],
  TagUser: [['user'], TAGGED],
  UntagPolicy: [['policy'], ['aws:TagKeys']],
  UntagRole: [['role'], ['aws:TagKeys']],
  UntagUser: [['user'], ['aws:TagKeys']],
  UpdateAccessKey: [['user']],
  UpdateAccountPasswordPolicy: [['any']],
  UpdateAssumeRolePolicy: [['role']],
  UpdateGroup: [['group']],
  UpdateLoginProfile: [['user']],
  UpdateRole: [['role']],
  UpdateRoleDescription: [['role']],
  UpdateUser: [['user']],
};

const SESSION_KEYS = [...TAGGED, ...TAGS_OF, 'sts:TransitiveTagKeys'] as const;

const STS_ACTIONS: Readonly<Record<string, IdentityAction>> = {
  AssumeRole: [['role'], [...SESSION_KEYS, 'sts:ExternalId', 'sts:RoleSessionName', 'sts:SourceIdentity']],
  GetCallerIdentity: [['any']],
  GetSessionToken: [['any']],
  SetSourceIdentity: [['role'], [...TAGS_OF, 'sts:SourceIdentity']],
  TagSession: [['role'], SESSION_KEYS],
};

/** What the endpoints of the operator API ask for, each of no resource: the operation ids of its OpenAPI document. */
export const OPERATOR_ACTIONS: readonly string[] = [
  'AcceptClock',
  'BeginFsck',
  'CancelFsck',
  'ChangeAccessKey',
  'ChangeAccount',
  'ChangeMember',
  'ChangePartner',
  'ChangePartnerUser',
  'ChangeSubAccount',
  'CloseInvoices',
  'CreateAccessKey',
  'CreateAccount',
  'CreateMember',
  'CreatePartner',
  'CreatePartnerKey',
  'CreatePartnerUser',
  'CreateSubAccount',
  'DeleteAccessKey',
  'DeleteAccount',
  'DeleteMember',
  'DeletePartnerKey',
  'DeleteSubAccount',
  'FindInvoices',
  'GetAccount',
  'GetAccountQuota',
  'GetBucketCompliance',
  'GetBucketEvents',
  'GetBucketLifecycleStatus',
  'GetBucketQuota',
  'GetClock',
  'GetComposed',
  'GetComposedBehind',
  'GetFsck',
  'GetInvoiceDocument',
  'GetJobs',
  'GetKeys',
  'GetMember',
  'GetOpenApi',
  'GetStatus',
  'GetSubAccount',
  'GetUsage',
  'ListAccessKeys',
  'ListAccounts',
  'ListMails',
  'ListMembers',
  'ListPartnerUsers',
  'ListPartners',
  'ListPriceLists',
  'ListSubAccounts',
  'ListUsage',
  'PreviewBucketLifecycle',
  'PreviewInvoices',
  'ReadEvents',
  'RecountUsage',
  'ResetMfa',
  'RemoveKey',
  'RotateKeys',
  'SendMail',
  'SetAccountQuota',
  'SetBucketEvents',
  'SetBucketQuota',
  'SetPriceList',
  'TakeEvents',
  'UnlockBucketCompliance',
  'WriteMail',
];

/**
 * What a request to one of those endpoints asks for beside: it shows or writes more than the endpoint's name says. None begins with
 * Get or List, so that a policy for readers, which allows `holdfast:Get*`, allows none of them.
 */
export const SECOND_ACTIONS = ['RepairUsage', 'ShowSecretKeys'] as const;

export type SecondAction = (typeof SECOND_ACTIONS)[number];

function s3Rows(names: Readonly<Record<string, Keys>>, type: ResourceType, isInert = false): ActionRow[] {
  return Object.entries(names).map(([name, keys]) => ({
    action: `s3:${name}`,
    resources: [type],
    keys: [...S3_REQUEST_KEYS, ...keys],
    isInert,
  }));
}

function identityRows(service: string, names: Readonly<Record<string, IdentityAction>>): ActionRow[] {
  return Object.entries(names).map(([name, [resources, keys = []]]) => ({
    action: `${service}:${name}`,
    resources,
    keys: service === 'iam' && !resources.includes('any') ? [...new Set([...TAGS_OF, ...keys])] : keys,
    isInert: false,
  }));
}

const withoutKeys = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, []]));

/** All of them, by service and name. */
export const ACTIONS: readonly ActionRow[] = [
  ...s3Rows({ ListAllMyBuckets: [] }, 'any'),
  ...s3Rows(BUCKET_ACTIONS, 'bucket'),
  ...s3Rows(OBJECT_ACTIONS, 'object'),
  ...s3Rows(withoutKeys(['GetAccountPublicAccessBlock', 'PutAccountPublicAccessBlock']), 'any', true),
  ...s3Rows(withoutKeys(INERT_BUCKET_ACTIONS), 'bucket', true),
  ...s3Rows(withoutKeys(INERT_OBJECT_ACTIONS), 'object', true),
  ...identityRows('iam', IAM_ACTIONS),
  ...identityRows('sts', STS_ACTIONS),
  ...identityRows(
    'holdfast',
    Object.fromEntries(
      [...OPERATOR_ACTIONS, ...SECOND_ACTIONS].map((name): [string, IdentityAction] => [name, [['any']]]),
    ),
  ),
];

const BY_NAME = new Map(ACTIONS.map((row) => [row.action.toLowerCase(), row]));

/** Names of actions are the same in any case. */
export function findAction(action: string): ActionRow | undefined {
  return BY_NAME.get(action.toLowerCase());
}

const KEYS_BY_ACTION = new Map(
  ACTIONS.map(({ action, keys }) => [action, new Set(keys.map((name) => name.toLowerCase()))]),
);

/** Whether a request for the action has the condition key of S3; both as they are asked for: `s3:PutObject`, `s3:prefix`. */
export function hasKey(action: string, key: string): boolean {
  return KEYS_BY_ACTION.get(action)?.has(familyOf(key)) ?? false;
}

/** Actions that the root of the bucket's account may always take, so that it can repair a policy (s3-behaviour 24). */
export const REPAIR_ACTIONS: ReadonlySet<string> = new Set([
  's3:GetBucketPolicy',
  's3:PutBucketPolicy',
  's3:DeleteBucketPolicy',
]);

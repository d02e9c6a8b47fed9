// Managed policies that every account has without making them, under the ARNs of AWS's: what programs written for AWS attach by
// name. What they allow is what AWS's of that name allow of the services that are here; the texts are this service's own.

export interface ReadyMadePolicy {
  readonly arn: string;
  readonly id: string;
  readonly name: string;
  readonly path: '/';
  readonly description: string;
  /** Of its only version, `v1`. */
  readonly text: string;
}

/** When the first of them were made. They never change: one that did would get another version. */
export const READY_MADE_SINCE_MS = Date.UTC(2026, 0, 1);

const ARN_PREFIX = 'arn:aws:iam::aws:policy/';

interface Allowance {
  readonly Action: readonly string[];
  readonly Resource: string;
}

const TABLE: Readonly<Record<string, { description: string; allowances: readonly Allowance[] }>> = {
  AdministratorAccess: {
    description: 'Allows everything in the account.',
    allowances: [{ Action: ['*'], Resource: '*' }],
  },
  AmazonS3FullAccess: {
    description: 'Allows everything with all buckets and objects.',
    allowances: [{ Action: ['s3:*'], Resource: '*' }],
  },
  AmazonS3ReadOnlyAccess: {
    description: 'Allows reading and listing all buckets and objects.',
    allowances: [{ Action: ['s3:Get*', 's3:List*'], Resource: '*' }],
  },
  IAMFullAccess: {
    description: 'Allows everything with users, groups, roles and policies.',
    allowances: [{ Action: ['iam:*'], Resource: '*' }],
  },
  IAMReadOnlyAccess: {
    description: 'Allows looking at users, groups, roles and policies, and simulating them.',
    allowances: [{ Action: ['iam:Get*', 'iam:List*', 'iam:Simulate*'], Resource: '*' }],
  },
  IAMUserChangePassword: {
    description: 'Allows a user to change its own password, and to see the rules for passwords.',
    allowances: [
      { Action: ['iam:ChangePassword'], Resource: `arn:aws:iam::*:user/${'${aws:username}'}` },
      { Action: ['iam:GetAccountPasswordPolicy'], Resource: '*' },
    ],
  },
  ReadOnlyAccess: {
    description: 'Allows looking at everything in the account, and changing nothing.',
    allowances: [
      {
        Action: [
          's3:Get*',
          's3:List*',
          'iam:Get*',
          'iam:List*',
          'iam:Simulate*',
          'sts:GetCallerIdentity',
          'sts:GetSessionToken',
        ],
        Resource: '*',
      },
    ],
  },
};

/** By name, in order. */
export const READY_MADE_POLICIES: readonly ReadyMadePolicy[] = Object.entries(TABLE).map(
  ([name, { description, allowances }], at) => ({
    arn: ARN_PREFIX + name,
    id: `ANPAREADYMADEPOLICY${String(at + 1).padStart(2, '0')}`,
    name,
    path: '/',
    description,
    text: JSON.stringify(
      {
        Version: '2012-10-17',
        Statement: allowances.map(({ Action, Resource }) => ({ Effect: 'Allow', Action, Resource })),
      },
      null,
      2,
    ),
  }),
);

const BY_ARN = new Map(READY_MADE_POLICIES.map((policy) => [policy.arn, policy]));

/** undefined: the ARN is of an account's own policy, or of none. */
export function findReadyMadePolicy(arn: string): ReadyMadePolicy | undefined {
  return BY_ARN.get(arn);
}

export function isReadyMadeArn(arn: string): boolean {
  return arn.startsWith(ARN_PREFIX);
}

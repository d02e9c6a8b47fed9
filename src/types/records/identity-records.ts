// The identities of an account as the system shard keeps them: users, groups, roles, policies, MFA devices and settings of the
// account. A row is found by account and key (`identityKeys`); the keys of indices name what a change would otherwise have to
// search for. Reading and changing them: the query `read-identities` and the command `change-identities`.
import { defineRecord } from '../../base/record-codec.ts';
import type { Tag } from '../tags.ts';
import type { WrappedKek } from '../version.ts';

/** A policy that is part of its user, group or role. */
export interface InlinePolicy {
  name: string;
  /** Byte for byte as it was put. */
  text: string;
}

interface NamedIdentity {
  /** Unique for ever: AIDA..., AGPA..., AROA..., ANPA.... */
  id: string;
  /** As it was given; names that differ in case only are the same name. */
  name: string;
  /** Begins and ends with a slash. */
  path: string;
  createdAtMs: number;
}

/** What policies are put on. */
interface PolicyHolder extends NamedIdentity {
  inlinePolicies: InlinePolicy[];
  /** ARNs of managed policies. */
  attachedPolicies: string[];
}

export interface UserRecord extends PolicyHolder {
  kind: 'user';
  tags: Tag[];
  /** Ids of its groups: their names may change. */
  groups: string[];
  /** ARN of a managed policy. */
  boundary?: string;
  accessKeys: { accessKey: string; isActive: boolean; createdAtMs: number }[];
  loginProfile?: {
    createdAtMs: number;
    /** scrypt, with its parameters and salt. */
    passwordHash: string;
    mustReset: boolean;
    /** Hashes of the passwords before, the newest first, where the account's rule forbids their use. */
    earlierHashes?: string[];
    changedAtMs: number;
  };
  /** Names of its enabled MFA devices. */
  mfaDevices: string[];
}

export interface GroupRecord extends PolicyHolder {
  kind: 'group';
}

export interface RoleRecord extends PolicyHolder {
  kind: 'role';
  description?: string;
  trustPolicy: string;
  /** The ids of the users and roles that it meant when it was put, by ARN. Absent: of older roles. */
  trustedIds?: Record<string, string>;
  maxSessionSeconds: number;
  tags: Tag[];
  boundary?: string;
}

export interface ManagedPolicyRecord extends NamedIdentity {
  kind: 'policy';
  description?: string;
  tags: Tag[];
  updatedAtMs: number;
  /** By number, ascending; texts are in rows of their own. */
  versions: { number: number; createdAtMs: number }[];
  defaultVersion: number;
  /** Numbers are never used twice. */
  nextVersion: number;
}

export interface PolicyVersionRecord {
  kind: 'policy-version';
  text: string;
}

/** When sessions of a role were used last (AWS "RoleLastUsed"), under `identityKeys.roleUse`; noted once in a while only. */
export interface RoleUseRecord {
  kind: 'role-use';
  atMs: number;
  region: string;
}

/** How often a managed policy is used, ready-made ones as well; absent: not at all. */
export interface PolicyUsageRecord {
  kind: 'policy-usage';
  attachedCount: number;
  boundedCount: number;
}

export interface MfaDeviceRecord {
  kind: 'mfa-device';
  name: string;
  path: string;
  createdAtMs: number;
  /** 32 bytes of chance, wrapped by the master key: the seed is its first 20 bytes (RFC 4226). */
  sealedSeed: WrappedKek;
  tags: Tag[];
  /**
   * Present while it is enabled. `owner`: the user's id, or `root`. `isUnvouched`: no second factor stood behind whoever enabled
   * it, though the account's root had a device. Its codes are good for conditions of policies, not for MFA delete: else a key
   * of long term alone could give itself the second factor.
   */
  enabled?: { owner: string; atMs: number; isUnvouched?: true };
  /** The last time step whose code was used: a code is used once (RFC 6238 5.2). */
  usedStep?: number;
  /** How many steps its clock is ahead, as the last resynchronisation found. */
  driftSteps?: number;
}

export interface IdentitySettingsRecord {
  kind: 'settings';
  alias?: string;
  passwordPolicy?: PasswordPolicy;
  /** Name of the root's enabled MFA devices. */
  rootMfaDevices: string[];
  /** How the root of a sub-account signs in by hand. */
  rootLogin?: { passwordHash: string; mustReset: boolean; changedAtMs: number };
  /** The link that sets the root's password, once: SHA-256 of its token, in hex, and whom it was mailed to. */
  passwordReset?: { tokenHash: string; expiresAtMs: number; to?: string };
  /** How many there are, for quotas and the account's summary; absent: none. */
  counts?: { user?: number; group?: number; role?: number; policy?: number; mfaDevice?: number };
}

/** AWS "UpdateAccountPasswordPolicy": absent fields are off. */
export interface PasswordPolicy {
  minimumLength: number;
  requireSymbols: boolean;
  requireNumbers: boolean;
  requireUppercase: boolean;
  requireLowercase: boolean;
  mayChangeOwn: boolean;
  maxAgeDays?: number;
  /** Earlier passwords that may not be used again. */
  rememberedCount?: number;
  hardExpiry?: boolean;
}

/** Of an index: the key of the row that it leads to, or nothing where the key says all. */
export interface IdentityIndexRecord {
  kind: 'index';
  to?: string;
}

export type IdentityRecord =
  | UserRecord
  | GroupRecord
  | RoleRecord
  | ManagedPolicyRecord
  | PolicyVersionRecord
  | PolicyUsageRecord
  | RoleUseRecord
  | MfaDeviceRecord
  | IdentitySettingsRecord
  | IdentityIndexRecord;

export type IdentityKind = IdentityRecord['kind'];

export const identityCodec = defineRecord<IdentityRecord>({ name: 'identity', version: 1 });

export type HolderKind = 'user' | 'group' | 'role';

/** Keys of rows. Names are compared without case, as AWS does. A prefix for a range is a key with an empty last part. */
export const identityKeys = {
  user: (name: string) => `user/${name.toLowerCase()}`,
  group: (name: string) => `group/${name.toLowerCase()}`,
  role: (name: string) => `role/${name.toLowerCase()}`,
  policy: (name: string) => `policy/${name.toLowerCase()}`,
  policyVersion: (policy: string, number: number) => `version/${policy.toLowerCase()}/${number}`,
  policyUsage: (arn: string) => `usage/${arn}`,
  roleUse: (id: string) => `used/${id}`,
  mfaDevice: (name: string) => `mfa/${name.toLowerCase()}`,
  settings: 'settings',
  /** Index: the row of a user, group or role by its id. */
  id: (id: string) => `id/${id}`,
  /** Index: a user in a group. */
  member: (groupId: string, user: string) => `member/${groupId}/${user.toLowerCase()}`,
  /** Index: who has a managed policy attached. ARNs are compared as they are. */
  attached: (arn: string, kind: HolderKind | '', name: string) =>
    `attached/${arn}|${kind}${kind === '' ? '' : `/${name.toLowerCase()}`}`,
  /** Index: who has it as a permissions boundary. */
  bounded: (arn: string, kind: HolderKind | '', name: string) =>
    `bounded/${arn}|${kind}${kind === '' ? '' : `/${name.toLowerCase()}`}`,
} as const;

/** When an access key was used last (AWS "GetAccessKeyLastUsed"); noted once in a while only. */
export interface KeyUseRecord {
  atMs: number;
  region: string;
  service: string;
}
export const keyUseCodec = defineRecord<KeyUseRecord>({ name: 'key-use', version: 1 });

/** A user or role with all that decides what it may do, as the shard read it at one moment. */
export interface StoredPrincipal {
  entity: UserRecord | RoleRecord;
  groups: GroupRecord[];
  /** Texts of the managed policies that entity, groups and boundary name, where they are the account's own; by ARN. */
  policies: { arn: string; text: string }[];
}

// The condition keys that have a value here: one row each, with its type and what it is. Which actions have which of the keys
// of S3, IAM and STS stands in actions.ts; the global ones hold for all. Where the values come from is the caller's.

export type KeyType = 'string' | 'numeric' | 'date' | 'bool' | 'ip' | 'arn';

export interface ConditionKeyRow {
  /** As AWS writes it; with `/` at its end a family, each member of which is named by a tag's key. */
  readonly name: string;
  readonly type: KeyType;
  /** A request has a list of values, to be asked by ForAnyValue and ForAllValues. */
  readonly hasMany?: true;
  /** One line for the docs. */
  readonly help: string;
}

export const GLOBAL_KEYS = [
  { name: 'aws:CurrentTime', type: 'date', help: 'when the request came' },
  { name: 'aws:EpochTime', type: 'date', help: 'the same in seconds since 1970' },
  { name: 'aws:SourceIp', type: 'ip', help: "the client's address, as far as proxies can be believed" },
  { name: 'aws:SecureTransport', type: 'bool', help: 'whether the request came by TLS' },
  { name: 'aws:UserAgent', type: 'string', help: 'the User-Agent header' },
  { name: 'aws:Referer', type: 'string', help: 'the Referer header' },
  {
    name: 'aws:PrincipalArn',
    type: 'arn',
    help: 'of the user, of the role of a session, or of the account root',
  },
  { name: 'aws:PrincipalAccount', type: 'string', help: "the caller's account" },
  { name: 'aws:PrincipalType', type: 'string', help: 'Account, User, AssumedRole or Anonymous' },
  { name: 'aws:PrincipalTag/', type: 'string', help: 'a tag of the user, role or session' },
  { name: 'aws:userid', type: 'string', help: "the caller's unique id; of a session, ROLEID:SESSIONNAME" },
  { name: 'aws:username', type: 'string', help: "a user's name; sessions of roles and roots have none" },
  {
    name: 'aws:MultiFactorAuthPresent',
    type: 'bool',
    help: 'of temporary credentials: whether MFA stood behind them',
  },
  {
    name: 'aws:MultiFactorAuthAge',
    type: 'numeric',
    help: 'seconds since that; absent without MFA',
  },
  { name: 'aws:TokenIssueTime', type: 'date', help: 'of temporary credentials: when they were made' },
  { name: 'aws:ResourceAccount', type: 'string', help: 'the account that owns the resource' },
  { name: 'aws:SourceIdentity', type: 'string', help: 'of sessions: as AssumeRole was told' },
  { name: 'aws:RequestTag/', type: 'string', help: 'a tag that the request gives' },
  {
    name: 'aws:TagKeys',
    type: 'string',
    hasMany: true,
    help: 'the keys of the tags that the request gives, as it writes them: `Admin` is the tag `admin`, so deny with StringEqualsIgnoreCase',
  },
  { name: 'aws:ResourceTag/', type: 'string', help: 'a tag of the user, role or policy that is acted on' },
] as const satisfies readonly ConditionKeyRow[];

export const S3_KEYS = [
  { name: 's3:authType', type: 'string', help: 'REST-HEADER, REST-QUERY-STRING or POST' },
  { name: 's3:signatureversion', type: 'string', help: 'AWS (V2) or AWS4-HMAC-SHA256' },
  {
    name: 's3:signatureAge',
    type: 'numeric',
    help: 'milliseconds since the request was signed; 0 with SigV2, as AWS has it: deny s3:signatureversion AWS beside a bound',
  },
  { name: 's3:TlsVersion', type: 'numeric', help: '1.2 or 1.3' },
  { name: 's3:x-amz-content-sha256', type: 'string', help: 'the header of that name' },
  { name: 's3:ResourceAccount', type: 'string', help: 'the account that owns the bucket' },
  { name: 's3:prefix', type: 'string', help: 'the prefix of a listing' },
  { name: 's3:delimiter', type: 'string', help: 'the delimiter of a listing' },
  { name: 's3:max-keys', type: 'numeric', help: 'how many keys a listing asks for' },
  { name: 's3:VersionId', type: 'string', help: 'the version that the request names' },
  { name: 's3:LocationConstraint', type: 'string', help: 'as CreateBucket has it' },
  { name: 's3:x-amz-acl', type: 'string', help: 'the canned ACL that the request gives' },
  { name: 's3:x-amz-grant-full-control', type: 'string', help: 'the header of that name' },
  { name: 's3:x-amz-grant-read', type: 'string', help: 'the header of that name' },
  { name: 's3:x-amz-grant-read-acp', type: 'string', help: 'the header of that name' },
  { name: 's3:x-amz-grant-write', type: 'string', help: 'the header of that name' },
  { name: 's3:x-amz-grant-write-acp', type: 'string', help: 'the header of that name' },
  {
    name: 's3:x-amz-copy-source',
    type: 'string',
    help: 'what is copied, renamed or, each by itself, composed: BUCKET/KEY or BUCKET/KEY?versionId=ID; of a prefix that is renamed it is not known: a condition denies, and does not allow',
  },
  {
    name: 's3:x-amz-metadata-directive',
    type: 'string',
    help: 'COPY or REPLACE, of copies (CopyObject) alone',
  },
  { name: 's3:x-amz-storage-class', type: 'string', help: 'the storage class that the request gives' },
  { name: 's3:x-amz-server-side-encryption', type: 'string', help: 'the header of that name' },
  {
    name: 's3:x-amz-server-side-encryption-customer-algorithm',
    type: 'string',
    help: 'the header of that name; bucket policies do not take it under Null (service 4.6)',
  },
  { name: 's3:ExistingObjectTag/', type: 'string', help: 'a tag of the object that is stored' },
  { name: 's3:RequestObjectTag/', type: 'string', help: 'a tag that the request gives the object' },
  { name: 's3:RequestObjectTagKeys', type: 'string', hasMany: true, help: 'the keys of those tags' },
  { name: 's3:object-lock-mode', type: 'string', help: 'GOVERNANCE or COMPLIANCE' },
  { name: 's3:object-lock-retain-until-date', type: 'date', help: 'as the request gives it' },
  {
    name: 's3:object-lock-remaining-retention-days',
    type: 'numeric',
    help: 'whole days from now to that date',
  },
  { name: 's3:object-lock-legal-hold', type: 'string', help: 'ON or OFF' },
  { name: 's3:if-match', type: 'string', help: 'the header of that name' },
  {
    name: 's3:if-none-match',
    type: 'string',
    help: 'the header of that name; only `*` keeps what is there from being overwritten, an ETag does not',
  },
] as const satisfies readonly ConditionKeyRow[];

export const IDENTITY_KEYS = [
  { name: 'iam:PolicyARN', type: 'arn', help: 'the managed policy that is attached or detached' },
  { name: 'iam:PermissionsBoundary', type: 'arn', help: 'the boundary that the user or role gets or has' },
  { name: 'iam:ResourceTag/', type: 'string', help: 'a tag of the user or role that is acted on' },
  { name: 'sts:ExternalId', type: 'string', help: 'as AssumeRole gives it' },
  { name: 'sts:RoleSessionName', type: 'string', help: 'the name of the session that is begun' },
  { name: 'sts:SourceIdentity', type: 'string', help: 'as AssumeRole gives it' },
  { name: 'sts:TransitiveTagKeys', type: 'string', hasMany: true, help: 'as AssumeRole gives them' },
] as const satisfies readonly ConditionKeyRow[];

/** Of the vendor whose extensions these are (extensions 3.3). */
export const VENDOR_KEYS = [
  { name: 'aws:accountid', type: 'string', help: 'as aws:PrincipalAccount' },
] as const satisfies readonly ConditionKeyRow[];

export type ConditionKeyName = (
  | (typeof GLOBAL_KEYS)[number]
  | (typeof S3_KEYS)[number]
  | (typeof IDENTITY_KEYS)[number]
  | (typeof VENDOR_KEYS)[number]
)['name'];

export const CONDITION_KEYS: readonly (ConditionKeyRow & { readonly name: ConditionKeyName })[] = [
  ...GLOBAL_KEYS,
  ...S3_KEYS,
  ...IDENTITY_KEYS,
  ...VENDOR_KEYS,
];

/** What `aws:userid` is of callers who are not known (AWS "AWS global condition context keys"). */
export const ANONYMOUS_USER_ID = 'anonymous';

const BY_NAME = new Map(CONDITION_KEYS.map((row) => [row.name.toLowerCase(), row]));

/**
 * A key as it is asked for: names of keys are the same in any case, the tag's key behind the `/` stays as it is
 * (AWS "IAM JSON policy elements: Condition").
 */
export function normalizeKey(key: string): string {
  const slash = key.indexOf('/');
  return slash < 0 ? key.toLowerCase() : key.slice(0, slash + 1).toLowerCase() + key.slice(slash + 1);
}

/** The row of a normalized key; a family has none for an empty tag's key. */
export function findConditionKey(key: string): (typeof CONDITION_KEYS)[number] | undefined {
  const slash = key.indexOf('/');
  if (slash < 0) return BY_NAME.get(key);
  return slash === key.length - 1 ? undefined : BY_NAME.get(key.slice(0, slash + 1));
}

/** A normalized key as AWS writes it, where it is known. */
export function displayKey(key: string): string {
  const name = findConditionKey(key)?.name;
  return name === undefined ? key : name + key.slice(name.length);
}

/** The family that a normalized key belongs to, as `s3:existingobjecttag/`; of others the key itself. */
export function familyOf(key: string): string {
  const slash = key.indexOf('/');
  return slash < 0 ? key : key.slice(0, slash + 1);
}

/** The value for a tag's key: of the tag of that very key, else of one that differs in case alone. */
export function tagValue(
  tags: readonly { readonly key: string; readonly value: string }[],
  tagKey: string,
): string | undefined {
  const folded = tagKey.toLowerCase();
  const found =
    tags.find(({ key }) => key === tagKey) ?? tags.find(({ key }) => key.toLowerCase() === folded);
  return found?.value;
}

// STS (AWS Security Token Service): who a caller is, and temporary credentials. They are sealed in their token (auth/sessions.ts):
// nothing of a session is stored.

import { withIdentities } from '../../accounts/identity-store.ts';
import { mintIdentityId, mintKeyPair } from '../../accounts/mint-keys.ts';
import { must } from '../../base/assert.ts';
import { ownValue } from '../../base/own-value.ts';
import { xmlElement, xmlText } from '../../base/xml/write-xml.ts';
import { tagValue } from '../../policy/condition-keys.ts';
import { compilePolicy, countCharacters, POLICY_SIZES } from '../../policy/documents/compile-policy.ts';
import type { ContextOf } from '../../policy/patterns.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import type { AccountId } from '../../types/names.ts';
import { identityKeys, type RoleRecord } from '../../types/records/identity-records.ts';
import type { Tag } from '../../types/tags.ts';
import { roleArn, userIdOf } from '../auth/principal.ts';
import { requireSmall, type Session } from '../auth/sessions.ts';
import type { ServiceDependencies } from '../http/service-route.ts';
import { authorizeAction, type IdentityCaller } from './authorize-action.ts';
import { checkTags, policyArn, tags } from './identity-parameters.ts';
import { findManagedPolicy, findVersionText, isPolicyArn } from './managed-policies.ts';
import {
  integer,
  list,
  orElse,
  readValues,
  required,
  structures,
  text,
  type ValuesOf,
  validationError,
} from './parameter-rules.ts';
import { type QueryApi, xmlTime } from './query-protocol.ts';
import { createQueryService, type QueryAction } from './query-service.ts';

export const STS: QueryApi = { service: 'sts', version: '2011-06-15' };

const HOUR_SECONDS = 3600;
const SESSION_SECONDS_MIN = 900;
/** extensions 3.2 */
const TOKEN_SECONDS = { max: 129_600, standard: 43_200 } as const;
const ROLE_SECONDS_MAX = 43_200;
/** Managed policies of one session. */
const SESSION_POLICIES_MAX = 10;

const mfaParameters = {
  SerialNumber: text({ charactersMin: 9, charactersMax: 256, pattern: /^[\w+=/:,.@-]*$/ }),
  TokenCode: text({ charactersMin: 6, charactersMax: 6, pattern: /^[\d]*$/, isSecret: true }),
} as const;

const sessionName = text({ charactersMin: 2, charactersMax: 64, pattern: /^[\w+=,.@-]*$/ });

const getCallerIdentity: QueryAction = {
  name: 'GetCallerIdentity',
  // Whoever signs may know who signs.
  async perform({ caller: { account, principal, identity } }) {
    return [
      xmlText('Arn', principal.arn),
      xmlText('UserId', userIdOf(identity, account.accountId)),
      xmlText('Account', account.accountId),
    ].join('');
  },
};

const sessionTokenParameters = {
  DurationSeconds: orElse(
    integer({ min: SESSION_SECONDS_MIN, max: TOKEN_SECONDS.max }),
    TOKEN_SECONDS.standard,
  ),
  ...mfaParameters,
} as const;

const getSessionToken: QueryAction = {
  name: 'GetSessionToken',
  // It needs no right, because it gives none (AWS "Requesting temporary security credentials").
  async perform({ deps, caller, sent }) {
    const values = readValues(sessionTokenParameters, sent);
    const { identity, account, accessKey } = caller;
    if (identity.session !== undefined)
      throw new AppError('AccessDenied', { message: 'Cannot call GetSessionToken with session credentials' });
    const mfa = await checkMfa(deps, caller, values);
    const isRoot = identity.id === 'root';
    const seconds = isRoot ? Math.min(values.DurationSeconds, HOUR_SECONDS) : values.DurationSeconds;
    const session: Session = {
      ...mintSession(deps, seconds),
      kind: isRoot ? 'root' : 'user',
      accountId: account.accountId,
      id: identity.id,
      ...issuerOf({ identity, account, accessKey }),
      ...mfa,
    };
    return credentialsXml(session, deps.identities.sessions.seal(session));
  },
};

const assumeRoleParameters = {
  RoleArn: required(policyArn),
  RoleSessionName: required(sessionName),
  DurationSeconds: orElse(integer({ min: SESSION_SECONDS_MIN, max: ROLE_SECONDS_MAX }), HOUR_SECONDS),
  ExternalId: text({ charactersMin: 2, charactersMax: 1224, pattern: /^[\w+=,.@:/-]*$/ }),
  Policy: text({ charactersMax: POLICY_SIZES.documentCharactersMax }),
  PolicyArns: structures({ arn: required(policyArn) }, { countMax: SESSION_POLICIES_MAX }),
  SourceIdentity: sessionName,
  Tags: tags,
  TransitiveTagKeys: list(text({ charactersMax: LIMITS.tagKeyUnitsMax }), {
    countMax: LIMITS.identityTagsMax,
  }),
  ...mfaParameters,
} as const;

type AssumeRole = ValuesOf<typeof assumeRoleParameters>;

const assumeRole: QueryAction = {
  name: 'AssumeRole',
  async perform({ deps, caller, sent }) {
    const values = readValues(assumeRoleParameters, sent);
    const { RoleArn, DurationSeconds, RoleSessionName } = values;
    if (caller.principal.kind === 'root')
      throw new AppError('AccessDenied', { message: 'Roles may not be assumed by root accounts.' });
    const { session: before } = caller.identity;
    const isChained = before?.kind === 'role';
    if (isChained && DurationSeconds > HOUR_SECONDS) {
      throw validationError(
        'The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining',
      );
    }
    const inherited = inheritedTags(before);
    const sessionTags = mergeSessionTags(inherited, values.Tags ?? []);
    const sourceIdentity = sourceIdentityOf(values, before);
    const role = await findRole(deps, RoleArn);
    const mfa = await checkMfa(deps, caller, values);
    const transitive = [...inherited.map(({ key }) => key), ...(values.TransitiveTagKeys ?? [])];
    const session = { tags: sessionTags, transitive };
    await authorizeAll(deps, caller, { values, role, session, sourceIdentity, mfaAtMs: mfa?.mfaAtMs });
    if (role === undefined) throw validationError(`${RoleArn} is invalid`);
    if (DurationSeconds > role.record.maxSessionSeconds) {
      throw validationError(
        'The requested DurationSeconds exceeds the MaxSessionDuration set for this role.',
      );
    }
    const policies = await sessionPolicies(deps, role.accountId, values);
    const minted: Session = {
      ...mintSession(deps, DurationSeconds),
      kind: 'role',
      accountId: role.accountId,
      id: role.record.id,
      ...issuerOf(caller),
      name: RoleSessionName,
      ...mfa,
      ...(mfa && role.accountId !== caller.account.accountId && { isMfaUnvouched: true }),
      ...(policies && { policies }),
      ...(sessionTags.length > 0 && { tags: sessionTags }),
      ...(transitive.length > 0 && { transitiveTagKeys: transitive }),
      ...(sourceIdentity !== undefined && { sourceIdentity }),
    };
    const arn = `arn:aws:sts::${role.accountId}:assumed-role/${role.record.name}/${RoleSessionName}`;
    return [
      credentialsXml(minted, deps.identities.sessions.seal(minted)),
      xmlElement(
        'AssumedRoleUser',
        xmlText('AssumedRoleId', `${role.record.id}:${RoleSessionName}`),
        xmlText('Arn', arn),
      ),
      xmlText('SourceIdentity', sourceIdentity),
    ].join('');
  },
};

/** What a session hangs on beside its own role: the key of long term that stands behind the caller, and roles on the way. */
function issuerOf({
  identity,
  account: { accountId },
  accessKey,
}: Pick<IdentityCaller, 'identity' | 'account' | 'accessKey'>): Pick<
  Session,
  'issuer' | 'issuerKey' | 'through'
> {
  const { session, id: principalId, keyCreatedAtMs } = identity;
  if (session === undefined) {
    const createdAtMs = must(keyCreatedAtMs, 'who has no session has signed with a key of long term');
    return { issuer: accessKey, issuerKey: { accountId, principalId, createdAtMs } };
  }
  const { issuer, issuerKey, kind, id, through: before = [] } = session;
  const isNew = kind === 'role' && !before.some((role) => role.accountId === accountId && role.id === id);
  const through = isNew ? [...before, { accountId: session.accountId, id }] : before;
  return { issuer, ...(issuerKey && { issuerKey }), ...(through.length > 0 && { through }) };
}

interface Role {
  readonly accountId: AccountId;
  readonly record: RoleRecord;
}

const ROLE_ARN = /^arn:aws:iam::([0-9]{12}):role\/(?:[\x21-\x7e]*\/)?([\w+=,.@-]{1,64})$/;

async function findRole(deps: ServiceDependencies, arn: string): Promise<Role | undefined> {
  const [, accountId, name] = ROLE_ARN.exec(arn) ?? [];
  if (accountId === undefined || name === undefined) {
    throw validationError(`${arn} is invalid`);
  }
  const record = await withIdentities(deps, accountId as AccountId, (store) =>
    store.find('role', identityKeys.role(name)),
  );
  if (record === undefined || roleArn(accountId, record) !== arn) return undefined;
  return { accountId: accountId as AccountId, record };
}

interface AskedRole {
  values: AssumeRole;
  role: Role | undefined;
  /** Tags that the session is going to have, by its caller's own session, too. */
  session: { tags: readonly Tag[]; transitive: readonly string[] };
  sourceIdentity: string | undefined;
  mfaAtMs: number | undefined;
}

/** Who may not assume a role learns nothing of whether it exists. */
async function authorizeAll(
  deps: ServiceDependencies,
  caller: IdentityCaller,
  asked: AskedRole,
): Promise<void> {
  const { values, role, session, sourceIdentity } = asked;
  const { RoleArn: resource } = values;
  const text = role?.record.trustPolicy ?? NOBODY;
  const { accountId } = caller.account;
  const trustPolicy = await deps.identities.policies.named({
    name: resource,
    text,
    type: 'trust',
    accountId,
    ids: role?.record.trustedIds,
  });
  const resourceAccount = role?.accountId ?? ROLE_ARN.exec(resource)?.[1] ?? '';
  const contextOf = assumeContext(asked);
  const question = { resource, resourceAccount, trustPolicy, contextOf };
  await authorizeAction(caller, { ...question, action: 'sts:AssumeRole' });
  if (session.tags.length > 0 || session.transitive.length > 0)
    await authorizeAction(caller, { ...question, action: 'sts:TagSession' });
  if (sourceIdentity !== undefined)
    await authorizeAction(caller, { ...question, action: 'sts:SetSourceIdentity' });
}

/** The trust policy of a role that is not there. */
const NOBODY = JSON.stringify({
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: { AWS: '000000000000' }, Action: 'sts:AssumeRole' }],
});

function assumeContext({ values, role, session, sourceIdentity, mfaAtMs }: AskedRole): ContextOf {
  const { ExternalId, RoleSessionName } = values;
  const fixed: Readonly<Record<string, string | readonly string[] | undefined>> = {
    'sts:externalid': ExternalId,
    'sts:rolesessionname': RoleSessionName,
    'sts:sourceidentity': sourceIdentity,
    'sts:transitivetagkeys': session.transitive,
    'aws:tagkeys': session.tags.map(({ key }) => key),
    // The code of this very request.
    ...(mfaAtMs !== undefined && { 'aws:multifactorauthpresent': 'true', 'aws:multifactorauthage': '0' }),
  };
  return (key) => {
    const slash = key.indexOf('/');
    const family = slash === -1 ? key : key.slice(0, slash);
    const tag = key.slice(slash + 1);
    if (family === 'aws:requesttag') return tagValue(session.tags, tag);
    if (family === 'aws:resourcetag' || family === 'iam:resourcetag')
      return tagValue(role?.record.tags ?? [], tag);
    return ownValue(fixed, key);
  };
}

/** Who was there first stays so through all roles (AWS "Monitor and control actions taken with assumed roles"). AccessDenied. */
function sourceIdentityOf({ SourceIdentity: given }: AssumeRole, before: Session | undefined) {
  const first = before?.sourceIdentity;
  if (first === undefined || given === undefined || given === first) return given ?? first;
  throw new AppError('AccessDenied', { message: 'The source identity of a session cannot be changed.' });
}

/** Tags of a session that are handed on (AWS "Chaining roles with session tags"). */
function inheritedTags(session: Session | undefined): readonly Tag[] {
  const handedOn = new Set((session?.transitiveTagKeys ?? []).map((key) => key.toLowerCase()));
  return (session?.tags ?? []).filter(({ key }) => handedOn.has(key.toLowerCase()));
}

/** Throws InvalidParameterValue for a tag that the session before has handed on. */
function mergeSessionTags(inherited: readonly Tag[], given: readonly Tag[]): readonly Tag[] {
  checkTags(given);
  const handedOn = new Set(inherited.map(({ key }) => key.toLowerCase()));
  if (given.some(({ key }) => handedOn.has(key.toLowerCase()))) {
    const message =
      "One of the specified transitive tag keys can't be set because it conflicts with a transitive tag key from the calling session.";
    throw new AppError('InvalidParameterValue', { message });
  }
  return [...inherited, ...given];
}

/** Throws MalformedPolicyDocument, PackedPolicyTooLarge, and ValidationError for a policy that is not there. */
async function sessionPolicies(
  deps: ServiceDependencies,
  accountId: AccountId,
  { Policy, PolicyArns = [] }: AssumeRole,
): Promise<Session['policies']> {
  if (Policy === undefined && PolicyArns.length === 0) return undefined;
  const policies: { name: string; text: string }[] = [];
  if (Policy !== undefined) {
    const outcome = compilePolicy(Policy, { type: 'session' });
    if (outcome.kind !== 'compiled')
      throw new AppError('MalformedPolicyDocument', { message: outcome.message });
    if (countCharacters(Policy) > POLICY_SIZES.sessionCharactersMax) {
      const message = `Member must have length less than or equal to ${POLICY_SIZES.sessionCharactersMax}`;
      throw validationError(
        `1 validation error detected: Value at 'policy' failed to satisfy constraint: ${message}`,
      );
    }
    policies.push({ name: 'session policy', text: Policy });
  }
  for (const { arn } of PolicyArns) {
    policies.push({ name: arn, text: await managedText(deps, accountId, arn) });
    // No more is read of what is refused all the same.
    requireSmall(policies);
  }
  return policies;
}

async function managedText(deps: ServiceDependencies, accountId: AccountId, arn: string): Promise<string> {
  const found = await withIdentities(deps, accountId, async (store) => {
    const policy = isPolicyArn(arn) ? await findManagedPolicy(store, arn) : undefined;
    return policy && findVersionText(store, policy, policy.defaultVersion);
  });
  if (found === undefined) throw validationError(`PolicyArn ${arn} does not exist or is not attachable.`);
  return found;
}

/**
 * When the second factor was given; undefined: the request has none. Throws ValidationError for one of the two without the
 * other, AccessDenied for a code that is wrong or was used.
 */
async function checkMfa(
  deps: ServiceDependencies,
  { account, identity }: IdentityCaller,
  { SerialNumber, TokenCode }: { SerialNumber: string | undefined; TokenCode: string | undefined },
): Promise<Pick<Session, 'mfaAtMs' | 'isMfaUnvouched'> | undefined> {
  if (SerialNumber === undefined && TokenCode === undefined) return undefined;
  if (SerialNumber === undefined || TokenCode === undefined)
    throw validationError('Must specify both the MFA device serial number and the token code, or neither.');
  const { accountId } = account;
  const given = { accountId, serial: SerialNumber, code: TokenCode, owner: identity.id };
  const answer = await deps.mfaCodes.verify(given);
  if (answer === 'wrong') {
    const message = 'MultiFactorAuthentication failed with invalid MFA one time pass code.';
    throw new AppError('AccessDenied', { message });
  }
  return { mfaAtMs: deps.clock.wallMs(), ...(answer === 'unvouched' && { isMfaUnvouched: true }) };
}

function mintSession(
  { clock, random }: ServiceDependencies,
  seconds: number,
): Pick<Session, 'accessKey' | 'secretKey' | 'issuedAtMs' | 'expiresAtMs'> {
  // Whole seconds, as they are told.
  const issuedAtMs = Math.floor(clock.wallMs() / 1000) * 1000;
  return {
    accessKey: mintIdentityId(random, 'ASIA'),
    secretKey: mintKeyPair(random).secretKey,
    issuedAtMs,
    expiresAtMs: issuedAtMs + seconds * 1000,
  };
}

function credentialsXml({ accessKey, secretKey, expiresAtMs }: Session, token: string): string {
  return xmlElement(
    'Credentials',
    xmlText('AccessKeyId', accessKey),
    xmlText('SecretAccessKey', secretKey),
    xmlText('SessionToken', token),
    xmlTime('Expiration', expiresAtMs),
  );
}

/** extensions 3.2: these and no others. Each is an action that policies may name (src/policy/actions.ts). */
export const STS_ACTIONS: readonly QueryAction[] = [getCallerIdentity, getSessionToken, assumeRole];

export const stsService = createQueryService(STS, STS_ACTIONS);

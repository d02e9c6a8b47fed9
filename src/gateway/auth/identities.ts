// The owner of an access key, what policies say of it, and its secret, in the clear only while a signature needs it. A cache in
// front of the system shard: a cached identity is used until the feed reports a change of its account, and while the feed is
// current; unknown keys are always read through (R46).
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { isInactiveMember } from '../../accounts/member-roles.ts';
import { assert } from '../../base/assert.ts';
import type { FairTurns } from '../../base/async/fair-turns.ts';
import { createOwnerPlaces } from '../../base/async/owner-places.ts';
import { createSharedLooks } from '../../base/async/shared-looks.ts';
import { BoundedMap, type Weighing } from '../../base/bounded-map.ts';
import { asBuffer, equalBytes, ownBytes } from '../../base/bytes/bytes.ts';
import { ownText } from '../../base/text/own-text.ts';
import { type CallerPolicies, NO_POLICIES } from '../../policy/evaluate.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { IdentityFeed } from '../../ports/identity-feed.ts';
import type { KeyringPort } from '../../ports/keyring.ts';
import { type MetadataPort, type ResultOf, SYSTEM_SHARD } from '../../ports/metadata/port.ts';
import { AppError } from '../../types/errors.ts';
import type { AccountId } from '../../types/names.ts';
import type { StoredPrincipal } from '../../types/records/identity-records.ts';
import type { AccountRecord } from '../../types/records/rows.ts';
import { requireDone } from '../../types/require-done.ts';
import { createPolicyCache, type PolicyCache } from './policy-cache.ts';
import { type Principal, rootPrincipal, storedPrincipal } from './principal.ts';
import { type Rights, rightsBytes } from './rights-memory.ts';
import { createSessions, type IssuerKey, type Session, type Sessions } from './sessions.ts';
import type { CredentialScope } from './sigv4-fields.ts';

export interface Identity {
  readonly accessKey: string;
  readonly account: AccountRecord;
  readonly principal: Principal;
  /** The key that signs in this scope. A KeyObject, because Node takes five times as long with bytes (15 us a call). */
  signingKey(scope: CredentialScope): KeyObject;
  /** The secret key itself, by which SigV2 signs. */
  readonly secret: KeyObject;
}

type Keys = Pick<Identity, 'signingKey' | 'secret'>;

type Signer = Pick<Identity, 'accessKey' | 'principal'>;

export interface Identities {
  /** Undefined: no such key. Throws ServiceUnavailable when it must be asked and nobody answers. */
  find(accessKey: string): Promise<Identity | undefined>;
  /**
   * Of temporary credentials. Undefined: what they hang on is gone. Throws InvalidToken for a token that is not of this access
   * key, ExpiredToken, and as `find`.
   */
  findSession(accessKey: string, token: string, nowMs: number): Promise<Identity | undefined>;
  /**
   * For a request that has taken long: who has signed it, as it is now; another principal object where its rights may have changed.
   * undefined: nothing has changed, which memory says. Throws InvalidAccessKeyId where the key, or what the session hangs on, is
   * gone since, and AccountProblem where its account is suspended.
   */
  requireStill(signer: Signer): Promise<Pick<Identity, 'account' | 'principal'>> | undefined;
  /** For Owner elements and expected owners. */
  account(accountId: AccountId): Promise<AccountRecord | null>;
  readonly sessions: Sessions;
  readonly policies: PolicyCache;
}

const ENTRIES_MAX = 10_000;
const TOLD_ACCOUNTS_MAX = 10_000;
/**
 * Of what the entries of a cache hold together: policies as texts and compiled, tags, sessions. One user may have a hundred policies
 * of 30 KiB, with their white space, and a policy of 6 KiB takes up to 600 KiB when it is compiled.
 */
const RIGHTS_BYTES_MAX = 32 * 1024 * 1024;
/** Whose texts take more is read and compiled in one of few places of his account: it takes megabytes, and a turn of each policy. */
const LARGE_RIGHTS_BYTES = 64 * 1024;
/** A client signs for one region and service, and at midnight for two days. */
const SIGNING_KEYS_MAX = 4;

interface CachedIdentity extends Identity {
  /** The secret, as it is stored. */
  readonly wrappedSecret: Uint8Array;
  /** Of a user; absent: the root. */
  readonly stored?: StoredPrincipal;
  readonly compiled: CallerPolicies;
}

/** What a session hangs on. `read`: the same object as long as it has not been read anew. */
interface Base {
  readonly read: object;
  readonly account: AccountRecord;
  readonly stored: StoredPrincipal | undefined;
}

interface CachedSession extends Pick<Base, 'read' | 'stored'>, Pick<CachedIdentity, 'compiled'> {
  readonly identity: Identity;
}

interface Role {
  readonly account: AccountRecord;
  readonly principal: StoredPrincipal;
}

type FoundKey = Extract<ResultOf<'get-access-key'>, { kind: 'found' }>;

/** It has much to read, and nothing of it has been read before it has a place. */
interface Large {
  readonly kind: 'large';
  readonly account: AccountRecord;
}

function byRights<V>(rightsOf: (value: V) => Rights): Weighing<V> {
  return { weightMax: RIGHTS_BYTES_MAX, weightOf: (value) => rightsBytes(rightsOf(value)) };
}

type Changes = Parameters<Parameters<IdentityFeed['listen']>[0]>[0];

/** What was read, by name, as long as the feed tells of changes. A read during reported changes may be outdated, and is not kept. */
function createFollowed<V>(
  feed: IdentityFeed,
  { accountOf, weighing }: { accountOf(value: V): AccountId; weighing?: Weighing<V> },
) {
  const values = new BoundedMap<string, V>(ENTRIES_MAX, weighing);
  let tellings = 0;
  /** By account: the last telling of it. What was read during another account's changes is kept. */
  const toldOf = new Map<string, number>();
  /** The last telling of all, or of an account that is not remembered any more. */
  let toldOfAny = 0;
  return {
    /** Also while the feed is behind. */
    latest: (name: string) => values.get(name),
    known: (name: string) => (feed.isCurrent() ? values.get(name) : undefined),
    /** Before a read: what `keep` is told. */
    tellings: () => tellings,
    /** undefined: it is gone. */
    keep(name: string, value: V | undefined, tellingsBefore: number): void {
      if (value === undefined) values.delete(name);
      else if (tellingsBefore >= Math.max(toldOfAny, toldOf.get(accountOf(value)) ?? 0))
        values.set(name, value);
    },
    forget(changes: Changes): void {
      tellings++;
      if (changes === 'all') {
        values.clear();
        toldOfAny = tellings;
        return;
      }
      const changed = new Set(changes.map(({ accountId }) => accountId));
      if (toldOf.size + changed.size > TOLD_ACCOUNTS_MAX) {
        toldOf.clear();
        toldOfAny = tellings;
      }
      for (const accountId of changed) toldOf.set(accountId, tellings);
      values.deleteWhere((value) => changed.has(accountOf(value)));
    },
  };
}

/** Accounts alone. */
function createAccounts({ metadata, feed }: { metadata: MetadataPort; feed: IdentityFeed }) {
  const accounts = createFollowed<AccountRecord>(feed, { accountOf: ({ accountId }) => accountId });
  return {
    async find(accountId: AccountId): Promise<AccountRecord | null> {
      const cached = accounts.known(accountId);
      if (cached !== undefined) return cached;
      const tellingsBefore = accounts.tellings();
      const { account } = requireDone(
        await metadata.query({ shard: SYSTEM_SHARD }, 'get-account', { accountId }),
      );
      accounts.keep(accountId, account ?? undefined, tellingsBefore);
      return account;
    },
    forget: accounts.forget,
  };
}

interface Following {
  metadata: MetadataPort;
  feed: IdentityFeed;
  clock?: Pick<ClockPort, 'sleep'>;
}

/** Of the roles of sessions, likewise. */
function createRoles({ metadata, feed, clock }: Following) {
  /** By account and role id. */
  const roles = createFollowed<Role>(feed, {
    accountOf: ({ account }) => account.accountId,
    weighing: byRights(({ principal }) => ({ stored: principal })),
  });
  /** Of which it is only known that they are large, with their accounts: to be on the way to a session it is enough. */
  const large = createFollowed<Large>(feed, { accountOf: ({ account }) => account.accountId });
  const lookUpSmall = createSharedLooks((name) => read(name, LARGE_RIGHTS_BYTES), clock);
  const lookUpWhole = createSharedLooks((name) => read(name, undefined), clock);

  async function read(name: string, textsBytesMax: number | undefined): Promise<Role | Large | undefined> {
    // What another one has read meanwhile.
    const cached = roles.known(name);
    if (cached !== undefined) return cached;
    const [accountId = '', id = ''] = name.split('/');
    const tellingsBefore = roles.tellings();
    const largeBefore = large.tellings();
    const query = { accountId: accountId as AccountId, id, ...(textsBytesMax && { textsBytesMax }) };
    const found = requireDone(await metadata.query({ shard: SYSTEM_SHARD }, 'get-principal', query));
    if (found?.principal === 'large') {
      const answer: Large = { kind: 'large', account: found.account };
      large.keep(name, answer, largeBefore);
      return answer;
    }
    const role = found === null ? undefined : { account: found.account, principal: found.principal };
    roles.keep(name, role, tellingsBefore);
    return role;
  }

  return {
    async findSmall(accountId: AccountId, id: string) {
      const name = `${accountId}/${id}`;
      return roles.known(name) ?? large.known(name) ?? lookUpSmall(name);
    },
    async findWhole(accountId: AccountId, id: string) {
      const name = `${accountId}/${id}`;
      return roles.known(name) ?? lookUpWhole(name);
    },
    forget(changes: Changes) {
      roles.forget(changes);
      large.forget(changes);
    },
  };
}

type FindRole = ReturnType<typeof createRoles>['findSmall'];

/** Who signs with a key of its own: roots and users. */
function createKeyOwners({
  metadata,
  keyring,
  feed,
  policies,
  again,
  clock,
}: Following & {
  keyring: KeyringPort;
  policies: PolicyCache;
  /** Policies that have gone since, of somebody whom a request has found. */
  again(signer: Signer): Promise<CallerPolicies>;
}) {
  const identities = createFollowed<CachedIdentity>(feed, {
    accountOf: ({ account }) => account.accountId,
    weighing: byRights((identity) => identity),
  });
  const inPlace = createOwnerPlaces();

  /** A crowd of one user reads, and has in memory, his policies once. */
  const lookUp = createSharedLooks(read, clock);

  async function find(accessKey: string): Promise<CachedIdentity | undefined> {
    return identities.known(accessKey) ?? lookUp(ownText(accessKey));
  }

  async function read(accessKey: string): Promise<CachedIdentity | undefined> {
    // What another one has read meanwhile.
    const before = identities.known(accessKey);
    if (before !== undefined) return before;
    const found = await readKey(accessKey, LARGE_RIGHTS_BYTES);
    if (found === undefined || !('kind' in found)) return found;
    return inPlace(found.account.accountId, async () => {
      const known = identities.known(accessKey);
      if (known !== undefined) return known;
      const whole = await readKey(accessKey);
      assert(whole === undefined || !('kind' in whole), 'all is read where no bound is named');
      return whole;
    });
  }

  async function makeIdentity(
    accessKey: string,
    found: FoundKey | undefined,
    tellingsBefore: number,
  ): Promise<CachedIdentity | undefined> {
    if (found === undefined) {
      identities.keep(accessKey, undefined, tellingsBefore);
      return undefined;
    }
    const cached = identities.latest(accessKey);
    const { account, principal: stored } = found;
    const { sealedSecret } = found.accessKey;
    // The same secret keeps its signing keys.
    const keys: Keys =
      cached !== undefined && equalBytes(cached.wrappedSecret, sealedSecret.wrapped)
        ? { signingKey: cached.signingKey, secret: cached.secret }
        : makeKeys(keyring.unwrap(sealedSecret));
    const made =
      stored === undefined
        ? { principal: rootPrincipal(account), compiled: NO_POLICIES }
        : await storedPrincipal({ account, principal: stored }, { policies, again: () => again(signer) });
    const principal = { ...made.principal, keyCreatedAtMs: found.accessKey.createdAtMs };
    const signer: Signer = { accessKey: ownText(accessKey), principal };
    const identity = {
      ...signer,
      account,
      compiled: made.compiled,
      ...keys,
      wrappedSecret: ownBytes(sealedSecret.wrapped),
      ...(stored && { stored }),
    };
    identities.keep(accessKey, identity, tellingsBefore);
    return identity;
  }

  async function readKey(
    accessKey: string,
    textsBytesMax?: number,
  ): Promise<CachedIdentity | Large | undefined> {
    const tellingsBefore = identities.tellings();
    const query = { accessKey, ...(textsBytesMax && { textsBytesMax }) };
    const found = requireDone(await metadata.query({ shard: SYSTEM_SHARD }, 'get-access-key', query));
    if (found.kind === 'large') return found;
    return makeIdentity(accessKey, found.kind === 'found' ? found : undefined, tellingsBefore);
  }

  return { find, known: identities.known, forget: identities.forget };
}

export function createIdentities(deps: {
  metadata: MetadataPort;
  keyring: KeyringPort;
  random: RandomPort;
  feed: IdentityFeed;
  /** Long policies are compiled in them; absent: in turns of their own. */
  turns?: FairTurns;
  /** Of looks that hang. */
  clock?: Pick<ClockPort, 'sleep'>;
}): Identities {
  const policies = createPolicyCache(deps.turns);
  const keys = createKeyOwners({ ...deps, policies, again: policiesAgain });
  const accounts = createAccounts(deps);
  const roles = createRoles(deps);
  /** By the session's access key: principals are made anew when what they hang on has been read anew. */
  const sessionIdentities = new BoundedMap<string, CachedSession>(
    ENTRIES_MAX,
    byRights(({ stored, compiled, identity }) => ({ stored, compiled, session: identity.principal.session })),
  );
  const sessions = createSessions(deps);
  const inPlace = createOwnerPlaces();

  deps.feed.listen((changes) => {
    for (const cache of [keys, accounts, roles]) cache.forget(changes);
    if (changes === 'all') sessionIdentities.clear();
  });

  /** What a session hangs on, as it is now: its account with the user or role, or the root alone. */
  async function findBase(session: Session, findRole: FindRole): Promise<Base | Large | undefined> {
    const issuer = await keys.find(session.issuer);
    if (issuer === undefined || issuer.account.state === 'suspended') return undefined;
    if (session.issuerKey !== undefined && !isKey(issuer, session.issuerKey)) return undefined;
    for (const { accountId, id } of session.through ?? []) {
      const role = await roles.findSmall(accountId, id);
      if (role === undefined || role.account.state === 'suspended') return undefined;
    }
    if (session.kind === 'role') {
      if (issuer.stored !== undefined && isInactiveMember(issuer.stored.entity.inlinePolicies))
        return undefined;
      const role = await findRole(session.accountId, session.id);
      if (role === undefined || 'kind' in role) return role;
      return { read: role, account: role.account, stored: role.principal };
    }
    const { account, principal, stored } = issuer;
    if (principal.id !== session.id || account.accountId !== session.accountId) return undefined;
    return { read: issuer, account, stored };
  }

  /** Undefined also where the name is another key's by now. */
  async function findSame(accessKey: string, { id, caller, keyCreatedAtMs }: Principal) {
    const found = await keys.find(accessKey);
    const key = {
      accountId: caller.accountId as AccountId,
      principalId: id,
      createdAtMs: keyCreatedAtMs ?? 0,
    };
    return found !== undefined && isKey(found, key) ? found : undefined;
  }

  /** Undefined: what it hangs on is gone. */
  async function findIdentity(accessKey: string, session: Session): Promise<CachedSession | undefined> {
    const found = await findSmall(accessKey, session);
    if (found === undefined || !('kind' in found)) return found;
    // Who has a place of a session may wait for one of its user (createKeyOwners), and never the other way round.
    return inPlace(found.account.accountId, async () => {
      const base = await findBase(session, roles.findWhole);
      if (base === undefined) return undefined;
      assert(!('kind' in base), 'all of a role is read in a place');
      // Another request of the session may have made it meanwhile.
      return knownSession(accessKey, session, base) ?? makeSession(accessKey, session, base);
    });
  }

  async function findSmall(accessKey: string, session: Session): Promise<CachedSession | Large | undefined> {
    const base = await findBase(session, roles.findSmall);
    if (base === undefined || 'kind' in base) return base;
    const known = knownSession(accessKey, session, base);
    if (known !== undefined) return known;
    const { account, stored } = base;
    // Of what it hangs on all is known already; compiled it takes more.
    if (rightsBytes({ stored }) > LARGE_RIGHTS_BYTES) return { kind: 'large', account };
    return makeSession(accessKey, session, base);
  }

  function knownSession(accessKey: string, session: Session, { read }: Base): CachedSession | undefined {
    const cached = sessionIdentities.get(accessKey);
    return cached?.read === read && cached.identity.principal.session === session ? cached : undefined;
  }

  async function makeSession(accessKey: string, session: Session, base: Base): Promise<CachedSession> {
    const cached = sessionIdentities.get(accessKey);
    const { account, stored, read } = base;
    const { principal, compiled } =
      stored === undefined
        ? { principal: rootPrincipal(account, session), compiled: NO_POLICIES }
        : await storedPrincipal(
            { account, principal: stored },
            { policies, session, again: () => policiesAgain(signer) },
          );
    const signer: Signer = { accessKey: ownText(accessKey), principal };
    const signingKeys =
      cached?.identity.principal.session === session
        ? { signingKey: cached.identity.signingKey, secret: cached.identity.secret }
        : makeKeys(Buffer.from(session.secretKey));
    const identity: Identity = { ...signer, account, ...signingKeys };
    const found = { read, stored, identity, compiled };
    sessionIdentities.set(accessKey, found);
    return found;
  }

  async function lookAgain({
    accessKey,
    principal,
  }: Signer): Promise<Pick<CachedSession, 'identity' | 'compiled'>> {
    const found = await findAgain(accessKey, principal);
    if (found === undefined)
      throw new AppError('InvalidAccessKeyId', { fields: { AWSAccessKeyId: accessKey } });
    if (found.identity.account.state === 'suspended') throw new AppError('AccountProblem');
    return found;
  }

  async function findAgain(accessKey: string, principal: Principal) {
    if (principal.session !== undefined) return findIdentity(accessKey, principal.session);
    const identity = await findSame(accessKey, principal);
    return identity && { identity, compiled: identity.compiled };
  }

  async function policiesAgain(signer: Signer): Promise<CallerPolicies> {
    return (await lookAgain(signer)).compiled;
  }

  return {
    find: keys.find,
    async findSession(accessKey, token, nowMs) {
      const session = sessions.open(token);
      if (session.accessKey !== accessKey) throw new AppError('InvalidToken');
      if (session.expiresAtMs <= nowMs) throw new AppError('ExpiredToken');
      return (await findIdentity(accessKey, session))?.identity;
    },
    requireStill({ accessKey, principal }) {
      if (keys.known(accessKey)?.principal === principal) return undefined;
      return lookAgain({ accessKey, principal }).then(({ identity }) => identity);
    },
    account: accounts.find,
    sessions,
    policies,
  };
}

function isKey({ account, principal }: Identity, key: IssuerKey): boolean {
  return (
    account.accountId === key.accountId &&
    principal.id === key.principalId &&
    principal.keyCreatedAtMs === key.createdAtMs
  );
}

/** Takes the secret over: what is left of it in the clear is wiped, and only KeyObjects stay. */
function makeKeys(secret: Uint8Array): Keys {
  assert(secret.length > 0, 'a secret key is not empty');
  const initialBytes = Buffer.concat([Buffer.from('AWS4'), asBuffer(secret)]);
  const initialKey = createSecretKey(initialBytes);
  const secretKey = createSecretKey(secret);
  initialBytes.fill(0);
  secret.fill(0);
  return { signingKey: makeSigner(initialKey), secret: secretKey };
}

function makeSigner(initialKey: KeyObject): Identity['signingKey'] {
  const signingKeys = new BoundedMap<string, KeyObject>(SIGNING_KEYS_MAX);
  return (scope) => {
    let key = signingKeys.get(scope.text);
    if (key === undefined) {
      key = createSecretKey(
        [scope.date, scope.region, scope.service, 'aws4_request'].reduce<Buffer | KeyObject>(
          hmac,
          initialKey,
        ) as Buffer,
      );
      signingKeys.set(scope.text, key);
    }
    return key;
  };
}

function hmac(key: Buffer | KeyObject, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

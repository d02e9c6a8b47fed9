// Who logs in for a partner: users with API keys, and how a key is checked. A key is shown once and stored as scrypt hash. One
// that was right is remembered for a minute, as a keyed hash, until its user changes.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { BoundedMap } from '../base/bounded-map.ts';
import { utf8 } from '../base/bytes/bytes.ts';
import { createFailureWaits, SECRET_WAITS } from '../base/failure-waits.ts';
import type { ClockPort, RandomPort } from '../ports/clock.ts';
import type { KeyringPort } from '../ports/keyring.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../ports/metadata/port.ts';
import { AppError } from '../types/errors.ts';
import type { AccountId } from '../types/names.ts';
import type { ApiKeyRecord, PartnerUserRecord } from '../types/records/tenancy-records.ts';
import { requireDone } from '../types/require-done.ts';
import type { PartnerRole } from '../types/tenancy.ts';
import { DAY_MS } from '../types/usage.ts';
import { checkAccountFields, checkPrintable, normaliseEmail, refuse } from './account-rules.ts';
import { mintApiKey } from './mint-keys.ts';
import type { ApiCaller } from './tenancy.ts';
import type { TenancyDirectory } from './tenancy-directory.ts';
import { noSuch } from './tenancy-rules.ts';

/** How secrets are hashed (`Passwords` of the gateway). Tenants take turns, and within one of them addresses. */
export interface SecretHasher {
  hash(tenant: AccountId, password: string): Promise<string>;
  /** Throws AuthenticationLockout where too many were wrong, SlowDown. */
  verify(
    who: { accountId: AccountId; userId: string; address: string },
    given: { password: string; stored: string },
  ): Promise<boolean>;
}

/** All who name no key that is there: however many addresses they have, they get one turn of two. */
const STRANGERS = 'strangers' as AccountId;

const API_KEYS_MAX = 10;
/** Of the key itself, by which its hash is found. */
const KEY_ID_CHARACTERS = 8;
const LOGIN_CHARACTERS_MAX = 254;
const SECRET_CHARACTERS_MAX = 256;
const REMEMBERED_MS = 60_000;
const REMEMBERED_MAX = 10_000;

export interface NewPartnerUser {
  partnerId: number;
  email: string;
  firstName: string;
  lastName: string;
  role: PartnerRole;
  isPlus?: boolean;
}

export interface PartnerLogins {
  /** As Tenancy's. Throws AuthenticationLockout where login and address must wait, SlowDown. */
  authenticate(given: { login: string; apiKey: string; address: string }): Promise<ApiCaller | undefined>;
  /** Throws NoSuchEntity, ValidationError, EntityAlreadyExists. */
  createUser(input: NewPartnerUser): Promise<PartnerUserRecord>;
  /** Of a partner. Throws NoSuchEntity. */
  users(partnerId: number): Promise<PartnerUserRecord[]>;
  /** Throws NoSuchEntity. */
  setStatus(userId: number, status: PartnerUserRecord['status']): Promise<PartnerUserRecord>;
  /** The key, for the only time. Throws NoSuchEntity, ValidationError, and LimitExceeded for one too many. */
  createKey(
    userId: number,
    input: { name: string; expiresAtMs?: number },
  ): Promise<{ apiKey: string; key: ApiKeyRecord }>;
  /** Throws NoSuchEntity. */
  deleteKey(userId: number, keyId: string): Promise<void>;
}

interface Remembered {
  userId: number;
  revision: number;
  caller: ApiCaller;
  untilMs: number;
}

interface GivenKey {
  login: string;
  apiKey: string;
  address: string;
}

export function createPartnerLogins(deps: {
  metadata: MetadataPort;
  directory: TenancyDirectory;
  keyring: KeyringPort;
  hasher: SecretHasher;
  clock: ClockPort;
  random: RandomPort;
}): PartnerLogins {
  const { metadata, directory, hasher, clock, random } = deps;
  const system = { shard: SYSTEM_SHARD };
  const memoryKey = random.bytes(32);
  const remembered = new BoundedMap<string, Remembered>(REMEMBERED_MAX);
  const rootWaits = createFailureWaits({ clock, ...SECRET_WAITS });
  /** Comparisons under way: what is sent many times at once is one guess, and is hashed once. */
  const comparing = new Map<string, Promise<ApiKeyRecord | undefined>>();
  /** Of no key: an unknown login takes as long as a wrong key. */
  let decoy: Promise<string> | undefined;

  async function isDecoy(login: string, apiKey: string, address: string): Promise<undefined> {
    decoy ??= hasher.hash(STRANGERS, mintApiKey(random)).catch((error: unknown) => {
      decoy = undefined;
      throw error;
    });
    const stored = await decoy;
    const who = { accountId: STRANGERS, userId: login.toLowerCase(), address };
    await hasher.verify(who, { password: apiKey, stored });
    return undefined;
  }

  /** The key that is named by its beginning, and that is not over, with its user. */
  async function lookUp({ login, apiKey }: GivenKey) {
    const query = { kind: 'partner-user' as const, login };
    const { record } = requireDone(await metadata.query(system, 'find-tenancy', query));
    const user = record?.kind === 'partner-user' && record.status === 'active' ? record : undefined;
    const key = user?.apiKeys.find(({ id }) => apiKey.startsWith(id));
    const isExpired = key?.expiresAtMs !== undefined && key.expiresAtMs <= clock.wallMs();
    return user === undefined || key === undefined || isExpired ? undefined : { user, key };
  }

  /** The stored key, where it is this one. */
  async function compare(given: GivenKey): Promise<ApiKeyRecord | undefined> {
    const { login, apiKey, address } = given;
    const named = await lookUp(given);
    if (named === undefined) return isDecoy(login, apiKey, address);
    const { user, key } = named;
    // Nobody guesses the beginning of a key, by which it was found.
    const who = { accountId: userTenant(user.id), userId: login.toLowerCase(), address };
    if (!(await hasher.verify(who, { password: apiKey, stored: key.hash }))) return undefined;
    if (callerOf(user, key) !== undefined) await noteUse(user, key);
    return key;
  }

  /** `name`: a digest of login and key. */
  function compareOnce(name: string, given: GivenKey): Promise<ApiKeyRecord | undefined> {
    const place = `${name} ${given.address}`;
    const underWay = comparing.get(place) ?? compare(given).finally(() => comparing.delete(place));
    comparing.set(place, underWay);
    return underWay;
  }

  async function enter(name: string, given: GivenKey): Promise<ApiCaller | undefined> {
    const right = await compareOnce(name, given);
    if (right === undefined) return undefined;
    // A comparison waits its turn for seconds: the key, its user or its partner may be gone since, before this request came even,
    // where another one had begun it.
    const [present] = await Promise.all([lookUp(given), directory.refresh()]);
    if (present === undefined || present.key.hash !== right.hash) return undefined;
    const { user, key } = present;
    const caller = callerOf(user, key);
    if (caller === undefined) return undefined;
    const leftMs = key.expiresAtMs === undefined ? REMEMBERED_MS : key.expiresAtMs - clock.wallMs();
    const untilMs = clock.monotonicMs() + Math.min(REMEMBERED_MS, leftMs);
    remembered.set(name, { userId: user.id, revision: user.revision, caller, untilMs });
    return caller;
  }

  /**
   * The root account's own keys are the operator's. Undefined: they are not. Throws AuthenticationLockout without comparing
   * while the key must wait at this address.
   */
  async function asOperator(
    accessKey: string,
    given: { secretKey: string; address: string },
  ): Promise<ApiCaller | undefined> {
    // A stranger may name the key of any user, and nobody needs to know what policies say of that one.
    const question = { accessKey, textsBytesMax: 0 };
    const found = requireDone(await metadata.query(system, 'get-access-key', question));
    if (found.kind !== 'found' || !found.account.isRoot || found.accessKey.userId !== undefined)
      return undefined;
    const who = { group: accessKey, name: given.address };
    if (rootWaits.mustWait(who)) throw new AppError('AuthenticationLockout');
    const secret = deps.keyring.unwrap(found.accessKey.sealedSecret);
    // From the question whether it must wait to here nothing else runs: guesses that are sent at once are counted one by one.
    const isSame = timingSafeEqual(digest(memoryKey, secret), digest(memoryKey, utf8(given.secretKey)));
    secret.fill(0);
    if (!isSame) {
      rootWaits.note(who);
      return undefined;
    }
    rootWaits.forget(who);
    return { kind: 'operator', level: 'admin', role: 'Admin', isPlus: true, keyId: `root:${accessKey}` };
  }

  function callerOf(user: PartnerUserRecord, key: ApiKeyRecord): ApiCaller | undefined {
    const partner = directory.find('partner', user.partnerId);
    if (partner === undefined || partner.status !== 'active' || partner.level === 'channel') return undefined;
    const { id: userId, partnerId, role, isPlus } = user;
    const keyId = `${userId}:${key.id}`;
    return { kind: 'partner-user', userId, level: partner.level, partnerId, role, isPlus, keyId };
  }

  async function noteUse(user: PartnerUserRecord, key: ApiKeyRecord): Promise<void> {
    const day = Math.floor(clock.wallMs() / DAY_MS);
    if ((key.usedOnDay ?? 0) >= day) return;
    const apiKeys = user.apiKeys.map((one) => (one.id === key.id ? { ...one, usedOnDay: day } : one));
    const record = { ...user, apiKeys };
    // Where it has changed meanwhile, or the shard is away, another request notes it.
    await metadata.execute(system, 'change-tenancy', { replace: [{ record, ifRevision: user.revision }] });
  }

  async function requireUser(userId: number): Promise<PartnerUserRecord> {
    const [user] = await directory.read('partner-user', [userId]);
    if (user === undefined || user.deletedAtMs !== undefined) throw noSuch('user');
    return user;
  }

  async function replace(record: PartnerUserRecord): Promise<PartnerUserRecord> {
    const change = { replace: [{ record, ifRevision: record.revision }] };
    const outcome = requireDone(await metadata.execute(system, 'change-tenancy', change));
    if (outcome.kind === 'taken') throw loginTaken();
    if (outcome.kind === 'conflict') throw new AppError('ConcurrentModification');
    return outcome.records[0] as PartnerUserRecord;
  }

  return {
    async authenticate({ login, apiKey, address }) {
      if (login.length > LOGIN_CHARACTERS_MAX || apiKey.length > SECRET_CHARACTERS_MAX) return undefined;
      if (!login.includes('@')) {
        const operator = await asOperator(login, { secretKey: apiKey, address });
        return operator ?? isDecoy(login, apiKey, address);
      }
      await directory.refresh();
      const name = digest(memoryKey, utf8(JSON.stringify([login, apiKey]))).toString('base64');
      const known = remembered.get(name);
      if (known !== undefined && clock.monotonicMs() < known.untilMs) {
        const entry = directory.find('partner-user', known.userId);
        const partner = directory.find('partner', entry?.partnerId);
        // What is remembered may be newer than the directory: another key's use was noted since.
        const isSame = entry !== undefined && entry.revision <= known.revision;
        if (isSame && partner?.status === 'active') return known.caller;
      }
      remembered.delete(name);
      return enter(name, { login, apiKey, address });
    },
    async createUser({ isPlus = false, ...input }) {
      checkAccountFields({ email: input.email });
      for (const field of ['firstName', 'lastName'] as const)
        if (input[field].trim() === '' || input[field].length > 100)
          refuse({ [field]: 'must have 1 to 100 characters' });
      checkPrintable({ firstName: input.firstName, lastName: input.lastName });
      await directory.refresh();
      const partner = directory.find('partner', input.partnerId);
      if (partner === undefined || partner.status === 'deleted') throw noSuch('account');
      if (partner.level === 'channel') refuse({ partnerId: 'must be a governance or control account' });
      const user = { ...input, kind: 'partner-user' as const, email: normaliseEmail(input.email), isPlus };
      const add = [{ ...user, status: 'active' as const, apiKeys: [] }];
      const outcome = requireDone(await metadata.execute(system, 'change-tenancy', { add }));
      if (outcome.kind !== 'changed') throw loginTaken();
      return outcome.records[0] as PartnerUserRecord;
    },
    async users(partnerId) {
      await directory.refresh();
      if (directory.find('partner', partnerId) === undefined) throw noSuch('account');
      const ids = directory.all('partner-user').filter((entry) => entry.partnerId === partnerId);
      return directory.read(
        'partner-user',
        ids.map(({ id }) => id),
      );
    },
    async setStatus(userId, status) {
      const user = await requireUser(userId);
      const deleted = status === 'deleted' && { deletedAtMs: clock.wallMs(), apiKeys: [] };
      return replace({ ...user, status, ...deleted });
    },
    async createKey(userId, { name, expiresAtMs }) {
      if (name.trim() === '' || name.length > 100) refuse({ name: 'must have 1 to 100 characters' });
      checkPrintable({ name });
      if (expiresAtMs !== undefined && !(expiresAtMs > clock.wallMs()))
        refuse({ expiresAt: 'must be in the future' });
      const user = await requireUser(userId);
      if (user.apiKeys.length >= API_KEYS_MAX) {
        const message = `A user has ${API_KEYS_MAX} API keys at most. Delete one first.`;
        throw new AppError('LimitExceeded', { message });
      }
      const apiKey = mintApiKey(random);
      const hash = await hasher.hash(userTenant(userId), apiKey);
      const id = apiKey.slice(0, KEY_ID_CHARACTERS);
      const expiry = expiresAtMs !== undefined && { expiresAtMs };
      const key: ApiKeyRecord = { id, name, hash, createdAtMs: clock.wallMs(), ...expiry };
      await replace({ ...user, apiKeys: [...user.apiKeys, key] });
      return { apiKey, key };
    },
    async deleteKey(userId, keyId) {
      const user = await requireUser(userId);
      const apiKeys = user.apiKeys.filter(({ id }) => id !== keyId);
      if (apiKeys.length === user.apiKeys.length) throw noSuch('API key');
      await replace({ ...user, apiKeys });
    },
  };
}

function userTenant(userId: number): AccountId {
  return `user/${userId}` as AccountId;
}

function digest(key: Uint8Array, bytes: Uint8Array): Buffer {
  return createHmac('sha256', key).update(bytes).digest();
}

function loginTaken(): AppError {
  const message = 'A user with this e-mail address already exists.';
  return new AppError('EntityAlreadyExists', { message, fields: { email: 'is taken' } });
}

// Accounts and their keys, as the operator sees them: creation, look-up, change of state and limit, deletion.
// The rows and the decisions about them are the system shard's (R41); signing with the keys is the gateway's.
import { toHex, utf8 } from '../base/bytes/bytes.ts';
import type { RandomPort } from '../ports/clock.ts';
import type { KeyringPort } from '../ports/keyring.ts';
import type { Signed } from '../ports/metadata/accounts.ts';
import { type CommandOf, type MetadataPort, SYSTEM_SHARD } from '../ports/metadata/port.ts';
import { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';
import type { AccountId } from '../types/names.ts';
import type { AccountRemovalRecord } from '../types/records/account-removal-record.ts';
import type { IdentitySettingsRecord } from '../types/records/identity-records.ts';
import type { AccessKeyRecord, AccountRecord, AccountState } from '../types/records/rows.ts';
import type { CustomerRecord, NewCustomerRecord } from '../types/records/tenancy-records.ts';
import { requireDone } from '../types/require-done.ts';
import { checkAccountFields, normaliseEmail, refuse } from './account-rules.ts';
import { mintAccountId, mintCanonicalId, mintKeyPair } from './mint-keys.ts';

/** The root account's name and e-mail: it is made before there is anybody to ask. */
const ROOT_NAME = 'root';
const ROOT_EMAIL = 'root@holdfast.invalid';
/** Account ids are 12 random digits: two collisions in a row do not happen. */
const ID_ATTEMPTS = 3;
const ACCOUNT_ID = /^\d{12}$/;
const LIST_PAGE = 500;
const REQUEST_ID_BYTES = 16;
/** Rows of identities that a step of a deletion removes: each may hold policies of 64 KiB. */
const FORGOTTEN_ROWS = 50;

export interface NewAccount {
  name: string;
  email: string;
  /** With secretKey, or neither: then a pair is made up. */
  accessKey?: string;
  secretKey?: string;
  /** 64 hex digits; made up when absent. */
  canonicalId?: string;
  /** Default paid: accounts that an operator makes are no trials. */
  state?: AccountState;
}

/** With the record of the sub-account that it is to be. */
export type NewAccountOf = NewAccount & {
  customer?: NewCustomerRecord;
  /** How its root signs in by hand. */
  rootLogin?: IdentitySettingsRecord['rootLogin'];
};

/** Of a sub-account with its record. */
export interface CreatedAccount {
  account: AccountRecord;
  customer?: CustomerRecord;
  accessKey: string;
  secretKey: string;
}

/** What makes an account, however often it is sent under this id. */
export interface AccountCreation {
  requestId: string;
  command: CommandOf<'create-account'>;
  secretKey: string;
}

export interface AccountWithKeys {
  account: AccountRecord;
  accessKeys: string[];
}

export type KeyChange = 'disable' | 'enable' | 'delete';

export interface AccountChanges {
  state?: AccountState;
  bucketsMax?: number;
  /** Its uploads are refused. */
  isUnpaid?: boolean;
  /** Whether it may share with everybody (`mayBePublic` of types/records/rows.ts). */
  mayBePublic?: boolean;
}

/** `leftBucketCount`: buckets that are not removed yet, those among them that have to stay. */
export type AccountRemoval = AccountRemovalRecord & { leftBucketCount: number };

export interface Accounts {
  /** Returns the secret key, for the only time; of a sub-account its record, too. Throws ValidationError, EntityAlreadyExists. */
  create(input: NewAccountOf): Promise<CreatedAccount>;
  /** The first half of `create`, which asks nobody. Throws ValidationError. */
  prepare(input: NewAccountOf): AccountCreation;
  /** The other half. `isRetry`: an earlier try may have made it. Throws EntityAlreadyExists. */
  send(creation: AccountCreation, options?: { isRetry?: boolean }): Promise<CreatedAccount>;
  /** By id ascending. */
  list(): Promise<AccountWithKeys[]>;
  /** By account id, name, e-mail or canonical id. Throws NoSuchEntity. */
  find(reference: string): Promise<AccountWithKeys>;
  /** Throws NoSuchEntity, ValidationError; AccessDenied for suspending the root account, which nobody could undo. */
  change(reference: string, changes: AccountChanges): Promise<AccountWithKeys>;
  /**
   * Its keys are refused from now on. `withBuckets`: its buckets are removed in the background, as far as nothing in them is
   * protected, and again when the rest is due. Throws NoSuchEntity; DeleteConflict while it owns a bucket; AccessDenied for the
   * root account and, with `ifNotHeld`, for one that an operator has suspended.
   */
  remove(reference: string, options?: { withBuckets?: boolean; ifNotHeld?: boolean }): Promise<void>;
  /** What is left of a deleted account; undefined: nothing, or the account is not deleted. */
  removal(accountId: AccountId): Promise<AccountRemoval | undefined>;
  /** The access keys of an account, by name. Throws NoSuchEntity. */
  keys(reference: string): Promise<{ account: AccountRecord; keys: AccessKeyRecord[] }>;
  /**
   * Adds an access key, made up where none is given; returns its secret for the only time. Throws NoSuchEntity,
   * ValidationError, EntityAlreadyExists, and LimitExceeded for one key too many. `isOnly`: in the place of all others, in one
   * commit, so that who has one of them makes no other meanwhile.
   */
  addKey(
    reference: string,
    given: Pick<NewAccount, 'accessKey' | 'secretKey'>,
    options?: { isOnly?: true } & Signed,
  ): Promise<{ account: AccountRecord; key: AccessKeyRecord; secretKey: string }>;
  /**
   * Resolves when no gateway takes a disabled or deleted key any more. Throws NoSuchEntity; DeleteConflict for the last key
   * that the root account can sign with.
   */
  changeKey(reference: string, change: { accessKey: string; change: KeyChange } & Signed): Promise<void>;
  /**
   * Makes the root account unless it is there; `keys` are the ones its data folder keeps. Resolves with whether the root
   * account can sign with them.
   */
  ensureRoot(keys: { accessKey: string; secretKey: string }): Promise<boolean>;
}

export function createAccounts(deps: {
  metadata: MetadataPort;
  keyring: KeyringPort;
  random: RandomPort;
}): Accounts {
  const { metadata, random } = deps;
  const system = { shard: SYSTEM_SHARD };

  const mintRequestId = () => toHex(random.bytes(REQUEST_ID_BYTES));

  function prepare(input: NewAccountOf & { isRoot: boolean }): AccountCreation {
    const { accessKey, secretKey } = keyPair(input);
    const command: AccountCreation['command'] = {
      account: {
        accountId: mintAccountId(random),
        name: input.name,
        email: normaliseEmail(input.email),
        canonicalId: input.canonicalId ?? mintCanonicalId(random),
        state: input.state ?? 'paid',
        bucketsMax: LIMITS.bucketsPerAccountDefault,
        isRoot: input.isRoot,
      },
      // Sealed by the master key: a signature can only be checked with the secret in the clear.
      accessKey: { accessKey, sealedSecret: deps.keyring.wrap(utf8(secretKey)) },
      ...(input.customer && { customer: input.customer }),
      ...(input.rootLogin && { rootLogin: input.rootLogin }),
    };
    return { requestId: mintRequestId(), command, secretKey };
  }

  function prepareChecked(input: NewAccountOf): AccountCreation {
    checkAccountFields(input);
    return prepare({ ...input, isRoot: false });
  }

  async function send(creation: AccountCreation, { isRetry = false } = {}): Promise<CreatedAccount> {
    const { secretKey } = creation;
    for (let attempt = 1; ; attempt++) {
      const { requestId, command } = creation;
      const envelope = { ...system, requestId, ...(isRetry && { isRetry }) };
      const outcome = requireDone(await metadata.execute(envelope, 'create-account', command));
      if (outcome.kind === 'created') {
        const { account, customer } = outcome;
        const { accessKey } = command.accessKey;
        return { account, ...(customer && { customer }), accessKey, secretKey };
      }
      if (outcome.field !== 'accountId' || attempt === ID_ATTEMPTS) throw conflict(outcome.field);
      creation.command = { ...command, account: { ...command.account, accountId: mintAccountId(random) } };
      creation.requestId = mintRequestId();
    }
  }

  async function keysOf({ accountId }: AccountRecord): Promise<AccessKeyRecord[]> {
    return requireDone(await metadata.query(system, 'list-access-keys', { accountId })).accessKeys;
  }

  function keyPair({ accessKey, secretKey }: Pick<NewAccount, 'accessKey' | 'secretKey'>) {
    return accessKey !== undefined && secretKey !== undefined
      ? { accessKey, secretKey }
      : mintKeyPair(random);
  }

  async function list(): Promise<AccountWithKeys[]> {
    const all: AccountWithKeys[] = [];
    for (let after: AccountId | undefined; ; ) {
      const page = requireDone(
        await metadata.query(system, 'list-accounts', { limit: LIST_PAGE, ...(after && { after }) }),
      );
      page.accounts.forEach((account, at) => {
        all.push({ account, accessKeys: page.accessKeys[at] ?? [] });
      });
      after = page.accounts.at(-1)?.accountId;
      if (page.accounts.length < LIST_PAGE || after === undefined) return all;
    }
  }

  async function byId(reference: string): Promise<AccountRecord | null> {
    if (!ACCOUNT_ID.test(reference)) return null;
    return requireDone(await metadata.query(system, 'get-account', { accountId: reference as AccountId }))
      .account;
  }

  /** Its name last: partners name their accounts as they like, also by the address of another one. */
  async function byWord(reference: string): Promise<AccountRecord | null> {
    const words = [{ canonicalId: reference }, { email: normaliseEmail(reference) }, { name: reference }];
    for (const word of words) {
      const { account } = requireDone(await metadata.query(system, 'find-account', word));
      if (account !== null) return account;
    }
    return null;
  }

  /** What a deleted account has left of users, groups, roles and policies, in steps. */
  async function forget(accountId: AccountId): Promise<void> {
    for (let isAll = false; !isAll; ) {
      const left = { accountId, limit: FORGOTTEN_ROWS };
      const forgotten = requireDone(await metadata.execute(system, 'forget-identities', left));
      isAll = forgotten.kind === 'account-exists' || forgotten.isAll;
    }
  }

  /** True where the id is of an account whose deletion a crash had cut short, and that has left something. */
  async function resumeRemoval(reference: string): Promise<boolean> {
    if (!ACCOUNT_ID.test(reference) || (await byId(reference)) !== null) return false;
    const accountId = reference as AccountId;
    const ranges = [{ prefix: '', limit: 1 }];
    const left = requireDone(await metadata.query(system, 'read-identities', { accountId, ranges }));
    if (left.ranges[0]?.length === 0) return false;
    await forget(accountId);
    return true;
  }

  async function find(reference: string): Promise<AccountWithKeys> {
    // A number is an account's or nobody's: partners choose names, and one may be the number of an account that is gone.
    const account = ACCOUNT_ID.test(reference) ? await byId(reference) : await byWord(reference);
    if (account === null) throw new AppError('NoSuchEntity', { message: 'There is no such account.' });
    // Keys come with the listing only: one row of it, behind the id's predecessor.
    const after = String(Number(account.accountId) - 1).padStart(12, '0') as AccountId;
    const page = requireDone(await metadata.query(system, 'list-accounts', { after, limit: 1 }));
    return { account, accessKeys: page.accessKeys[0] ?? [] };
  }

  return {
    create: async (input) => send(prepareChecked(input)),
    prepare: prepareChecked,
    send,
    list,
    find,
    async change(reference, changes) {
      checkAccountFields(changes);
      if (Object.keys(changes).length === 0) refuse({ changes: 'must name something to change' });
      const { account, accessKeys } = await find(reference);
      if (account.isRoot && changes.state === 'suspended')
        throw new AppError('AccessDenied', { message: ROOT_STAYS });
      const { accountId } = account;
      const outcome = requireDone(await metadata.execute(system, 'set-account', { accountId, changes }));
      if (outcome.kind !== 'changed') throw new AppError('NoSuchEntity');
      return { account: outcome.account, accessKeys };
    },
    async remove(reference, { withBuckets = false, ifNotHeld = false } = {}) {
      if (await resumeRemoval(reference)) return;
      const { accountId } = (await find(reference)).account;
      const command = { accountId, ...(withBuckets && { withBuckets }), ...(ifNotHeld && { ifNotHeld }) };
      const outcome = requireDone(await metadata.execute(system, 'delete-account', command));
      if (outcome.kind === 'no-such-account') throw new AppError('NoSuchEntity');
      if (outcome.kind === 'is-root') throw new AppError('AccessDenied', { message: ROOT_STAYS });
      if (outcome.kind === 'is-held') throw new AppError('AccessDenied', { message: HELD });
      if (outcome.kind === 'owns-buckets') {
        throw new AppError('DeleteConflict', {
          message: 'The account still owns buckets. Delete them first.',
        });
      }
      await forget(accountId);
    },
    async removal(accountId) {
      const reply = await metadata.query(system, 'get-account-removal', { accountId });
      const { removal, bucketCount } = requireDone(reply);
      return removal === null ? undefined : { ...removal, leftBucketCount: bucketCount };
    },
    async keys(reference) {
      const { account } = await find(reference);
      return { account, keys: await keysOf(account) };
    },
    async addKey(reference, given, options = {}) {
      checkAccountFields(given);
      const { account } = await find(reference);
      const { accessKey, secretKey } = keyPair(given);
      const sealed = { accessKey, sealedSecret: deps.keyring.wrap(utf8(secretKey)) };
      const outcome = requireDone(
        await metadata.execute(system, 'add-access-key', {
          accountId: account.accountId,
          accessKey: sealed,
          ...options,
        }),
      );
      if (outcome.kind === 'no-such-account') throw new AppError('NoSuchEntity');
      if (outcome.kind === 'no-such-signer') throw new AppError('InvalidAccessKeyId');
      if (outcome.kind === 'taken') throw conflict('accessKey');
      if (outcome.kind === 'too-many-keys') throw new AppError('LimitExceeded', { message: TWO_KEYS });
      return { account, key: outcome.accessKey, secretKey };
    },
    async changeKey(reference, change) {
      const { accountId } = (await find(reference)).account;
      const command = { accountId, ...change };
      const outcome = requireDone(await metadata.execute(system, 'change-access-key', command));
      if (outcome.kind === 'no-such-signer') throw new AppError('InvalidAccessKeyId');
      if (outcome.kind === 'no-such-key')
        throw new AppError('NoSuchEntity', { message: 'The account has no such access key.' });
      if (outcome.kind === 'last-key-of-root')
        throw new AppError('DeleteConflict', { message: LAST_KEY_STAYS });
    },
    async ensureRoot(keys) {
      const question = { accessKey: keys.accessKey };
      const isKnown = async () => {
        const found = requireDone(await metadata.query(system, 'get-access-key', question));
        return found.kind === 'found' && found.account.isRoot;
      };
      if (await isKnown()) return true;
      try {
        await send(prepare({ name: ROOT_NAME, email: ROOT_EMAIL, ...keys, isRoot: true }));
        return true;
      } catch (error) {
        // Gateways of a new cluster start together: another one was first.
        if (await isKnown()) return true;
        // Its keys have been exchanged since these were written down.
        if ((await byWord(ROOT_NAME))?.isRoot === true) return false;
        throw error;
      }
    },
  };
}

const TWO_KEYS = `An account has ${LIMITS.accessKeysPerAccountMax} access keys at most. Delete one first.`;
const LAST_KEY_STAYS =
  'It is the last access key with which the root account can sign. Make a new one first.';
export const HELD = 'The operator has suspended this sub-account, and restores or deletes it.';
const ROOT_STAYS = 'The root account can be neither suspended nor deleted.';

function conflict(field: string): AppError {
  const message = `An account with this ${field === 'canonicalId' ? 'canonical id' : field === 'accessKey' ? 'access key' : field} already exists.`;
  return new AppError('EntityAlreadyExists', { message, fields: { [field]: 'is taken' } });
}

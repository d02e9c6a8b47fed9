// Accounts and their keys, as the operator sees them: creation, look-up, change of state and limit, deletion.
// The rows and the decisions about them are the system shard's (R41); signing with the keys is the gateway's.
import { utf8 } from '../lib/bytes.ts';
import { AppError } from '../model/errors.ts';
import { LIMITS } from '../model/limits.ts';
import type { AccountId } from '../model/names.ts';
import type { AccountRecord, AccountState } from '../model/records/rows.ts';
import { settleReply } from '../model/settle-reply.ts';
import type { RandomPort } from '../ports/clock.ts';
import type { KeyringPort } from '../ports/keyring.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../ports/metadata.ts';
import { checkAccountFields, normaliseEmail, refuse } from './account-rules.ts';
import { mintAccountId, mintCanonicalId, mintKeyPair } from './mint-keys.ts';

/** The root account's name and e-mail: it is made before there is anybody to ask. */
const ROOT_NAME = 'root';
const ROOT_EMAIL = 'root@holdfast.invalid';
/** Account ids are 12 random digits: two collisions in a row do not happen. */
const ID_ATTEMPTS = 3;
const LIST_PAGE = 500;

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

export interface AccountWithKeys {
  account: AccountRecord;
  accessKeys: string[];
}

export interface AccountChanges {
  state?: AccountState;
  bucketsMax?: number;
}

export interface Accounts {
  /** The only time that the secret key is told. Throws ValidationError, EntityAlreadyExists. */
  create(input: NewAccount): Promise<{ account: AccountRecord; accessKey: string; secretKey: string }>;
  /** By id ascending. */
  list(): Promise<AccountWithKeys[]>;
  /** By account id, name, e-mail or canonical id. Throws NoSuchEntity. */
  find(reference: string): Promise<AccountWithKeys>;
  /** Throws NoSuchEntity, ValidationError; AccessDenied for suspending the root account, which nobody could undo. */
  change(reference: string, changes: AccountChanges): Promise<AccountWithKeys>;
  /** Throws NoSuchEntity; DeleteConflict while it owns a bucket; AccessDenied for the root account. */
  remove(reference: string): Promise<void>;
  /** Makes the root account unless it is there; `keys` are the ones its data folder keeps. */
  ensureRoot(keys: { accessKey: string; secretKey: string }): Promise<void>;
}

export function createAccounts(deps: {
  metadata: MetadataPort;
  keyring: KeyringPort;
  random: RandomPort;
}): Accounts {
  const { metadata, random } = deps;
  const system = { shard: SYSTEM_SHARD };

  async function insert(input: NewAccount & { isRoot: boolean }) {
    const keys =
      input.accessKey !== undefined && input.secretKey !== undefined
        ? { accessKey: input.accessKey, secretKey: input.secretKey }
        : mintKeyPair(random);
    for (let attempt = 1; ; attempt++) {
      const outcome = settleReply(
        await metadata.execute(system, 'create-account', {
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
          accessKey: { accessKey: keys.accessKey, sealedSecret: deps.keyring.wrap(utf8(keys.secretKey)) },
        }),
      );
      if (outcome.kind === 'created') return { account: outcome.account, ...keys };
      if (outcome.field !== 'accountId' || attempt === ID_ATTEMPTS) throw conflict(outcome.field);
    }
  }

  async function list(): Promise<AccountWithKeys[]> {
    const all: AccountWithKeys[] = [];
    for (let after: AccountId | undefined; ; ) {
      const page = settleReply(
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
    if (!/^\d{12}$/.test(reference)) return null;
    return settleReply(await metadata.query(system, 'get-account', { accountId: reference as AccountId }))
      .account;
  }

  async function byWord(reference: string): Promise<AccountRecord | null> {
    const words = [{ name: reference }, { email: normaliseEmail(reference) }, { canonicalId: reference }];
    for (const word of words) {
      const { account } = settleReply(await metadata.query(system, 'find-account', word));
      if (account !== null) return account;
    }
    return null;
  }

  async function find(reference: string): Promise<AccountWithKeys> {
    const account = (await byId(reference)) ?? (await byWord(reference));
    if (account === null) throw new AppError('NoSuchEntity', { message: 'There is no such account.' });
    // Keys come with the listing only: one row of it, behind the id's predecessor.
    const after = String(Number(account.accountId) - 1).padStart(12, '0') as AccountId;
    const page = settleReply(await metadata.query(system, 'list-accounts', { after, limit: 1 }));
    return { account, accessKeys: page.accessKeys[0] ?? [] };
  }

  return {
    async create(input) {
      checkAccountFields(input);
      return insert({ ...input, isRoot: false });
    },
    list,
    find,
    async change(reference, changes) {
      checkAccountFields(changes);
      if (Object.keys(changes).length === 0) refuse({ changes: 'must name something to change' });
      const { account, accessKeys } = await find(reference);
      if (account.isRoot && changes.state === 'suspended')
        throw new AppError('AccessDenied', { message: ROOT_STAYS });
      const { accountId } = account;
      const outcome = settleReply(await metadata.execute(system, 'set-account', { accountId, changes }));
      if (outcome.kind === 'no-such-account') throw new AppError('NoSuchEntity');
      return { account: outcome.account, accessKeys };
    },
    async remove(reference) {
      const { accountId } = (await find(reference)).account;
      const outcome = settleReply(await metadata.execute(system, 'delete-account', { accountId }));
      if (outcome.kind === 'no-such-account') throw new AppError('NoSuchEntity');
      if (outcome.kind === 'is-root') throw new AppError('AccessDenied', { message: ROOT_STAYS });
      if (outcome.kind === 'owns-buckets') {
        throw new AppError('DeleteConflict', {
          message: 'The account still owns buckets. Delete them first.',
        });
      }
    },
    async ensureRoot(keys) {
      const question = { accessKey: keys.accessKey };
      const isKnown = async () =>
        settleReply(await metadata.query(system, 'get-access-key', question)).kind !== 'unknown';
      if (await isKnown()) return;
      try {
        await insert({ name: ROOT_NAME, email: ROOT_EMAIL, ...keys, isRoot: true });
      } catch (error) {
        // Gateways of a new cluster start together: another one was first.
        if (!(await isKnown())) throw error;
      }
    },
  };
}

const ROOT_STAYS = 'The root account can be neither suspended nor deleted.';

function conflict(field: string): AppError {
  const message = `An account with this ${field === 'canonicalId' ? 'canonical id' : field === 'accessKey' ? 'access key' : field} already exists.`;
  return new AppError('EntityAlreadyExists', { message, fields: { [field]: 'is taken' } });
}

// The identities of an account as actions of IAM work with them: rows are read when they are asked for, and what an action
// makes of them is written at once, if nothing of the account has changed since the first look. Otherwise the action is run
// again from its beginning: it must have no effect beside the store.
import { must } from '../base/assert.ts';
import type { FairTurns } from '../base/async/fair-turns.ts';
import { nextTurn } from '../base/async/next-turn.ts';
import { createSequence, type Sequence } from '../base/async/sequence.ts';
import type { ClockPort, RandomPort } from '../ports/clock.ts';
import {
  type CommandOf,
  type MetadataPort,
  type QueryOf,
  type ResultOf,
  SYSTEM_SHARD,
} from '../ports/metadata/port.ts';
import { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';
import type { AccountId } from '../types/names.ts';
import {
  type IdentityKind,
  type IdentityRecord,
  type IdentitySettingsRecord,
  identityKeys,
} from '../types/records/identity-records.ts';
import type { NewTenancyRecord, TenancyRecord } from '../types/records/tenancy-records.ts';
import { requireDone } from '../types/require-done.ts';

type Change = CommandOf<'change-identities'>;
export type KeyOfUserChange = NonNullable<Change['keys']>[number];
export type RecordOf<K extends IdentityKind> = Extract<IdentityRecord, { kind: K }>;
/** What the settings row counts. */
export type CountedKind = keyof NonNullable<IdentitySettingsRecord['counts']>;

/** One run of an action. Reads give rows as they are stored, or as this run has changed them (`range`: as stored). */
export interface IdentityStore {
  readonly accountId: AccountId;
  /** The access key of long term that asks: where it is taken away by then, the action is run again. */
  signedBy(accessKey: string): void;
  /** Resolves when it is the account's turn to have the thread for one short step, as a look of a long list. */
  turn(): Promise<void>;
  /** The row of a key, if it is of this kind. */
  find<K extends IdentityKind>(kind: K, key: string): Promise<RecordOf<K> | undefined>;
  /** The rows of some keys, one look. */
  findAll<K extends IdentityKind>(kind: K, keys: readonly string[]): Promise<(RecordOf<K> | undefined)[]>;
  /** The same of a list, which decides nothing by them: they are not kept. */
  lookAll<K extends IdentityKind>(kind: K, keys: readonly string[]): Promise<(RecordOf<K> | undefined)[]>;
  /** Rows whose keys begin with the prefix, by key. `after`: a key. */
  range(options: {
    prefix: string;
    after?: string | undefined;
    limit: number;
  }): Promise<{ key: string; record: IdentityRecord }[]>;
  settings(): Promise<IdentitySettingsRecord>;
  /** Gateways may go by it: the action is answered once all of them know. */
  put(key: string, record: IdentityRecord): void;
  /** What is new, or what no decision about a request rests on: nobody is waited for. Indices are always such. */
  putUnseen(key: string, record: IdentityRecord): void;
  remove(key: string): void;
  /** Likewise: indices, and what gateways do not go by. */
  removeUnseen(key: string): void;
  /** One more, or one less; throws LimitExceeded beyond `max`. */
  count(kind: CountedKind, by: { add: 1; max: number } | { add: -1 }): Promise<void>;
  changeKey(change: KeyOfUserChange): void;
  changeAlias(alias: NonNullable<Change['alias']>): void;
  /** Records of the tree, in the same commit: where one has another revision by then, the action is run again. */
  replaceRecords(records: NonNullable<Change['records']>): void;
  /** A new one, likewise: where its login is another's, nothing of the action is written. Gives it once that is done. */
  addRecord(record: NewTenancyRecord): () => TenancyRecord;
}

export interface IdentityStoreDependencies {
  readonly metadata: MetadataPort;
  readonly clock: ClockPort;
  readonly random: RandomPort;
  /** Absent: whose lists are long, and how many of an account's actions run at once, is nobody's matter. */
  readonly turns?: Pick<FairTurns, 'take' | 'join'>;
}

/** The longest run of programs that change one account at once. */
const ATTEMPTS_MAX = 12;
const PAUSE_MAX_MS = 100;

/** Runs the work, and again while others change the account. Throws ConcurrentModification when that does not end. */
export async function withIdentities<T>(
  deps: IdentityStoreDependencies,
  accountId: AccountId,
  work: (store: IdentityStore) => Promise<T>,
): Promise<T> {
  const owner = accountId;
  await deps.turns?.join({ owner, work: 'identities' });
  const done = await runOnce(deps, accountId, work);
  if (done !== undefined) return done.value;
  return overtakenOf(deps.metadata)({ accountId, clock: deps.clock }, async () => {
    for (let attempt = 2; attempt <= ATTEMPTS_MAX; attempt++) {
      await (deps.turns?.take({ owner, work: 'identities' }) ?? nextTurn());
      const again = await runOnce(deps, accountId, work);
      if (again !== undefined) return again.value;
      // By chance, so that those who met do not meet again.
      const share = (deps.random.bytes(1)[0] ?? 0) / 255;
      await deps.clock.sleep(share * Math.min(PAUSE_MAX_MS, 5 * 2 ** attempt));
    }
    throw new AppError('ConcurrentModification');
  });
}

/** undefined: others were faster. */
async function runOnce<T>(
  deps: IdentityStoreDependencies,
  accountId: AccountId,
  work: (store: IdentityStore) => Promise<T>,
): Promise<{ value: T } | undefined> {
  const run = new Run(deps, accountId);
  const value = await work(run);
  return (await run.commit()) ? { value } : undefined;
}

type OneByOne = <T>(
  whose: { readonly accountId: AccountId; readonly clock: ClockPort },
  work: () => Promise<T>,
) => Promise<T>;

const overtaken = new WeakMap<MetadataPort, OneByOne>();

/**
 * Actions of an account that were overtaken here run again one after the other. If all of them ran at once, one would be done each
 * time, and of a hundred programs most would be refused, after a thousand runs. Each waits for its turn as long as a request waits
 * for anything: when a shard is silent those in front wait for it one by one. Throws ServiceUnavailable, and then has not run.
 */
function overtakenOf(metadata: MetadataPort): OneByOne {
  const known = overtaken.get(metadata);
  if (known !== undefined) return known;
  const lanes = new Map<AccountId, { readonly run: Sequence; waitingCount: number }>();
  const oneByOne: OneByOne = async ({ accountId, clock }, work) => {
    const lane = lanes.get(accountId) ?? { run: createSequence(), waitingCount: 0 };
    lanes.set(accountId, lane);
    lane.waitingCount++;
    const begun = new AbortController();
    let isLate = false;
    const done = lane.run(async () => {
      if (isLate) throw new AppError('ServiceUnavailable');
      begun.abort();
      return work();
    });
    const untilLate = async () => {
      await clock.sleep(LIMITS.requestWaitMaxMs, begun.signal);
      if (begun.signal.aborted) return done;
      isLate = true;
      throw new AppError('ServiceUnavailable');
    };
    try {
      return await Promise.race([done, untilLate()]);
    } finally {
      if (--lane.waitingCount === 0) lanes.delete(accountId);
    }
  };
  overtaken.set(metadata, oneByOne);
  return oneByOne;
}

class Run implements IdentityStore {
  readonly accountId: AccountId;
  readonly #deps: IdentityStoreDependencies;
  /** Read or written, by key. */
  readonly #rows = new Map<string, IdentityRecord | null>();
  readonly #written = new Set<string>();
  readonly #keys: KeyOfUserChange[] = [];
  #alias: Change['alias'];
  #records: Change['records'];
  readonly #newRecords: NewTenancyRecord[] = [];
  #added: readonly TenancyRecord[] = [];
  #by: string | undefined;
  #isSeen = false;
  /** Of the first look. */
  #revision: number | undefined;
  /** Looks were at different moments: nothing may be decided by them. */
  #isTorn = false;

  constructor(deps: IdentityStoreDependencies, accountId: AccountId) {
    this.#deps = deps;
    this.accountId = accountId;
  }

  signedBy(accessKey: string): void {
    this.#by = accessKey;
  }

  turn(): Promise<void> {
    return this.#deps.turns?.take({ owner: this.accountId, work: 'listings' }) ?? nextTurn();
  }

  async find<K extends IdentityKind>(kind: K, key: string): Promise<RecordOf<K> | undefined> {
    const [record] = await this.findAll(kind, [key]);
    return record;
  }

  async findAll<K extends IdentityKind>(
    kind: K,
    keys: readonly string[],
  ): Promise<(RecordOf<K> | undefined)[]> {
    const missing = [...new Set(keys)].filter((key) => !this.#rows.has(key));
    if (missing.length > 0) {
      const { rows } = await this.#read({ keys: missing });
      for (const [at, key] of missing.entries()) this.#rows.set(key, rows[at] ?? null);
    }
    return keys.map((key) => {
      const record = this.#rows.get(key);
      return record?.kind === kind ? (record as RecordOf<K>) : undefined;
    });
  }

  async lookAll<K extends IdentityKind>(
    kind: K,
    keys: readonly string[],
  ): Promise<(RecordOf<K> | undefined)[]> {
    const { rows } = await this.#read({ keys: [...keys] });
    return rows.map((record) => (record?.kind === kind ? (record as RecordOf<K>) : undefined));
  }

  async range({ prefix, after, limit }: { prefix: string; after?: string | undefined; limit: number }) {
    const asked = { prefix, limit, ...(after !== undefined && { after }) };
    const { ranges } = await this.#read({ ranges: [asked] });
    return ranges[0] ?? [];
  }

  async settings(): Promise<IdentitySettingsRecord> {
    const stored = await this.find('settings', identityKeys.settings);
    return stored ?? { kind: 'settings', rootMfaDevices: [] };
  }

  put(key: string, record: IdentityRecord): void {
    if (record.kind !== 'index') this.#isSeen = true;
    this.#write(key, record);
  }

  putUnseen(key: string, record: IdentityRecord): void {
    this.#write(key, record);
  }

  remove(key: string): void {
    this.#isSeen = true;
    this.#write(key, null);
  }

  removeUnseen(key: string): void {
    this.#write(key, null);
  }

  async count(kind: CountedKind, by: { add: 1; max: number } | { add: -1 }): Promise<void> {
    const settings = await this.settings();
    const after = (settings.counts?.[kind] ?? 0) + by.add;
    if (by.add === 1 && after > by.max) {
      const name = {
        user: 'users',
        group: 'groups',
        role: 'roles',
        policy: 'policies',
        mfaDevice: 'MFADevices',
      };
      throw new AppError('LimitExceeded', {
        message: `Cannot exceed quota for ${name[kind]}PerAccount: ${by.max}`,
      });
    }
    this.putUnseen(identityKeys.settings, {
      ...settings,
      counts: { ...settings.counts, [kind]: Math.max(0, after) },
    });
  }

  changeKey(change: KeyOfUserChange): void {
    if (change.kind === 'delete' || change.kind === 'disable') this.#isSeen = true;
    this.#keys.push(change);
  }

  changeAlias(alias: NonNullable<Change['alias']>): void {
    this.#alias = alias;
  }

  replaceRecords(records: NonNullable<Change['records']>): void {
    this.#records = records;
  }

  addRecord(record: NewTenancyRecord): () => TenancyRecord {
    const at = this.#newRecords.push(record) - 1;
    return () => must(this.#added[at], 'the action is done');
  }

  /** False: others were faster. Throws EntityAlreadyExists for an alias, or a login, of another. */
  async commit(): Promise<boolean> {
    const hasRows = this.#written.size > 0 || this.#keys.length > 0 || this.#newRecords.length > 0;
    if (!hasRows && this.#alias === undefined && this.#records === undefined) return true;
    if (this.#isTorn) return false;
    const outcome = requireDone(
      await this.#deps.metadata.execute({ shard: SYSTEM_SHARD }, 'change-identities', {
        accountId: this.accountId,
        ifRevision: must(this.#revision, 'a change rests on what it has read'),
        rows: [...this.#written].map((key) => ({ key, record: this.#rows.get(key) ?? null })),
        isSeen: this.#isSeen,
        ...(this.#by !== undefined && { by: this.#by }),
        ...(this.#keys.length > 0 && { keys: this.#keys }),
        ...(this.#alias && { alias: this.#alias }),
        ...(this.#records && { records: this.#records }),
        ...(this.#newRecords.length > 0 && { newRecords: this.#newRecords }),
      }),
    );
    switch (outcome.kind) {
      case 'changed':
        this.#added = outcome.added ?? [];
        return true;
      case 'no-such-account':
        throw new AppError('InvalidClientTokenId');
      case 'alias-taken':
        throw new AppError('EntityAlreadyExists', {
          message: `The account alias ${this.#alias?.after} already exists.`,
        });
      case 'login-taken':
        throw new AppError('EntityAlreadyExists', {
          message: 'A member with this username already exists.',
          fields: { username: 'is taken' },
        });
      // `key-taken`: the next run makes another one up.
      default:
        return false;
    }
  }

  #write(key: string, record: IdentityRecord | null): void {
    this.#rows.set(key, record);
    this.#written.add(key);
  }

  async #read(asked: Omit<QueryOf<'read-identities'>, 'accountId'>): Promise<ResultOf<'read-identities'>> {
    const question = { accountId: this.accountId, ...asked };
    const { metadata } = this.#deps;
    const result = requireDone(await metadata.query({ shard: SYSTEM_SHARD }, 'read-identities', question));
    this.#revision ??= result.revision;
    if (this.#revision !== result.revision) this.#isTorn = true;
    return result;
  }
}

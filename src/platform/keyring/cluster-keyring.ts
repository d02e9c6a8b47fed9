// The master keys of a gateway of a cluster. They come to it in a file, which the operator copies: no key passes through etcd,
// a metadata node or another gateway. Which of them wraps is said by the record of the system shard (master-keys-record.ts).
import { type Moment, momentNow } from '../../base/moment.ts';
import { Refusal } from '../../base/refusal.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { ClusterKeyring } from '../../ports/keyring.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { AppError } from '../../types/errors.ts';
import type { MasterKeysRecord } from '../../types/records/master-keys-record.ts';
import { createKeyring, type MasterKeys } from '../memory/memory-keyring.ts';
import { readMasterKeys, writeMasterKeys } from './file-keyring.ts';

/** How often the file is read: it may have been exchanged. */
const READ_FILE_EVERY_MS = 5000;

export interface OpenedClusterKeyring extends ClusterKeyring {
  /** Which keys of those that the cluster uses are missing here; empty: all are there. */
  missing(): readonly string[];
  /** Reads the file again now. Never rejects: what is wrong is logged. */
  readAgain(): Promise<void>;
  /** Reads it again and again until `signal` aborts. */
  follow(signal: AbortSignal): Promise<void>;
}

/**
 * Rejects with {@link Refusal} when the file cannot be read. `writer`: a name of this process, for its temporary file.
 * `oldestRequestMs`: monotonic ms at which the oldest request in flight began; undefined when there is none.
 */
export async function openClusterKeyring(options: {
  path: string;
  writer: string;
  clock: ClockPort;
  log: Logger;
  oldestRequestMs(): number | undefined;
}): Promise<OpenedClusterKeyring> {
  const initial = await readMasterKeys(options.path);
  if (initial !== undefined) return new Opened(options, initial);
  throw new Refusal(
    `${options.path} is missing: without it nothing in this cluster can be read. Put it there.`,
  );
}

class Opened implements OpenedClusterKeyring {
  readonly #options: Parameters<typeof openClusterKeyring>[0];
  readonly #ring;
  /** All that were ever in the file while this process ran: a request may need one that was removed. */
  readonly #keys: Map<string, Uint8Array>;
  /** As the file had it last. */
  #file: MasterKeys;
  /** Used as long as there is no record. What comes into the file later waits for one. */
  readonly #first: Pick<MasterKeysRecord, 'activeKeyId' | 'olderKeyIds'>;
  #record: MasterKeysRecord | undefined;
  #activeSince: Moment;
  #trouble = '';
  #lastRead: Promise<void> = Promise.resolve();

  constructor(options: Parameters<typeof openClusterKeyring>[0], initial: MasterKeys) {
    this.#options = options;
    this.#file = initial;
    this.#keys = new Map(initial.keys);
    const { activeKeyId } = initial;
    const keyIds = [...initial.keys.keys()];
    // A folder of a single node may be in the midst of a rotation.
    this.#first = { activeKeyId, olderKeyIds: keyIds.slice(0, keyIds.indexOf(activeKeyId)) };
    this.#ring = createKeyring({ initial });
    this.#activeSince = momentNow(options.clock);
  }

  get activeKeyId(): string {
    return this.#used.activeKeyId;
  }

  get #used(): Pick<MasterKeysRecord, 'activeKeyId' | 'olderKeyIds'> {
    return this.#record ?? this.#first;
  }

  get #usedKeyIds(): string[] {
    const { activeKeyId, olderKeyIds } = this.#used;
    return [...olderKeyIds, activeKeyId];
  }

  wrap(kek: Uint8Array) {
    // Under another one it would be lost once that is removed.
    if (!this.#keys.has(this.activeKeyId)) throw lacks(this.activeKeyId);
    return this.#ring.wrap(kek);
  }

  unwrap(wrapped: Parameters<ClusterKeyring['unwrap']>[0]) {
    const { by, keyId } = wrapped;
    if (by === 'master' && this.missing().includes(keyId)) throw lacks(keyId);
    return this.#ring.unwrap(wrapped);
  }

  /** Of the file as it is now, and of those that are used the ones that it had. */
  keyIds(): readonly string[] {
    const removed = this.#record?.removedKeyIds ?? [];
    const used = this.#usedKeyIds.filter((keyId) => this.#keys.has(keyId));
    const keyIds = new Set([...this.#file.keys.keys(), ...used]);
    return [...keyIds].filter((keyId) => !removed.includes(keyId));
  }

  newKeyIds(): readonly string[] {
    const used = this.#usedKeyIds;
    return this.keyIds().filter((keyId) => !used.includes(keyId));
  }

  missing(): readonly string[] {
    return this.#usedKeyIds.filter((keyId) => !this.#keys.has(keyId));
  }

  record(): MasterKeysRecord | undefined {
    return this.#record;
  }

  held(): ReturnType<ClusterKeyring['held']> {
    const { activeKeyId } = this;
    const oldestMs = this.#options.oldestRequestMs() ?? Number.POSITIVE_INFINITY;
    const isSettled = this.#keys.has(activeKeyId) && oldestMs > this.#activeSince.monotonicMs;
    // What it needs after a restart counts: the file.
    const keyIds = this.keyIds().filter((keyId) => this.#file.keys.has(keyId));
    return { keyIds, ...(isSettled && { settledKeyId: activeKeyId }) };
  }

  learn(record: MasterKeysRecord): void {
    const { activeKeyId: before } = this;
    this.#record = record;
    if (record.activeKeyId !== before) this.#activeSince = momentNow(this.#options.clock);
    this.#exchange();
  }

  readAgain(): Promise<void> {
    this.#lastRead = this.#lastRead.then(async () => {
      try {
        this.#note(await this.#readFile());
      } catch (error) {
        this.#note((error as Error).message);
      }
    });
    return this.#lastRead;
  }

  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.readAgain();
      await this.#options.clock.sleep(READ_FILE_EVERY_MS, signal);
    }
  }

  /** Takes new keys from the file, and brings it up to what the cluster uses. Resolves with what stays wrong; empty: nothing. */
  async #readFile(): Promise<string> {
    const { path, writer, log } = this.#options;
    const file = await readMasterKeys(path);
    if (file !== undefined) {
      this.#file = file;
      for (const [keyId, key] of file.keys) if (!this.#keys.has(keyId)) this.#keys.set(keyId, key);
      this.#exchange();
    }
    if (this.missing().length > 0) return '';
    const wanted = this.#wanted();
    const wrong = whatIsWrong(file, wanted);
    if (this.#record === undefined || (file !== undefined && isSame(wanted, file))) return wrong;
    try {
      await writeMasterKeys(path, wanted, writer);
    } catch (error) {
      return wrong && `${wrong}, and cannot be written here: ${(error as Error).message}`;
    }
    this.#file = wanted;
    log.info({ activeKeyId: wanted.activeKeyId, keyIds: [...wanted.keys.keys()] }, 'master-keys-written');
    return '';
  }

  /** What the file should have: its keys but the removed ones, and the used ones, also those that an older copy in its place lacks. */
  #wanted(): MasterKeys {
    const keyIds = this.keyIds();
    // In the order of their making.
    const keys = new Map([...this.#keys].filter(([keyId]) => keyIds.includes(keyId)));
    return { activeKeyId: this.activeKeyId, keys };
  }

  #exchange(): void {
    const { activeKeyId } = this;
    if (this.#keys.has(activeKeyId)) this.#ring.follow({ activeKeyId, keys: new Map(this.#keys) });
    if (this.missing().length > 0) this.#note('');
  }

  /** Logs what is wrong with the file, when that changes. */
  #note(trouble: string): void {
    const missing = this.missing();
    const now = trouble === '' && missing.length > 0 ? lacksKeys(missing) : trouble;
    if (now === this.#trouble) return;
    this.#trouble = now;
    const { log, path } = this.#options;
    if (now === '') log.info({ path }, 'master-keys-file-good');
    else log.warn({ path, reason: now }, 'master-keys-file-outdated');
  }
}

/** That the file names another active key is nothing: the record does. */
function whatIsWrong(file: MasterKeys | undefined, wanted: MasterKeys): string {
  if (file === undefined) return 'it is gone';
  const lacking = [...wanted.keys.keys()].filter((keyId) => !file.keys.has(keyId));
  if (lacking.length > 0) return lacksKeys(lacking);
  const removed = [...file.keys.keys()].filter((keyId) => !wanted.keys.has(keyId));
  return removed.length === 0 ? '' : `it still has the removed master key ${removed.join(', ')}`;
}

function lacksKeys(keyIds: readonly string[]): string {
  return `it lacks the master key ${keyIds.join(', ')}, which the cluster uses`;
}

function isSame(a: MasterKeys, b: MasterKeys): boolean {
  return (
    a.activeKeyId === b.activeKeyId && [...a.keys.keys()].sort().join() === [...b.keys.keys()].sort().join()
  );
}

function lacks(keyId: string): AppError {
  const cause = new Error(`this gateway lacks the master key ${keyId}: copy master-keys.json of another one`);
  return new AppError('ServiceUnavailable', { cause });
}

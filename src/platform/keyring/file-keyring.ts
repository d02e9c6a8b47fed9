// Master keys in a file of mode 0600 in the data folder. Who has the file and the data reads everything; who loses it
// has lost everything, so a missing or odd file is refused and never replaced.
import { KEY_BYTES } from '../../base/crypto/aead.ts';
import { Refusal } from '../../base/refusal.ts';
import type { ChangeableKeyring } from '../../ports/keyring.ts';
import { writeDurableFile } from '../disk/durable-file.ts';
import { readSecretFile } from '../disk/secret-file.ts';
import { createKeyring, type MasterKeys, newMasterKeys } from '../memory/memory-keyring.ts';
import type { NeededKeys } from './needed-keys.ts';

export const MASTER_KEYS_FILE = 'master-keys.json';

const FORMAT = 1;

interface StoredKeys {
  format: number;
  activeKeyId: string;
  /** In the order of their making; base64. */
  keys: { id: string; key: string }[];
}

/**
 * Reads the keys, or makes them when the data folder is new (`isNew`). Rejects with {@link Refusal} when the file
 * is missing beside existing data, cannot be read, can be read by others, or is not understood.
 */
export async function openMasterKeys(options: { path: string; isNew: boolean }): Promise<MasterKeys> {
  const { path } = options;
  const stored = await readMasterKeys(path);
  if (stored !== undefined) return stored;
  if (!options.isNew)
    throw new Refusal(`${path} is missing: without it nothing in this data folder can be read. Put it back.`);
  const made = newMasterKeys();
  await writeDurableFile(path, encode(made));
  return made;
}

/** A keyring of these keys that keeps its changes in the file, for processes that have no data of their own. */
export async function openFileKeyring(options: { path: string; isNew: boolean }): Promise<ChangeableKeyring> {
  const { path } = options;
  return createKeyring({
    initial: await openMasterKeys(options),
    save: (keys) => writeDurableFile(path, encode(keys)),
  });
}

/** Puts the keys into the file. `writer`: where several processes may, the name of this one. */
export async function writeMasterKeys(path: string, keys: MasterKeys, writer?: string): Promise<void> {
  await writeDurableFile(path, encode(keys), writer);
}

/**
 * Adds a new key to the file, and leaves the active one: its copies have to reach all gateways of a cluster first. Resolves
 * with its id. Rejects with {@link Refusal} where there is no file, or it cannot be read.
 */
export async function addMasterKey(path: string): Promise<string> {
  const stored = await readMasterKeys(path);
  if (stored === undefined)
    throw new Refusal(`${path} is missing: give the folder with the keys of a gateway.`);
  const { keys: made, activeKeyId: keyId } = newMasterKeys();
  await writeMasterKeys(path, { activeKeyId: stored.activeKeyId, keys: new Map([...stored.keys, ...made]) });
  return keyId;
}

/**
 * A keyring of these keys that keeps its changes in the file, beside the data: `needed` records there which keys it needs. Rejects with {@link Refusal} when
 * one of them is not among `keys`.
 */
export async function openDataKeyring(options: {
  path: string;
  keys: MasterKeys;
  needed: NeededKeys;
  /** Called with each change once it is durable, and awaited before it holds here: threads with keyrings of their own learn it. */
  onChange?: ((next: MasterKeys) => Promise<void>) | undefined;
}): Promise<ChangeableKeyring> {
  const { path, keys, needed, onChange } = options;
  const recorded = (await needed.read()) ?? [];
  const present = [...keys.keys.keys()];
  const missing = recorded.filter((keyId) => !keys.keys.has(keyId));
  if (missing.length > 0)
    throw new Refusal(
      `${path} lacks the master key ${missing.join(', ')}, which stored data needs; it has ${present.join(', ')}.\n` +
        'It is a copy from before a `holdfast keys rotate`, or of another server: put the newest copy back.',
    );
  if (recorded.join() !== present.join()) await needed.write(present);
  let current: readonly string[] = present;
  return createKeyring({
    initial: keys,
    async save(next) {
      const ids = [...next.keys.keys()];
      // Cut short anywhere between the three, the file has all keys that the record names.
      const staying = current.filter((keyId) => next.keys.has(keyId));
      if (staying.length < current.length) await needed.write(staying);
      await writeDurableFile(path, encode(next));
      if (ids.length > staying.length) await needed.write(ids);
      current = ids;
      await onChange?.(next);
    },
  });
}

/** Undefined: there is no file. Rejects with {@link Refusal} as {@link openMasterKeys}. */
export async function readMasterKeys(path: string): Promise<MasterKeys | undefined> {
  let text: string;
  try {
    text = await readSecretFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    if (error instanceof Refusal) throw error;
    // Often it is another user's: copied by root for a service that is not.
    throw new Refusal(`cannot read ${path}: ${(error as Error).message}`);
  }
  const keys = decode(text);
  if (keys === undefined) throw new Refusal(`${path} does not hold master keys as this program writes them.`);
  return keys;
}

function encode({ activeKeyId, keys }: MasterKeys): string {
  const stored: StoredKeys = {
    format: FORMAT,
    activeKeyId,
    keys: [...keys].map(([id, key]) => ({ id, key: Buffer.from(key).toString('base64') })),
  };
  return `${JSON.stringify(stored, null, 2)}\n`;
}

function decode(text: string): MasterKeys | undefined {
  try {
    const stored = JSON.parse(text) as StoredKeys;
    const keys = new Map(stored.keys.map(({ id, key }) => [id, Buffer.from(key, 'base64')]));
    const isSound = stored.format === FORMAT && [...keys.values()].every((key) => key.length === KEY_BYTES);
    return isSound && keys.has(stored.activeKeyId) ? { activeKeyId: stored.activeKeyId, keys } : undefined;
  } catch {
    return undefined;
  }
}

// Master keys in a file of mode 0600 in the data folder. Who has the file and the data reads everything; who loses it
// has lost everything, so a missing or odd file is refused and never replaced.
import { KEY_BYTES } from '../lib/aead.ts';
import { Refusal } from '../lib/refusal.ts';
import type { KeyringPort } from '../ports/keyring.ts';
import { writeDurableFile } from './durable-file.ts';
import { createKeyring, type MasterKeys, newMasterKeys } from './memory-keyring.ts';
import { readSecretFile } from './secret-file.ts';

export const MASTER_KEYS_FILE = 'master-keys.json';

const FORMAT = 1;

interface StoredKeys {
  format: number;
  activeKeyId: string;
  /** In the order of their making; base64. */
  keys: { id: string; key: string }[];
}

/**
 * Opens the keyring, or makes it when the data folder is new (`isNew`). Rejects with {@link Refusal} when the file
 * is missing beside existing data, cannot be read, can be read by others, or is not understood.
 */
export async function openFileKeyring(options: { path: string; isNew: boolean }): Promise<KeyringPort> {
  const { path } = options;
  const save = (keys: MasterKeys) => writeDurableFile(path, encode(keys));
  const stored = await read(path);
  if (stored !== undefined) return createKeyring({ initial: stored, save });
  if (!options.isNew)
    throw new Refusal(`${path} is missing: without it nothing in this data folder can be read. Put it back.`);
  const initial = newMasterKeys();
  await save(initial);
  return createKeyring({ initial, save });
}

async function read(path: string): Promise<MasterKeys | undefined> {
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

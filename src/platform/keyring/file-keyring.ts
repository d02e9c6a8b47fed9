// Master keys in a file of mode 0600 in the data folder. Who has the file and the data reads everything; who loses it
// has lost everything, so a missing or odd file is refused and never replaced.
import { readdir, realpath, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { KEY_BYTES } from '../../base/crypto/aead.ts';
import { Refusal } from '../../base/refusal.ts';
import type { ChangeableKeyring } from '../../ports/keyring.ts';
import { writeDurableFile } from '../disk/durable-file.ts';
import { readSecretFile } from '../disk/secret-file.ts';
import { createKeyring, type MasterKeys, newMasterKeys } from '../memory/memory-keyring.ts';
import type { NeededKeys } from './needed-keys.ts';

export const MASTER_KEYS_FILE = 'master-keys.json';

const FORMAT = 1;
/** A temporary file so much older than the newest is nobody's any more. */
const LEFT_BEHIND_MS = 60_000;

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

/**
 * Puts the keys into the file of a gateway, whose owner and place, behind symbolic links, stay as they are. `writer`: the name
 * of this process, of several that may do so.
 */
export async function writeMasterKeys(path: string, keys: MasterKeys, writer?: string): Promise<void> {
  const place = await unlessGone(realpath(path));
  const like = await unlessGone(stat(path));
  const target = place ?? path;
  await writeDurableFile(target, encode(keys), { writer, like });
  if (writer !== undefined) await removeLeftBehind(target);
}

async function unlessGone<T>(asked: Promise<T>): Promise<T | undefined> {
  return asked.catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return undefined;
  });
}

/** Temporary files of writers that were killed: they hold keys that may be removed since. */
async function removeLeftBehind(path: string): Promise<void> {
  const name = basename(path);
  const { mtimeMs } = await stat(path);
  for (const other of await readdir(dirname(path))) {
    if (!other.startsWith(`${name}.`) || !other.endsWith('.new')) continue;
    const left = join(dirname(path), other);
    const found = await unlessGone(stat(left));
    if (found !== undefined && mtimeMs - found.mtimeMs > LEFT_BEHIND_MS) await rm(left, { force: true });
  }
}

/**
 * Adds a new key to the file, and leaves the active one: its copies have to reach all gateways of a cluster first. Resolves
 * with its id. Rejects with {@link Refusal} where there is no file, or it cannot be read.
 */
export async function addMasterKey(path: string): Promise<string> {
  const stored = await readFolderKeys(path);
  const { keys: made, activeKeyId: keyId } = newMasterKeys();
  await writeMasterKeys(path, { activeKeyId: stored.activeKeyId, keys: new Map([...stored.keys, ...made]) });
  return keyId;
}

/**
 * Takes a key out of the file, where no gateway may do so. Rejects with {@link Refusal} where it is not in it, or is the only
 * one.
 */
export async function removeMasterKey(path: string, keyId: string): Promise<void> {
  const stored = await readFolderKeys(path);
  const keys = new Map(stored.keys);
  const present = [...keys.keys()].join(', ');
  if (!keys.delete(keyId)) throw new Refusal(`${path} has no master key ${keyId}; it has ${present}.`);
  const newest = [...keys.keys()].at(-1);
  if (newest === undefined) throw new Refusal(`${keyId} is the only master key in ${path}.`);
  const activeKeyId = keys.has(stored.activeKeyId) ? stored.activeKeyId : newest;
  await writeMasterKeys(path, { activeKeyId, keys });
}

async function readFolderKeys(path: string): Promise<MasterKeys> {
  const stored = await readMasterKeys(path);
  if (stored !== undefined) return stored;
  throw new Refusal(`${path} is missing: give the folder with the keys of a gateway.`);
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

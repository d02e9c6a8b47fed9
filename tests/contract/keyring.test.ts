// What every KeyringPort promises (src/ports/keyring.ts), run over each adapter.
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { Refusal } from '../../src/base/refusal.ts';
import {
  MASTER_KEYS_FILE,
  openDataKeyring,
  openFileKeyring,
  openMasterKeys,
} from '../../src/platform/keyring/file-keyring.ts';
import { createNeededKeys } from '../../src/platform/keyring/needed-keys.ts';
import { createKeyring } from '../../src/platform/memory/memory-keyring.ts';
import { createMemoryKv } from '../../src/platform/memory/memory-kv.ts';
import type { KvPort } from '../../src/ports/kv.ts';

const folders: string[] = [];
async function newPath(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-keys-'));
  folders.push(folder);
  return join(folder, MASTER_KEYS_FILE);
}
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

describe.each([
  ['memory', async () => createKeyring()],
  ['file', async () => openFileKeyring({ path: await newPath(), isNew: true })],
])('%s', (_name, open) => {
  test('unwraps what it has wrapped', async () => {
    const keyring = await open();
    const kek = randomBytes(32);
    const wrapped = keyring.wrap(kek);
    expect(wrapped).toMatchObject({ by: 'master', keyId: keyring.activeKeyId });
    expect(Buffer.from(wrapped.wrapped).includes(kek)).toBe(false);
    expect(keyring.wrap(kek).wrapped).not.toEqual(wrapped.wrapped);
    expect(keyring.unwrap(wrapped)).toEqual(kek);
  });

  test('refuses foreign bytes', async () => {
    const keyring = await open();
    const wrapped = keyring.wrap(randomBytes(32));
    const changed = Uint8Array.from(wrapped.wrapped);
    changed[20] = (changed[20] ?? 0) ^ 1;
    for (const odd of [
      { ...wrapped, wrapped: changed },
      { ...wrapped, keyId: 'unknown' },
      { ...wrapped, by: 'customer' as const },
    ])
      expect(() => keyring.unwrap(odd)).toThrow(expect.objectContaining({ code: 'InternalError' }));
  });

  test('rotates: a new key is active, older ones unwrap until they are removed', async () => {
    const keyring = await open();
    const kek = randomBytes(32);
    const old = keyring.wrap(kek);
    const keyId = await keyring.addKey();
    expect(keyring.activeKeyId).toBe(keyId);
    expect(keyring.keyIds()).toEqual([old.keyId, keyId]);
    expect(keyring.unwrap(old)).toEqual(kek);
    const anew = keyring.wrap(kek);
    expect(anew.keyId).toBe(keyId);
    expect(() => keyring.unwrap({ ...old, keyId })).toThrow();
    await expect(keyring.removeKey(keyId)).rejects.toThrow('active');
    await keyring.removeKey(old.keyId);
    expect(keyring.keyIds()).toEqual([keyId]);
    expect(() => keyring.unwrap(old)).toThrow();
    expect(keyring.unwrap(anew)).toEqual(kek);
  });

  test('concurrent changes all persist', async () => {
    const keyring = await open();
    const added = await Promise.all([keyring.addKey(), keyring.addKey(), keyring.addKey()]);
    expect(keyring.keyIds().slice(1)).toEqual(added);
    expect(keyring.activeKeyId).toBe(added[2]);
  });
});

describe('the file', () => {
  test('stores the keys for the next start, for its owner only', async () => {
    const path = await newPath();
    const first = await openFileKeyring({ path, isNew: true });
    const old = first.wrap(randomBytes(32));
    await first.addKey();
    const anew = first.wrap(randomBytes(32));
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const second = await openFileKeyring({ path, isNew: false });
    expect(second.keyIds()).toEqual(first.keyIds());
    expect(second.activeKeyId).toBe(first.activeKeyId);
    expect(second.unwrap(old)).toEqual(first.unwrap(old));
    expect(second.unwrap(anew)).toEqual(first.unwrap(anew));
  });

  test('is never created beside existing data', async () => {
    const path = await newPath();
    await expect(openFileKeyring({ path, isNew: false })).rejects.toThrow('is missing');
    await expect(stat(path)).rejects.toThrow('ENOENT');
  });

  test('that cannot be read is refused with a message', async () => {
    // In its place, because root may read every file.
    const path = await newPath();
    await mkdir(path, { mode: 0o700 });
    const opening = openFileKeyring({ path, isNew: false });
    await expect(opening).rejects.toBeInstanceOf(Refusal);
    await expect(opening).rejects.toThrow(`cannot read ${path}: EISDIR`);
  });

  test('is refused and unchanged when others may read it, or it is not understood', async () => {
    const path = await newPath();
    await openFileKeyring({ path, isNew: true });
    await chmod(path, 0o640);
    await expect(openFileKeyring({ path, isNew: false })).rejects.toThrow('chmod 600');
    await chmod(path, 0o600);
    const text = await readFile(path, 'utf8');
    for (const odd of [
      '',
      '{}',
      text.replace('"format": 1', '"format": 2'),
      text.replace('activeKeyId', 'x'),
    ]) {
      await writeFile(path, odd);
      await expect(openFileKeyring({ path, isNew: true })).rejects.toThrow('does not hold master keys');
      expect(await readFile(path, 'utf8')).toBe(odd);
    }
  });
});

describe('beside the data', () => {
  const openBeside = async (path: string, kv: KvPort) => {
    const keys = await openMasterKeys({ path, isNew: false });
    return openDataKeyring({ path, keys, needed: createNeededKeys(kv) });
  };

  test('a copy of the keys from before a rotation is refused at the start, and the missing key is named', async () => {
    const path = await newPath();
    const kv = createMemoryKv(['rows']);
    await openMasterKeys({ path, isNew: true });
    const keyring = await openBeside(path, kv);
    const before = keyring.activeKeyId;
    const copy = await readFile(path);
    const newest = await keyring.addKey();
    const during = await readFile(path);
    await writeFile(path, copy);
    await expect(openBeside(path, kv)).rejects.toThrow(
      `${path} lacks the master key ${newest}, which stored data needs; it has ${before}.`,
    );
    await keyring.removeKey(before);
    // What is left over may stay in a copy; what is needed may not be missing.
    await writeFile(path, during);
    expect((await openBeside(path, kv)).keyIds()).toEqual([before, newest]);
    await writeFile(path, copy);
    await expect(openBeside(path, kv)).rejects.toThrow(Refusal);
  });

  test('a rotation that was cut short between the file and the record opens again', async () => {
    const path = await newPath();
    const kv = createMemoryKv(['rows']);
    const needed = createNeededKeys(kv);
    const keys = await openMasterKeys({ path, isNew: true });
    let isCut = false;
    const write = async (ids: readonly string[]) => {
      if (isCut) throw new Error('cut short');
      await needed.write(ids);
    };
    const keyring = await openDataKeyring({ path, keys, needed: { ...needed, write } });
    isCut = true;
    await expect(keyring.addKey()).rejects.toThrow('cut short');
    const again = await openBeside(path, kv);
    expect(again.keyIds()).toHaveLength(2);
    expect(await needed.read()).toEqual(again.keyIds());
  });
});

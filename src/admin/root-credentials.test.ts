import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemRandom } from '../platform/system-clock.ts';
import { CREDENTIALS_FILE, openRootCredentials, readRootCredentials } from './root-credentials.ts';

const NOTHING = { accessKey: undefined, secretKey: undefined };
const GIVEN = { accessKey: 'AKIDGIVEN0000000', secretKey: 'a-secret-key-that-was-given' };

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-root-'));
});
afterEach(() => rm(folder, { recursive: true }));

test('a gateway makes no credentials, because other gateways would not know them', async () => {
  await expect(readRootCredentials({ folder, given: NOTHING })).rejects.toThrow(
    `there is no ${join(folder, CREDENTIALS_FILE)}: \`holdfast cluster init\` has made it beside master-keys.json, and every gateway needs both`,
  );
  expect(await readdir(folder)).toEqual([]);
});

test('a gateway takes the stored credentials, else the given ones, and writes nothing', async () => {
  expect(await readRootCredentials({ folder, given: GIVEN })).toEqual(GIVEN);
  expect(await readdir(folder)).toEqual([]);
  const made = await openRootCredentials({ folder, given: NOTHING, random: systemRandom, isNew: true });
  expect(await readRootCredentials({ folder, given: NOTHING })).toEqual(made);
  expect(await readRootCredentials({ folder, given: made })).toEqual(made);
  await expect(readRootCredentials({ folder, given: GIVEN })).rejects.toThrow('are not the root credentials');
});

test('a damaged file, and keys that no account may have, are refused', async () => {
  const given = { accessKey: 'x', secretKey: 'y' };
  await expect(readRootCredentials({ folder, given })).rejects.toThrow('the root credentials given');
  await writeFile(join(folder, CREDENTIALS_FILE), '{}', { mode: 0o600 });
  await expect(readRootCredentials({ folder, given: NOTHING })).rejects.toThrow('is damaged');
});

test('no new credentials are made for existing data, whose root account would not know them', async () => {
  const options = { folder, random: systemRandom, isNew: false };
  await expect(openRootCredentials({ ...options, given: NOTHING })).rejects.toThrow(
    `${join(folder, CREDENTIALS_FILE)} is missing`,
  );
  expect(await readdir(folder)).toEqual([]);
  expect(await openRootCredentials({ ...options, given: GIVEN })).toEqual(GIVEN);
  // They may be wrong, and would then block the right ones.
  expect(await readdir(folder)).toEqual([]);
});

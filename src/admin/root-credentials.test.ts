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

test('a gateway makes up no credentials: the others would not know them', async () => {
  await expect(readRootCredentials({ folder, given: NOTHING })).rejects.toThrow(
    `there is no ${join(folder, CREDENTIALS_FILE)}: \`holdfast cluster init\` has made it beside master-keys.json, and every gateway needs both`,
  );
  expect(await readdir(folder)).toEqual([]);
});

test('it takes those that are stored, and given ones where none are, and writes nothing', async () => {
  expect(await readRootCredentials({ folder, given: GIVEN })).toEqual(GIVEN);
  expect(await readdir(folder)).toEqual([]);
  const made = await openRootCredentials({ folder, given: NOTHING, random: systemRandom, isNew: true });
  expect(await readRootCredentials({ folder, given: NOTHING })).toEqual(made);
  expect(await readRootCredentials({ folder, given: made })).toEqual(made);
  await expect(readRootCredentials({ folder, given: GIVEN })).rejects.toThrow('are not the root credentials');
});

test('neither a damaged file nor keys that no account may have are passed over', async () => {
  const given = { accessKey: 'x', secretKey: 'y' };
  await expect(readRootCredentials({ folder, given })).rejects.toThrow('the root credentials given');
  await writeFile(join(folder, CREDENTIALS_FILE), '{}', { mode: 0o600 });
  await expect(readRootCredentials({ folder, given: NOTHING })).rejects.toThrow('is damaged');
});

test('no others are made up beside data, whose root account would not know them', async () => {
  const options = { folder, random: systemRandom, isNew: false };
  await expect(openRootCredentials({ ...options, given: NOTHING })).rejects.toThrow(
    `${join(folder, CREDENTIALS_FILE)} is missing`,
  );
  expect(await readdir(folder)).toEqual([]);
  expect(await openRootCredentials({ ...options, given: GIVEN })).toEqual(GIVEN);
  // They may be wrong, and would then stand in the way of the right ones.
  expect(await readdir(folder)).toEqual([]);
});

// Access keys of an account in exchange for another, through the command line tool and the operator API; the root's too.
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { accountKeys, type KeyOptions } from '../../src/cli/access-key-commands.ts';
import { createAccount } from '../../src/cli/account-commands.ts';
import type { CliContext, FileCliContext } from '../../src/cli/connect.ts';
import { writeDurableFile } from '../../src/platform/disk/durable-file.ts';
import { isServerGiven } from '../support/servers/given-server.ts';
import { ownServerTest as test } from '../support/servers/own-server-test.ts';
import { send } from '../support/servers/raw-s3.ts';
import { freshWord } from '../support/servers/s3-api.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

let base = '';
let dataDir = '';
let server: TestServer;

beforeAll(async () => {
  if (isServerGiven()) return;
  base = await mkdtemp(join(tmpdir(), 'holdfast-keys-'));
  dataDir = join(base, 'data');
  server = await startServer({ dataDir });
});

afterAll(async () => {
  await server?.stop();
  if (base !== '') await rm(base, { recursive: true, force: true });
});

interface Key {
  accessKey: string;
  secretKey: string;
  state: string;
}

const context: FileCliContext = {
  env: {},
  print() {},
  nowMs: Date.now,
  sleep: async () => {},
  writeFile: writeDurableFile,
};

/** What the command prints with --json, and what it says without. */
async function keys<T>(account: string, options: KeyOptions = {}, env: CliContext['env'] = {}): Promise<T> {
  const printed: string[] = [];
  const print = (line: string) => void printed.push(line);
  await accountKeys({ ...context, env, print }, account, { dataDir, json: true, ...options });
  return JSON.parse(printed.join('\n')) as T;
}

const statusOf = async ({ accessKey, secretKey }: Pick<Key, 'accessKey' | 'secretKey'>) =>
  (await send({ endpoint: server.endpoint, accessKey, secretKey }, { method: 'GET', path: '/' })).status;

async function newAccount(): Promise<Key & { name: string }> {
  const name = `keys ${freshWord()}`;
  let printed = '';
  const print = (line: string) => {
    printed = line;
  };
  const email = `${freshWord()}@example.com`;
  await createAccount({ ...context, print }, { name, email, dataDir, json: true });
  return JSON.parse(printed);
}

test('a key is exchanged: the new one works, the old one is refused once it is disabled, and then deleted', async () => {
  const old = await newAccount();
  const made = await keys<Key>(old.name, { new: true });
  expect(made).toMatchObject({ accessKey: expect.stringMatching(/^HF/), state: 'active' });
  expect([await statusOf(old), await statusOf(made)]).toEqual([200, 200]);
  await expect(keys(old.name, { new: true })).rejects.toThrow(
    'An account has 2 access keys at most. Delete one first. (LimitExceeded)',
  );
  const listed = await keys<Key[]>(old.name, { disable: old.accessKey });
  expect(listed.map(({ accessKey, state }) => [accessKey, state]).sort()).toEqual(
    [
      [old.accessKey, 'disabled'],
      [made.accessKey, 'active'],
    ].sort(),
  );
  expect(JSON.stringify(listed)).not.toContain('secret');
  expect([await statusOf(old), await statusOf(made)]).toEqual([403, 200]);
  await keys(old.name, { enable: old.accessKey });
  expect(await statusOf(old)).toBe(200);
  expect(await keys(old.name, { delete: old.accessKey })).toMatchObject([{ accessKey: made.accessKey }]);
  expect([await statusOf(old), await statusOf(made)]).toEqual([403, 200]);
});

test('a missing key, and contradictory options, are refused', async () => {
  const { name, accessKey } = await newAccount();
  await expect(keys('nobody at all')).rejects.toThrow('There is no such account. (NoSuchEntity)');
  await expect(keys(name, { delete: 'AKIANOBODY' })).rejects.toThrow('no such access key');
  await expect(keys(name, { new: true, disable: accessKey })).rejects.toThrow('give one of');
});

test('the root’s key is exchanged: root-credentials.json has the new one, and the server starts with it', async () => {
  const path = join(dataDir, 'root-credentials.json');
  const old = JSON.parse(await readFile(path, 'utf8')) as Key;
  const last = 'The request is signed by this access key. Sign it by another one. (DeleteConflict)';
  await expect(keys('root', { delete: old.accessKey })).rejects.toThrow(last);
  await expect(keys('root', { disable: old.accessKey })).rejects.toThrow(last);
  const made = await keys<Key>('root', { new: true });
  expect(JSON.parse(await readFile(path, 'utf8'))).toEqual({
    accessKey: made.accessKey,
    secretKey: made.secretKey,
  });
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await keys('root', { delete: old.accessKey })).toMatchObject([{ accessKey: made.accessKey }]);
  expect([await statusOf(old), await statusOf(made)]).toEqual([403, 200]);
  await server.stop();
  server = await startServer({ dataDir });
  expect(await keys('root')).toMatchObject([{ accessKey: made.accessKey }]);
});

test('a server starts with a root-credentials.json whose key is deleted, and logs that', async () => {
  const path = join(dataDir, 'root-credentials.json');
  const good = await readFile(path, 'utf8');
  await server.stop();
  await writeFile(path, JSON.stringify({ accessKey: 'HFGONE', secretKey: 'gone-gone-gone' }), {
    mode: 0o600,
  });
  server = await startServer({ dataDir });
  expect(server.logs().map(({ event }) => event)).toContain('root-credentials-outdated');
  await expect(keys('root')).rejects.toThrow('InvalidAccessKeyId');
  const { accessKey, secretKey } = JSON.parse(good);
  const env = { HOLDFAST_ROOT_ACCESS_KEY: accessKey, HOLDFAST_ROOT_SECRET_KEY: secretKey };
  expect(await keys('root', {}, env)).toMatchObject([{ accessKey, state: 'active' }]);
  await writeFile(path, good);
});

// Accounts through the command line tool and the operator API, and what they may then do on S3.
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type CreateOptions,
  createAccount,
  deleteAccount,
  listAccounts,
  setAccount,
  showAccount,
  suspendAccount,
} from '../../src/cli/account-commands.ts';
import type { CliContext } from '../../src/cli/connect.ts';
import { send } from '../support/servers/raw-s3.ts';
import { freshWord } from '../support/servers/s3-api.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

/** What is no run's but this one's, for names, and for ids in hexadecimal. */
const mark = freshWord();

let printed: string[] = [];
const context: CliContext = {
  env: {},
  print: (line) => void printed.push(line),
  nowMs: Date.now,
  sleep: async () => {},
};

/** Runs a command with --json and gives what it printed. */
async function run<T>(command: (options: { dataDir: string; json: boolean }) => Promise<void>): Promise<T> {
  printed = [];
  await command({ dataDir: server.dataDir, json: true });
  return JSON.parse(printed.join('\n')) as T;
}

interface Account {
  id: string;
  name: string;
  email: string;
  canonicalId: string;
  state: string;
  bucketsMax: number;
  mayBePublic: boolean;
  bucketCount: number;
  accessKey: string;
  secretKey: string;
}

const create = (fields: Partial<CreateOptions> & { name: string; email: string }) =>
  run<Account>((options) => createAccount(context, { ...fields, ...options }));
const show = (reference: string) => run<Account>((options) => showAccount(context, reference, options));
const set = (reference: string, changes: { maxBuckets?: string; state?: string; public?: string }) =>
  run<Account>((options) => setAccount(context, reference, { ...changes, ...options }));

/** As an account, on S3. */
const asAccount = (account: Account) => ({
  endpoint: server.endpoint,
  accessKey: account.accessKey,
  secretKey: account.secretKey,
});

test('a new account has keys that work, and no access to others', async () => {
  const one = await create({ name: `Team one ${mark}`, email: `One-${mark}@Example.com` });
  const two = await create({ name: `Team two ${mark}`, email: `two-${mark}@example.com` });
  expect(one).toMatchObject({
    name: `Team one ${mark}`,
    email: `one-${mark}@example.com`,
    state: 'paid',
    bucketsMax: 1000,
  });
  expect(one.id).toMatch(/^\d{12}$/);
  expect(one.canonicalId).toMatch(/^[0-9a-f]{64}$/);
  expect(one.accessKey).toMatch(/^HF[A-Z0-9]{18}$/);
  expect(one.secretKey).toMatch(/^[A-Za-z0-9]{40}$/);

  const bucketOfOne = `/bucket-of-one-${mark}`;
  expect((await send(asAccount(one), { method: 'PUT', path: bucketOfOne })).status).toBe(200);
  expect((await send(asAccount(two), { method: 'GET', path: bucketOfOne })).status).toBe(403);
  expect((await send(server, { method: 'GET', path: bucketOfOne })).status).toBe(403);
  expect((await send(asAccount(two), { method: 'PUT', path: bucketOfOne })).status).toBe(409);
  const mine = await send(asAccount(one), { method: 'GET', path: '/' });
  const theirs = await send(asAccount(two), { method: 'GET', path: '/' });
  expect(mine.body.toString()).toContain(`<Name>bucket-of-one-${mark}</Name>`);
  expect(mine.body.toString()).toContain(
    `<Owner><ID>${one.canonicalId}</ID><DisplayName>Team one ${mark}</DisplayName></Owner>`,
  );
  expect(theirs.body.toString()).not.toContain(`bucket-of-one-${mark}`);
});

test('keys, canonical id and state may be chosen', async () => {
  const given = {
    name: `given ${mark}`,
    email: `given-${mark}@example.com`,
    accessKey: `AKIAGIVEN${mark.toUpperCase()}`,
    secretKey: 'some/secret+key==',
    canonicalId: mark.repeat(8),
    state: 'trial',
  };
  expect(await create(given)).toMatchObject(given);
  expect((await send({ ...server, ...given }, { method: 'GET', path: '/' })).status).toBe(200);
});

const TAKEN = {
  name: `taken name ${mark}`,
  email: `taken-${mark}@example.com`,
  accessKey: `AKIATAKEN${mark}`,
  secretKey: 'taken-secret',
  canonicalId: mark.repeat(8).split('').reverse().join(''),
};
const OTHER = { name: `other name ${mark}`, email: `other-${mark}@example.com` };
test.each([
  ['name', { ...OTHER, name: TAKEN.name }],
  ['email', { ...OTHER, email: TAKEN.email.toUpperCase() }],
  ['canonical id', { ...OTHER, canonicalId: TAKEN.canonicalId }],
  ['access key', { ...OTHER, accessKey: TAKEN.accessKey, secretKey: 'a-secret' }],
])('a %s that is taken is refused, and nothing is made', async (word, fields) => {
  if (word === 'name') await create(TAKEN);
  await expect(create(fields)).rejects.toThrow(
    `An account with this ${word} already exists. (EntityAlreadyExists)`,
  );
  await expect(show(OTHER.name)).rejects.toThrow('NoSuchEntity');
});

test('errors name bad fields', async () => {
  await expect(create({ name: 'x', email: 'nobody', accessKey: 'AKIA' })).rejects.toThrow(
    /name must have .*; email must be an e-mail address; secretKey must be given .* \(ValidationError\)/,
  );
  await expect(create({ name: 'fine', email: 'fine@example.com', state: 'gone' })).rejects.toThrow(
    'state must be one of trial, paid, suspended',
  );
});

test('an account is found by id, name, e-mail and canonical id', async () => {
  const { secretKey, ...made } = await create({ name: `find@me ${mark}`, email: `find-${mark}@example.com` });
  for (const reference of [made.id, made.name, made.email.toUpperCase(), made.canonicalId]) {
    expect(await show(reference)).toEqual(made);
  }
  expect(JSON.stringify(made)).not.toContain(secretKey);
  await expect(show('nobody at all')).rejects.toThrow('There is no such account. (NoSuchEntity)');
  await expect(show('000000000001')).rejects.toThrow('NoSuchEntity');
});

test('the list has every account, root first, and no secrets', async () => {
  const made = await create({ name: `listed ${mark}`, email: `listed-${mark}@example.com` });
  const accounts = await run<Account[]>((options) => listAccounts(context, options));
  expect(accounts.map(({ name }) => name)).toEqual(expect.arrayContaining(['root', made.name]));
  expect(accounts.find(({ id }) => id === made.id)?.accessKey).toBe(made.accessKey);
  expect(JSON.stringify(accounts)).not.toContain('secretKey');
  printed = [];
  await listAccounts(context, { dataDir: server.dataDir });
  expect(printed[0]).toMatch(/^ID +STATE +BUCKETS +ACCESS KEY +NAME +E-MAIL\n/);
});

test('a suspended account is refused at once with AccountProblem, and served again when it is paid', async () => {
  const account = await create({ name: `late payer ${mark}`, email: `late-${mark}@example.com` });
  expect((await send(asAccount(account), { method: 'PUT', path: `/late-payer-${mark}` })).status).toBe(200);
  expect(await run((options) => suspendAccount(context, account.id, options))).toMatchObject({
    state: 'suspended',
  });
  const refused = await send(asAccount(account), { method: 'GET', path: `/late-payer-${mark}` });
  expect([refused.status, refused.body.toString()]).toEqual([
    403,
    expect.stringContaining('<Code>AccountProblem</Code>'),
  ]);
  expect(await set(account.id, { state: 'paid' })).toMatchObject({ state: 'paid' });
  // Another gateway of a cluster hears of it within a second.
  const served = () => send(asAccount(account), { method: 'GET', path: `/late-payer-${mark}` });
  await expect.poll(async () => (await served()).status, { timeout: 5000 }).toBe(200);
});

test('the limit of buckets is set per account', async () => {
  const account = await create({ name: `small one ${mark}`, email: `small-${mark}@example.com` });
  expect(await set(account.id, { maxBuckets: '1' })).toMatchObject({ bucketsMax: 1, state: 'paid' });
  expect((await send(asAccount(account), { method: 'PUT', path: `/small-one-1-${mark}` })).status).toBe(200);
  const refused = await send(asAccount(account), { method: 'PUT', path: `/small-one-2-${mark}` });
  expect([refused.status, refused.body.toString()]).toEqual([400, expect.stringContaining('TooManyBuckets')]);
  expect((await set(account.id, { maxBuckets: '2' })).bucketCount).toBe(1);
  expect((await send(asAccount(account), { method: 'PUT', path: `/small-one-2-${mark}` })).status).toBe(200);
  await expect(set(account.id, {})).rejects.toThrow(
    'give --max-buckets, --state, --public, --unpaid or several of them',
  );
  await expect(set(account.id, { maxBuckets: 'many' })).rejects.toThrow('must be a whole number');
});

test('only paid accounts may share with everybody, unless the operator says otherwise', async () => {
  const account = await create({
    name: `sharing ${mark}`,
    email: `sharing-${mark}@example.com`,
    state: 'trial',
  });
  expect(account.mayBePublic).toBe(false);
  const path = `/sharing-${mark}`;
  const publish = async () => {
    const headers = { 'x-amz-acl': 'public-read' };
    return (await send(asAccount(account), { method: 'PUT', path: `${path}?acl`, headers })).status;
  };
  expect((await send(asAccount(account), { method: 'PUT', path })).status).toBe(200);
  expect(await publish()).toBe(403);
  expect(await set(account.id, { public: 'yes' })).toMatchObject({ mayBePublic: true, state: 'trial' });
  await expect.poll(publish).toBe(200);
  expect((await set(account.id, { state: 'paid' })).mayBePublic).toBe(true);
  expect((await set(account.id, { public: 'no' })).mayBePublic).toBe(false);
  await expect.poll(publish).toBe(403);
  await expect(set(account.id, { public: 'maybe' })).rejects.toThrow('--public must be yes or no');
});

test('an account can be deleted once it owns no bucket; its keys are then unknown', async () => {
  const leaving = { name: `leaving ${mark}`, email: `leaving-${mark}@example.com` };
  const account = await create(leaving);
  await send(asAccount(account), { method: 'PUT', path: `/leaving-${mark}` });
  const remove = () => run((options) => deleteAccount(context, account.name, options));
  await expect(remove()).rejects.toThrow(
    'The account still owns buckets. Delete them first. (DeleteConflict)',
  );
  expect((await send(asAccount(account), { method: 'DELETE', path: `/leaving-${mark}` })).status).toBe(204);
  expect(await remove()).toEqual({});
  const refused = await send(asAccount(account), { method: 'GET', path: '/' });
  expect([refused.status, refused.body.toString()]).toEqual([
    403,
    expect.stringContaining('InvalidAccessKeyId'),
  ]);
  await expect(remove()).rejects.toThrow('NoSuchEntity');
  await create(leaving);
});

test('the root account can be neither suspended nor deleted', async () => {
  const message = 'The root account can be neither suspended nor deleted. (AccessDenied)';
  await expect(run((options) => suspendAccount(context, 'root', options))).rejects.toThrow(message);
  await expect(run((options) => deleteAccount(context, 'root', options))).rejects.toThrow(message);
});

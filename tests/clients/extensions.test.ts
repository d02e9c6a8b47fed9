// Renames, compositions, appends and forced deletions with today's clients: the examples of docs/extensions.md,
// run as they stand.
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { type ClientWorld, openWorld, PROGRAMS, testOver } from '../support/clients/clients.ts';
import { exampleOf } from '../support/run/doc-examples.ts';
import { ROOT } from '../support/run/root.ts';
import { send } from '../support/servers/raw-s3.ts';
import { expectStatus } from '../support/servers/s3-api.ts';

const PAGE = 'extensions.md';
const test = testOver('http');

let world: ClientWorld;
beforeAll(async () => {
  world = await openWorld({ transport: 'http' });
});
afterAll(() => world.close());

const OBJECTS = {
  'report.txt': 'a report',
  'logs/a': 'first',
  'logs/b/c': 'second',
  'one.txt': 'one\n',
  'two.txt': 'two\n',
};

beforeEach(async () => {
  await put('/archive');
  for (const [key, body] of Object.entries(OBJECTS)) await put(`/archive/${key}`, Buffer.from(body));
});

/** As clients do where a gateway has known another bucket of this name: told 503, they try again. */
async function put(path: string, body?: Buffer): Promise<void> {
  const ask = () => send(world.server, { method: 'PUT', path, ...(body && { body }) });
  const first = await ask();
  expectStatus(first.status === 503 ? await ask() : first, 200);
}

const textOf = async (path: string) => {
  const { status, body } = await send(world.server, { method: 'GET', path });
  return status === 200 ? body.toString() : status;
};

/** What all examples lead to, before the bucket is renamed and deleted. */
async function expectChanged(bucket: string): Promise<void> {
  expect(await textOf(`/${bucket}/report.txt`)).toBe(404);
  expect(await textOf(`/${bucket}/2026/report.txt`)).toBe('a report');
  expect(await textOf(`/${bucket}/logs/a`)).toBe(404);
  expect(await textOf(`/${bucket}/old-logs/a`)).toBe('first');
  expect(await textOf(`/${bucket}/old-logs/b/c`)).toBe('second');
}

/** Bash, with a way to run the tool, and each line that ends the bucket behind a look at it. */
async function runShell(code: string, lookBefore: string): Promise<void> {
  const at = code.split('\n').findIndex((line) => line.includes(lookBefore));
  const lines = code.split('\n');
  const script = (part: string[]) =>
    `set -eu\nholdfast() { node ${join(ROOT, 'cmd', 'holdfast.mjs')} "$@" --endpoint "$ENDPOINT"; }\n${part.join('\n')}`;
  const env = { ...world.awsVariables(), ENDPOINT: world.server.endpoint, PATH: process.env.PATH ?? '' };
  const functions = lines.slice(0, lines.indexOf('}') + 1);
  await world.run('/bin/bash', ['-c', script(lines.slice(0, at))], { env });
  await expectChanged('archive');
  expect(await textOf('/archive/all.txt')).toBe('one\ntwo\nand a line\n');
  await world.run('/bin/bash', ['-c', script([...functions, ...lines.slice(at)])], { env });
  for (const name of ['archive', 'vault']) expect(await textOf(`/${name}`)).toBe(404);
}

test('the command line tool', () => runShell(exampleOf(PAGE, 'holdfast'), 'mv archive vault'));

test('curl', () => runShell(exampleOf(PAGE, 'curl'), 'Destination: vault'));

test('boto3', async () => {
  const code = exampleOf(PAGE, 'boto3');
  const at = code.lastIndexOf('changed("DeleteBucket"');
  const look =
    'print(client().get_object(Bucket="archive", Key="all.txt")["Body"].read().decode(), end="")\n';
  const env = { ...world.awsVariables(), ENDPOINT: world.server.endpoint };
  const { stdout } = await world.run(
    PROGRAMS.pypiPython,
    [
      '-c',
      `${code.slice(0, at)}${look}print(sorted(o["Key"] for o in client().list_objects_v2(Bucket="archive")["Contents"]))\n${code.slice(at)}`,
    ],
    { env },
  );
  expect(stdout).toBe(
    "one\ntwo\nand a line\n['2026/report.txt', 'all.txt', 'old-logs/a', 'old-logs/b/c', 'one.txt', 'two.txt']\n",
  );
  expect(await textOf('/archive')).toBe(404);
});

test('boto3, and keys that have to be encoded', async () => {
  const code = exampleOf(PAGE, 'boto3');
  const functions = code.slice(0, code.indexOf('\nmove("archive"'));
  const uses = [
    'move("archive", "one.txt", "100%25 & <ü+日本>")',
    'move("archive", "two.txt", "/two 2")',
    'compose("archive", "a&b", ["100%25 & <ü+日本>", "/two 2"])',
    'print(sorted(o["Key"] for o in client().list_objects_v2(Bucket="archive")["Contents"]))',
    'print(client().get_object(Bucket="archive", Key="a&b")["Body"].read().decode(), end="")',
    'changed("DeleteBucket", with_query("force_delete=true")).delete_bucket(Bucket="archive")',
  ];
  const env = { ...world.awsVariables(), ENDPOINT: world.server.endpoint, PYTHONIOENCODING: 'utf-8' };
  const { stdout } = await world.run(PROGRAMS.pypiPython, ['-c', [functions, ...uses].join('\n')], { env });
  const keys = ['/two 2', '100%25 & <ü+日本>', 'a&b', 'logs/a', 'logs/b/c', 'report.txt'];
  expect(stdout).toBe(`[${keys.map((key) => `'${key}'`).join(', ')}]\none\ntwo\n`);
});

test('boto3: a refused rename is an error of the recipe, under status 200, too', async () => {
  const code = exampleOf(PAGE, 'boto3');
  const functions = code.slice(0, code.indexOf('\nmove("archive"'));
  await put('/archive/old-logs/a', Buffer.from('in the way'));
  const uses = [
    'from botocore.exceptions import ClientError',
    'def outcome(*arguments, **options):',
    '    try:',
    '        return move("archive", *arguments, **options)',
    '    except MoveError as error:',
    '        return [(source, code) for source, _, code, _ in error.errors]',
    '    except ClientError as error:',
    '        return error.response["Error"]["Code"]',
    'print(outcome("logs/", "old-logs/", prefix=True))',
    'print(outcome("one.txt", "two.txt"))',
    'print(outcome("none", "two.txt"))',
    'print(outcome("one.txt", "one.txt"))',
    'print(outcome("one.txt", "two.txt", overwrite=True))',
    'print(outcome("old-logs/", "logs/", prefix=True, overwrite=True))',
    'changed("DeleteBucket", with_query("force_delete=true")).delete_bucket(Bucket="archive")',
  ];
  const env = { ...world.awsVariables(), ENDPOINT: world.server.endpoint };
  const { stdout } = await world.run(PROGRAMS.pypiPython, ['-c', [functions, ...uses].join('\n')], { env });
  expect(stdout.split('\n')).toEqual([
    "[('logs/a', 'ObjectAlreadyExists')]",
    "[('one.txt', 'ObjectAlreadyExists')]",
    'NoSuchKey',
    'InvalidRequest',
    '1',
    '2',
    '',
  ]);
});

test('curl, and keys that have to be encoded', async () => {
  const code = exampleOf(PAGE, 'curl');
  const functions = code.slice(0, code.indexOf('\n}') + 2);
  const uses = [
    's3 -X MOVE -H "Destination: 100%2525%20%26%20%C3%BC" "$ENDPOINT/archive/one.txt"',
    's3 "$ENDPOINT/archive/100%2525%20%26%20%C3%BC"',
    's3 -X DELETE "$ENDPOINT/archive?force_delete=true"',
  ];
  const env = { ...world.awsVariables(), ENDPOINT: world.server.endpoint, PATH: process.env.PATH ?? '' };
  const script = ['set -eu', functions, ...uses].join('\n');
  const { stdout } = await world.run('/bin/bash', ['-c', script], { env });
  expect(stdout).toContain('<DestinationKey>100%25 &amp; ü</DestinationKey>');
  expect(stdout).toMatch(/one\n$/);
});

test('rclone', async () => {
  const env = {
    RCLONE_CONFIG_HOLDFAST_TYPE: 's3',
    RCLONE_CONFIG_HOLDFAST_PROVIDER: 'Other',
    RCLONE_CONFIG_HOLDFAST_ENDPOINT: world.server.endpoint,
    RCLONE_CONFIG_HOLDFAST_ACCESS_KEY_ID: world.server.accessKey,
    RCLONE_CONFIG_HOLDFAST_SECRET_ACCESS_KEY: world.server.secretKey,
  };
  await world.run('/bin/bash', ['-c', `set -eu\n${exampleOf(PAGE, 'rclone')}`], { env });
  await expectChanged('archive');
});

// What the command line tool makes of odd files, metadata, tokens and names: it does as it is told, or refuses with a
// reason, before anything is sent where it can know.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { Refusal } from '../../src/base/refusal.ts';
import { bytesToText } from '../../src/base/text/uri.ts';
import { append } from '../../src/cli/append-command.ts';
import { compose } from '../../src/cli/compose-command.ts';
import { move } from '../../src/cli/move-command.ts';
import { removeBucket } from '../../src/cli/remove-bucket-command.ts';
import { type Access, pathOf } from '../support/servers/raw-s3.ts';
import { expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
const folder = mkdtempSync(join(tmpdir(), 'holdfast-command-line-'));
afterAll(() => rmSync(folder, { recursive: true }));

let bucket: string;
beforeEach(async () => {
  bucket = await api.makeBucket();
  await api.put(bucket, 'log', 'x');
});

const context = (as: Access = api.server) => ({
  env: { AWS_ACCESS_KEY_ID: as.accessKey, AWS_SECRET_ACCESS_KEY: as.secretKey },
  print: () => {},
  nowMs: () => Date.now(),
  sleep: (ms: number) => sleep(ms),
  newToken: () => randomBytes(16).toString('hex'),
});
const options = () => ({ endpoint: api.server.endpoint });
/** Where nobody listens. */
const nowhere = { endpoint: 'http://127.0.0.1:1' };

const appendFile = (file: string) => append(context(), { object: `${bucket}/log`, file }, options());
const lengthOf = async (key: string) =>
  Number((await api.send({ method: 'HEAD', path: pathOf(bucket, key) })).headers['content-length']);

async function refusalOf(work: Promise<unknown>): Promise<string> {
  const error = await work.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(Refusal);
  return (error as Refusal).message;
}

test('append sends a growing log as it was when it began', async () => {
  const file = join(folder, 'app.log');
  const sizeBytes = 2 << 20;
  writeFileSync(file, Buffer.alloc(sizeBytes, 'a'));
  const timer = setInterval(() => appendFileSync(file, 'a line\n'), 1);
  await appendFile(file).finally(() => clearInterval(timer));
  const appendedBytes = (await lengthOf('log')) - 1;
  expect(appendedBytes).toBeGreaterThanOrEqual(sizeBytes);
  expect((appendedBytes - sizeBytes) % 'a line\n'.length).toBe(0);
});

test('append reads pipes and refuses folders', async () => {
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  await Promise.all([appendFile(pipe), writeFile(pipe, 'through a pipe')]);
  expect(await lengthOf('log')).toBe(1 + 'through a pipe'.length);
  expect(await refusalOf(appendFile(folder))).toBe(`cannot read ${folder}: it is a folder`);
});

test('append to a missing object ends at once, however long the file is', async () => {
  const file = join(folder, 'long');
  writeFileSync(file, Buffer.alloc(32 << 20));
  const appending = append(context(), { object: `${bucket}/none`, file }, options());
  expect(await refusalOf(appending)).toContain('NoSuchKey');
});

test.each(['a  b', ' \t a \t\t b ', '日本', 'ü', 'à', 'a=b=c', ''])('metadata: %j', async (value) => {
  const meta = [`Name=${value}`];
  await compose(context(), { target: `${bucket}/ü`, components: [`${bucket}/log`] }, { ...options(), meta });
  const { headers } = await api.send({ method: 'HEAD', path: pathOf(bucket, 'ü') });
  expect(bytesToText(String(headers['x-amz-meta-name']))).toBe(value.replace(/^[ \t]+|[ \t]+$/g, ''));
});

test('metadata that no header can carry is refused before anything is sent', async () => {
  const refuse = (pair: string) =>
    refusalOf(compose(context(), { target: 'b/t', components: ['b/log'] }, { ...nowhere, meta: [pair] }));
  for (const pair of ['=value', 'value', 'a name=value', 'ü=value', 'a:b=value'])
    expect(await refuse(pair)).toMatch(/^--meta takes name=value/);
  expect(await refuse('name=a\nb')).toBe(
    '"a\\nb" has characters that the header x-amz-meta-name cannot have',
  );
});

test('half of an account’s keys is refused, instead of using the operator’s', async () => {
  const half = (env: Record<string, string>) =>
    refusalOf(removeBucket({ ...context(), env }, bucket, { ...options(), force: true }));
  expect(await half({ AWS_ACCESS_KEY_ID: 'key' })).toContain('AWS_SECRET_ACCESS_KEY is missing');
  expect(await half({ AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: '' })).toContain('is missing');
  expect(await half({ AWS_SECRET_ACCESS_KEY: 'secret' })).toContain('AWS_ACCESS_KEY_ID is missing');
  expect(await half({ AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '' })).toContain('is missing');
});

test('a bucket with a trailing slash is refused: its key was probably lost', async () => {
  const lost = [
    () => move(context(), { source: `${bucket}/`, destination: 'elsewhere' }, options()),
    () => move(context(), { source: bucket, destination: 'elsewhere/' }, options()),
    () => removeBucket(context(), `${bucket}/`, { ...options(), force: true }),
  ];
  for (const command of lost) expect(await refusalOf(command())).toContain('has no key behind its slash');
});

test('more than one append may send is refused before it is read', async () => {
  const file = join(folder, 'huge');
  writeFileSync(file, '');
  truncateSync(file, 6 * 1024 ** 3);
  expect(await refusalOf(append(context(), { object: `${bucket}/log`, file }, options()))).toMatch(
    /one append takes 5.00 GiB at most/,
  );
});

test('a malformed token is refused before anything is sent', async () => {
  const file = join(folder, 'line');
  writeFileSync(file, 'a line\n');
  for (const token of ['', ' ', 'ü', '日本', 'a\tb', 't'.repeat(65)]) {
    const given = { ...nowhere, token };
    const commands = [
      () => move(context(), { source: 'b/log', destination: 'b/new' }, given),
      () => compose(context(), { target: 'b/t', components: ['b/log'] }, given),
      () => append(context(), { object: 'b/log', file }, given),
    ];
    for (const command of commands)
      expect(await refusalOf(command())).toBe('--token takes 1 to 64 printable characters of ASCII');
  }
  const ifMatch = append(context(), { object: 'b/log', file }, { ...nowhere, ifMatch: '日本' });
  expect(await refusalOf(ifMatch)).toContain('the header if-match cannot have');
});

test('append and compose send a new token where none is given', async () => {
  const file = join(folder, 'tokened');
  writeFileSync(file, 'a line\n');
  const tokens: unknown[] = [];
  const server = createServer((request, response) => {
    tokens.push(request.headers['x-svc-idempotency-token']);
    request.resume().on('end', () => response.end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const there = { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  for (const given of [{}, { offset: '0' }, { token: 'given' }]) {
    await append(context(), { object: 'b/log', file }, { ...there, ...given });
    await compose(context(), { target: 'b/t', components: ['b/log'] }, { ...there, ...given });
  }
  server.close();
  server.closeAllConnections();
  expect(tokens.splice(4)).toEqual(['given', 'given']);
  for (const token of tokens) expect(token).toMatch(/^[0-9a-f]{32}$/);
  expect(new Set(tokens).size).toBe(4);
});

test('tokens of two blanks, and keys of any kind', async () => {
  const token = 'once  only';
  const [source, destination] = [`${bucket}/é 100%25+ü`, `${bucket}//日本/%41 +&`];
  await api.put(bucket, 'é 100%25+ü', 'x');
  expect(await move(context(), { source, destination }, { ...options(), token })).toBe(0);
  expect(await move(context(), { source, destination }, { ...options(), token })).toBe(0);
  expect(await api.keysOf(bucket)).toEqual(['/日本/%41 +&', 'log']);
});

test('invalid bucket names are refused by the server', async () => {
  for (const name of ['日本', 'bü', 'a b']) {
    expect(await refusalOf(removeBucket(context(), name, options()))).toMatch(
      /\((InvalidBucketName|NoSuchBucket)\)/,
    );
    const moving = move(context(), { source: bucket, destination: name }, options());
    expect(await refusalOf(moving)).toContain('InvalidBucketName');
  }
});

test('rb --force: the operator waits until all data is freed, others are told that it continues', async () => {
  const account = await api.makeAccount();
  const removeFull = async (as: Access) => {
    const full = await api.makeBucket(as);
    for (const key of ['a', 'b', 'c'])
      await api.send({ method: 'PUT', path: pathOf(full, key), body: Buffer.from(key) }, as);
    const printed: string[] = [];
    const telling = { ...context(as), print: (line: string) => void printed.push(line) };
    await removeBucket(telling, full, { ...options(), force: true });
    expectStatus(await api.send({ method: 'HEAD', path: `/${full}` }, as), 404);
    return printed.join('\n').replace(full, 'BUCKET');
  };
  expect(await removeFull(api.server)).toBe('BUCKET is gone; versions freed: 3');
  expect(await removeFull(account)).toBe(
    "BUCKET is gone; its data is freed in the background, which the operator's keys alone can watch",
  );
});

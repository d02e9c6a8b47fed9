// First and later starts: what is made, what is printed, what is kept, and what a signal does.
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openRequest, send } from '../support/servers/raw-s3.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

let folder = '';
let dataDir = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-startup-'));
  dataDir = join(folder, 'data with blanks');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const start = (options: { settings?: Record<string, string>; env?: Record<string, string> } = {}) =>
  startServer({ child: true, dataDir, ...options });
const modeOf = async (path: string) => (await stat(path)).mode & 0o777;

test('the first start makes the root account and prints where its keys are; later ones keep them', async () => {
  const first = await start();
  expect(first.accessKey).toMatch(/^HF[A-Z0-9]{18}$/);
  expect(first.secretKey).toMatch(/^[A-Za-z0-9]{40}$/);
  // Nobody but a file may be reading: the secret is not printed.
  expect(first.output()).toContain(`is running at ${first.endpoint}`);
  expect(first.output()).toContain(join(dataDir, 'root-credentials.json'));
  expect(first.output()).not.toContain(first.secretKey);
  expect(JSON.stringify(first.logs())).not.toContain(first.secretKey);
  expect((await send(first, { method: 'PUT', path: '/kept' })).status).toBe(200);
  expect(await first.stop()).toBe(0);

  const second = await start();
  expect([second.accessKey, second.secretKey]).toEqual([first.accessKey, first.secretKey]);
  expect((await send(second, { method: 'HEAD', path: '/kept' })).status).toBe(200);
  expect(second.output()).not.toContain('aws s3');
  expect(await second.stop()).toBe(0);
});

describe('a first start with the default settings', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ child: true });
  });
  afterAll(() => server.stop());

  test('everything in the data folder is private to its owner, and keys are files of mode 0600', async () => {
    expect(await modeOf(server.dataDir)).toBe(0o700);
    const files = (await readdir(server.dataDir, { withFileTypes: true })).filter((entry) => entry.isFile());
    expect(files.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['root-credentials.json', 'master-keys.json']),
    );
    for (const { name } of files) {
      if (/credentials|keys|server/.test(name))
        expect([name, await modeOf(join(server.dataDir, name))]).toEqual([name, 0o600]);
    }
  });

  test('the printed lines can be pasted: they take the keys from the file', async () => {
    const lines = server
      .output()
      .split('\n')
      .map((line) => line.trim());
    const exports = lines.filter((line) => line.startsWith('export '));
    const script = `${exports.join('\n')}\necho "$AWS_ACCESS_KEY_ID $AWS_SECRET_ACCESS_KEY $AWS_ENDPOINT_URL"`;
    expect(execFileSync('/bin/sh', ['-c', script], { encoding: 'utf8' }).trim()).toBe(
      `${server.accessKey} ${server.secretKey} ${server.endpoint}`,
    );
    expect(lines.join('\n')).toMatch(
      /aws s3 mb .*\n.*aws s3 sync .*\n.*restic .*-r s3:http:\/\/127\.0\.0\.1:\d+\/restic init/,
    );
    expect(lines.some((line) => line.startsWith('rclone config create holdfast s3 '))).toBe(true);
  });

  test('the started event has address, version and duration', async () => {
    // It may serve before its line is read here: behind its end all lines are.
    expect(await server.stop()).toBe(0);
    const started = server.logs().find(({ event }) => event === 'started');
    expect(started).toMatchObject({
      level: 'info',
      endpoint: server.endpoint,
      dataDir: server.dataDir,
      shards: 64,
    });
    expect(started?.startMs).toBeLessThan(10_000);
    expect(server.logs().map(({ event }) => event)).toEqual(expect.arrayContaining(['draining', 'stopped']));
  });
});

test('given root credentials are used at the first start; others are refused later', async () => {
  const env = { HOLDFAST_ROOT_ACCESS_KEY: 'operator', HOLDFAST_ROOT_SECRET_KEY: 'operators-secret' };
  const first = await start({ env });
  expect((await send({ ...first, accessKey: 'operator' }, { method: 'GET', path: '/' })).status).toBe(200);
  expect(await first.stop()).toBe(0);
  const same = await start({ env });
  expect(await same.stop()).toBe(0);
  const without = await start();
  expect(without.accessKey).toBe('operator');
  expect(await without.stop()).toBe(0);
  await expect(start({ env: { ...env, HOLDFAST_ROOT_SECRET_KEY: 'another-secret' } })).rejects.toThrow(
    /ended with 1:\n.*are not the root credentials of this data folder/,
  );
});

test('root credentials that no account may have are refused before anything is made', async () => {
  const env = { HOLDFAST_ROOT_ACCESS_KEY: 'with/slash', HOLDFAST_ROOT_SECRET_KEY: 'short' };
  await expect(start({ env })).rejects.toThrow(
    /ended with 1:\n.*accessKey must have .*; secretKey must have/,
  );
  expect(await readdir(folder)).toEqual([]);
});

test('a data folder that has lost its metadata or its chunks is refused, and works when they are back', async () => {
  const first = await start();
  await send(first, { method: 'PUT', path: '/kept' });
  await send(first, { method: 'PUT', path: '/kept/key', body: Buffer.alloc(300_000, 'x') });
  expect(await first.stop()).toBe(0);
  for (const part of ['metadata', 'chunks']) {
    await rename(join(dataDir, part), join(folder, part));
    await expect(start()).rejects.toThrow(/ended with 1:\n.*is missing/);
    await rm(join(dataDir, part), { recursive: true, force: true });
    await rename(join(folder, part), join(dataDir, part));
  }
  const again = await start();
  expect((await send(again, { method: 'GET', path: '/kept/key' })).body).toHaveLength(300_000);
  expect(await again.stop()).toBe(0);
});

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('a second %s, a while after the first, ends the server at once', async (signal, code) => {
  const server = await start();
  await send(server, { method: 'PUT', path: '/slow' });
  const headers = { 'content-length': '10', expect: '100-continue' };
  const slow = openRequest(server, { method: 'PUT', path: '/slow/key', headers });
  slow.on('error', () => {});
  slow.flushHeaders();
  await once(slow, 'continue');
  process.kill(server.pid ?? 0, signal);
  for (let draining = false; !draining; draining = server.logs().some(({ event }) => event === 'draining')) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await new Promise((resolve) => setTimeout(resolve, 1100));
  expect(await server.kill(signal)).toEqual({ code, signal: null });
});

/** Of the certificate that a new connection is shown. */
function fingerprintAt({
  hostname,
  port,
  ca,
}: {
  hostname: string;
  port: string;
  ca: string;
}): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ host: hostname, port: Number(port), ca }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

test('a self-signed certificate is made on request, its fingerprint printed, and SIGHUP has all threads show another one; where others can open the folder they read nothing in it', async () => {
  await mkdir(dataDir, { mode: 0o755 });
  const server = await start({ settings: { 'tls.mode': 'self-signed', 'gateway.threads': '2' } });
  for (const entry of await readdir(dataDir, { recursive: true })) {
    expect([entry, (await modeOf(join(dataDir, entry))) & 0o077]).toEqual([entry, 0]);
  }
  expect(server.endpoint).toMatch(/^https:/);
  const { hostname, port } = new URL(server.endpoint);
  const ca = await readFile(join(dataDir, 'tls-cert.pem'), 'utf8');
  expect(server.output()).toContain(await fingerprintAt({ hostname, port, ca }));
  // A new one is made where there is none.
  for (const name of ['tls-cert.pem', 'tls-key.pem']) await rm(join(dataDir, name));
  process.kill(server.pid ?? 0, 'SIGHUP');
  for (
    let loaded = false;
    !loaded;
    loaded = server.logs().some(({ event }) => event === 'certificate-reloaded')
  ) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const next = await readFile(join(dataDir, 'tls-cert.pem'), 'utf8');
  expect(next).not.toBe(ca);
  // Connections are dealt out by chance: twelve of them miss a thread once in two thousand times.
  const shown = await Promise.all(
    Array.from({ length: 12 }, () => fingerprintAt({ hostname, port, ca: next })),
  );
  expect(new Set(shown)).toEqual(new Set([new X509Certificate(next).fingerprint256]));
  expect(await server.stop()).toBe(0);
});

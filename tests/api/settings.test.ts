// What settings do to a server. How they are read is src/config's; TLS, draining and root credentials are in
// tests/faults, proxies and public names with the signatures.
import { afterEach, expect } from 'vitest';
import type { CliContext } from '../../src/cli/connect.ts';
import { showStatus } from '../../src/cli/status-command.ts';
import { ownServerTest as test } from '../support/servers/own-server-test.ts';
import { send } from '../support/servers/raw-s3.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

let server: TestServer | undefined;
afterEach(() => server?.stop());

async function start(settings: Record<string, string>): Promise<TestServer> {
  server = await startServer({ settings });
  await send(server, { method: 'PUT', path: '/settings' });
  return server;
}

async function chunkCount({ dataDir }: TestServer): Promise<number> {
  const printed: string[] = [];
  const context: CliContext = {
    env: {},
    print: (line) => void printed.push(line),
    nowMs: Date.now,
    sleep: async () => {},
  };
  await showStatus(context, { dataDir, json: true });
  return JSON.parse(printed.join('')).chunkCount;
}

const body = Buffer.alloc(300_000, 'settings ');
const put = (at: TestServer, key: string, bytes = body) =>
  send(at, { method: 'PUT', path: `/settings/${key}`, body: bytes });
const get = async (at: TestServer, key: string) =>
  (await send(at, { method: 'GET', path: `/settings/${key}` })).body;

test('the size of chunks, and bodies without chunks', async () => {
  const at = await start({ 'storage.chunkSize': '64KiB', 'storage.inlineBodyMax': '1KiB' });
  expect((await put(at, 'five')).status).toBe(200);
  expect(await chunkCount(at)).toBe(5);
  expect((await put(at, 'inline', body.subarray(0, 1024))).status).toBe(200);
  expect(await chunkCount(at)).toBe(5);
  expect((await put(at, 'one', body.subarray(0, 1025))).status).toBe(200);
  expect(await chunkCount(at)).toBe(6);
  expect((await get(at, 'five')).equals(body)).toBe(true);
  expect((await get(at, 'one')).length).toBe(1025);
});

test('no threads for codecs, one shard', async () => {
  const at = await start({ 'codec.workers': '0', shards: '1' });
  expect((await put(at, 'key')).status).toBe(200);
  expect((await get(at, 'key')).equals(body)).toBe(true);
});

test('a base domain makes the first label of a host a bucket', async () => {
  const at = await start({ domain: 'localhost' });
  await put(at, 'key');
  const { port } = new URL(at.endpoint);
  const headers = { host: `settings.localhost:${port}` };
  expect((await send(at, { method: 'GET', path: '/key', headers })).body.equals(body)).toBe(true);
  expect((await send(at, { method: 'GET', path: '/settings/key' })).body.equals(body)).toBe(true);
  // Paths of the service belong to the bucket there.
  expect((await send(at, { method: 'GET', path: '/metrics', headers })).status).toBe(404);
});

test('a given port is used', async () => {
  const first = await startServer();
  const { host } = new URL(first.endpoint);
  await first.stop();
  expect((await start({ listen: host })).endpoint).toBe(first.endpoint);
});

test.each(['0.0.0.0:0', '[::]:0'])('on %s the address that is told can be connected to', async (listen) => {
  const at = await start({ listen });
  expect(at.endpoint).toMatch(
    listen.startsWith('[') ? /^http:\/\/\[::1\]:\d+$/ : /^http:\/\/127\.0\.0\.1:\d+$/,
  );
  expect((await fetch(`${at.endpoint}/health/ready`)).status).toBe(200);
});

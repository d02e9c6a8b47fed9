// kill -9 while a prefix is renamed: the server that starts then brings the rename to its end, within five seconds.
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { send, signedHeaders } from '../support/servers/raw-s3.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const KEY_COUNT = 6000;
const AT_ONCE = 16;
const GOES_ON_WITHIN_MS = 5000;

const folder = await mkdtemp(join(tmpdir(), 'holdfast-move-'));
const dataDir = join(folder, 'data');
let server: TestServer | undefined;

afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function putKeys(access: TestServer): Promise<void> {
  let next = 0;
  const body = Buffer.from('x');
  const put = async () => {
    while (next < KEY_COUNT) {
      const path = `/renamed/a/${String(next++).padStart(5, '0')}`;
      expect((await send(access, { method: 'PUT', path, body })).status).toBe(200);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, put));
}

/** Resolves with the first entries of the answer; the request goes on. */
function beginMove(access: TestServer): Promise<void> {
  const wanted = {
    method: 'MOVE',
    path: '/renamed/a/',
    headers: { destination: 'b/', 'x-svc-prefix': 'true' },
  };
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(access.endpoint);
    const headers = signedHeaders(access, wanted);
    const sent = request({ host: hostname, port, method: wanted.method, path: wanted.path, headers });
    // The server is killed under it.
    sent.on('error', reject);
    sent.on('response', (answer) => {
      answer.on('error', () => {});
      answer.on('data', (piece: Buffer) => piece.includes('<MoveObject>') && resolve());
    });
    sent.end();
  });
}

async function hasKeys(access: TestServer, prefix: string): Promise<boolean> {
  const path = `/renamed?list-type=2&max-keys=1&prefix=${encodeURIComponent(prefix)}`;
  return (await send(access, { method: 'GET', path })).body.includes('<Key>');
}

test('a rename that kill -9 cut short continues within five seconds of the start', async () => {
  server = await startServer({ child: true, dataDir, settings: { shards: '4' } });
  await send(server, { method: 'PUT', path: '/renamed' });
  await putKeys(server);
  await beginMove(server);
  await server.kill('SIGKILL');
  const again = await startServer({ child: true, dataDir, settings: { shards: '4' } });
  server = again;
  const readyAtMs = Date.now();
  expect(await hasKeys(again, 'a/')).toBe(true);
  const firstLeft = async () => {
    const list = await send(again, { method: 'GET', path: '/renamed?list-type=2&max-keys=1&prefix=a%2F' });
    return /<Key>(.*?)<\/Key>/.exec(list.body.toString())?.[1];
  };
  const leftBehind = await firstLeft();
  await expect.poll(firstLeft, { timeout: 60_000, interval: 50 }).not.toBe(leftBehind);
  expect(Date.now() - readyAtMs).toBeLessThan(GOES_ON_WITHIN_MS);
  await expect.poll(() => hasKeys(again, 'a/'), { timeout: 60_000, interval: 200 }).toBe(false);
  expect(await hasKeys(again, 'b/')).toBe(true);
});

// Where commands look for the server: flag, environment, data folder, default; the same for all of them.
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CliContext, type ConnectOptions, connect, connectS3 } from './connect.ts';

const KEYS = { HOLDFAST_ROOT_ACCESS_KEY: 'root', HOLDFAST_ROOT_SECRET_KEY: 'secret' };

let folder = '';
let server: Server;
let good = '';
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-connect-'));
  server = createServer((_, response) => response.end('{}')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  good = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

/** Whether a command of the operator, and one of S3, reach the server. */
async function reach(env: Record<string, string>, options: ConnectOptions = {}): Promise<boolean[]> {
  const context: CliContext = {
    env: { ...KEYS, ...env },
    print() {},
    nowMs: Date.now,
    sleep: async () => {},
  };
  const given = { dataDir: folder, ...options };
  const asked = [
    connect(context, given).then((client) => client.call('GET', '/status')),
    connectS3(context, given).then((client) => client.send({ method: 'HEAD', bucket: 'b' })),
  ];
  return (await Promise.allSettled(asked)).map(({ status }) => status === 'fulfilled');
}

test('the server is found by flag, environment, data folder, in this order', async () => {
  const bad = 'http://127.0.0.1:1';
  const inFolder = (endpoint: string) =>
    writeFileSync(join(folder, 'server.json'), JSON.stringify({ endpoint }));
  inFolder(good);
  expect(await reach({})).toEqual([true, true]);
  expect(await reach({ HOLDFAST_ENDPOINT: '' })).toEqual([true, true]);
  expect(await reach({ HOLDFAST_ENDPOINT: bad })).toEqual([false, false]);
  inFolder(bad);
  expect(await reach({ HOLDFAST_ENDPOINT: good })).toEqual([true, true]);
  expect(await reach({ HOLDFAST_ENDPOINT: bad }, { endpoint: good })).toEqual([true, true]);
});

test('commands of S3 go by the endpoint of AWS’s tools, too, and the operator’s do not', async () => {
  expect(await reach({ AWS_ENDPOINT_URL: good })).toEqual([false, true]);
  expect(await reach({ AWS_ENDPOINT_URL: 'http://127.0.0.1:1', AWS_ENDPOINT_URL_S3: good })).toEqual([
    false,
    true,
  ]);
  expect(await reach({ AWS_ENDPOINT_URL: 'http://127.0.0.1:1', HOLDFAST_ENDPOINT: good })).toEqual([
    true,
    true,
  ]);
});

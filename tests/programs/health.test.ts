// holdfast health as a supervisor runs it: exit code 0 or 1, and one line that says why.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { generate } from 'selfsigned';
import { afterEach, expect, test } from 'vitest';
import { COMPILE_CACHE, ROOT } from '../support/run/root.ts';

const MAIN = join(ROOT, 'cmd', 'main.ts');

let server: Server | undefined;
afterEach(() => server?.close());

async function run(args: string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [MAIN, 'health', ...args], {
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
  });
  const exit = once(child, 'exit');
  const said = await text(child.stderr);
  return { code: (await exit)[0], said };
}

async function listen(made: Server): Promise<string> {
  server = made.listen(0, '127.0.0.1');
  await once(made, 'listening');
  return `127.0.0.1:${(made.address() as AddressInfo).port}`;
}

/** Alive, and ready or not. */
const plain = (isReady: boolean) =>
  createServer((request, response) => {
    const isWell = request.url === '/health/live' || (request.url === '/health/ready' && isReady);
    response.writeHead(isWell ? 200 : 503).end('{}');
  });

test('a serving process: 0 without output, at the address of its settings', async () => {
  const address = await listen(plain(true));
  const port = address.split(':')[1] ?? '';
  expect(await run([], { HOLDFAST_LISTEN: address })).toEqual({ code: 0, said: '' });
  expect(await run([], { HOLDFAST_LISTEN: `0.0.0.0:${port}` })).toEqual({ code: 0, said: '' });
  expect(await run(['--url', `http://${address}`])).toEqual({ code: 0, said: '' });
  // The address for this purpose is asked first, and never by TLS.
  const both = {
    HOLDFAST_LISTEN: '127.0.0.1:1',
    HOLDFAST_HEALTH_LISTEN: address,
    HOLDFAST_TLS_MODE: 'self-signed',
  };
  expect(await run([], both)).toEqual({ code: 0, said: '' });
});

test('a process that runs and does not serve: 1, and 0 for liveness', async () => {
  const address = await listen(plain(false));
  const env = { HOLDFAST_HEALTH_LISTEN: address };
  const said = `holdfast: http://${address}/health/ready answers 503\n`;
  expect(await run([], env)).toEqual({ code: 1, said });
  expect(await run(['--live'], env)).toEqual({ code: 0, said: '' });
});

test('over TLS, with a certificate for another name', async () => {
  const { cert, private: key } = await generate([{ name: 'commonName', value: 's3.example.net' }]);
  const address = await listen(
    createTlsServer({ cert, key }, (_, response) => response.writeHead(200).end()),
  );
  expect(await run([], { HOLDFAST_LISTEN: address, HOLDFAST_TLS_MODE: 'self-signed' })).toEqual({
    code: 0,
    said: '',
  });
});

test('no process, a silent one, and an unknown address', async () => {
  expect(await run(['--url', 'http://127.0.0.1:1'])).toEqual({
    code: 1,
    said: expect.stringContaining('http://127.0.0.1:1/health/ready does not answer: '),
  });
  const address = await listen(createTcpServer(() => {}));
  expect(await run(['--url', `http://${address}`])).toEqual({
    code: 1,
    said: expect.stringContaining('does not answer'),
  });
  const free = await run([], { HOLDFAST_LISTEN: '127.0.0.1:0' });
  expect(free).toEqual({ code: 1, said: expect.stringContaining('give --url') });
  const bad = await run(['--url', 'localhost:9000']);
  expect(bad).toEqual({ code: 1, said: 'holdfast: "localhost:9000" is not an http(s) URL\n' });
});

test('the address comes from flag, environment, settings and data folder, in this order', async () => {
  const address = await listen(plain(true));
  const good = `http://${address}`;
  const bad = 'http://127.0.0.1:1';
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-health-'));
  try {
    const dataDir = ['--data-dir', folder];
    writeFileSync(join(folder, 'server.json'), JSON.stringify({ endpoint: good }));
    expect(await run(dataDir)).toEqual({ code: 0, said: '' });
    expect((await run(dataDir, { HOLDFAST_LISTEN: '127.0.0.1:1' })).code).toBe(1);
    writeFileSync(join(folder, 'server.json'), JSON.stringify({ endpoint: bad }));
    expect((await run(dataDir)).code).toBe(1);
    expect((await run(dataDir, { HOLDFAST_LISTEN: address })).code).toBe(0);
    expect((await run(dataDir, { HOLDFAST_LISTEN: '127.0.0.1:1', HOLDFAST_ENDPOINT: good })).code).toBe(0);
    expect((await run([...dataDir, '--endpoint', good], { HOLDFAST_ENDPOINT: bad })).code).toBe(0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

import { once } from 'node:events';
import { createServer, get as getHttp } from 'node:http';
import { createServer as createTlsServer, get as getHttps } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { generate } from 'selfsigned';
import { afterEach, expect, test } from 'vitest';
import { describeConnectionFailure } from './connection-failure.ts';

let server: Server | undefined;
afterEach(() => server?.close());

async function listen(made: Server): Promise<string> {
  server = made.listen(0, '127.0.0.1');
  await once(made, 'listening');
  return `127.0.0.1:${(made.address() as AddressInfo).port}`;
}

async function failureOf(url: URL, options = {}): Promise<string> {
  const request = (url.protocol === 'https:' ? getHttps : getHttp)(url, { agent: false, ...options });
  const [error] = await once(request, 'error').catch((thrown: unknown) => [thrown]);
  return describeConnectionFailure(url, error);
}

test('TLS to a plain server, and the other way round', async () => {
  const plain = await listen(createServer((_, response) => response.end()));
  expect(await failureOf(new URL(`https://${plain}`))).toBe(
    `it does not speak TLS there; is it http://${plain}?`,
  );
  server?.close();
  const { cert, private: key } = await generate([{ name: 'commonName', value: 's3.example.net' }]);
  const tls = await listen(createTlsServer({ cert, key }, (_, response) => response.end()));
  expect(await failureOf(new URL(`http://${tls}`))).toBe(
    `socket hang up; if it speaks TLS there, it is https://${tls}`,
  );
  expect(await failureOf(new URL(`https://${tls}`))).toContain('nobody here vouches for its certificate');
  // Said well enough.
  expect(await failureOf(new URL(`https://${tls}`), { ca: cert })).toContain(
    "does not match certificate's altnames",
  );
});

test('no server', async () => {
  expect(await failureOf(new URL('http://127.0.0.1:1'))).toBe(
    'connect ECONNREFUSED 127.0.0.1:1; is the server running?',
  );
});

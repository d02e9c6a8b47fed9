// Clients that reset their connection right behind a request: the request can still be read, the address no more.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { generate } from 'selfsigned';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { addUser } from '../../../tests/support/objects/identities.ts';
import { send, signedHeaders } from '../../../tests/support/servers/raw-s3.ts';

let world: GatewayWorld;
let secure: GatewayWorld;
beforeAll(async () => {
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'a' }], { keySize: 2048 });
  [world, secure] = [await openGatewayWorld(), await openGatewayWorld({ settings: { tls: { cert, key } } })];
});
afterAll(async () => {
  await world.close();
  await secure.close();
});

/** Who may do everything, but not from here; and the bytes of a request by which it would make a bucket. */
async function openStage(place: GatewayWorld) {
  const { accountId } = await place.makeAccount('owner');
  const statements = [
    { Effect: 'Allow', Action: 's3:*', Resource: '*' },
    {
      Effect: 'Deny',
      Action: 's3:*',
      Resource: '*',
      Condition: { IpAddress: { 'aws:SourceIp': '127.0.0.0/8' } },
    },
  ];
  const keys = await addUser(place, accountId, { name: 'near', statements });
  const access = { ...keys, endpoint: place.endpoint };
  const asked = { method: 'PUT', path: '/made' };
  const headers = Object.entries(signedHeaders(access, { ...asked, headers: { 'content-length': '0' } }));
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return { access, asked, bytes: `PUT /made HTTP/1.1\r\n${lines}\r\n` };
}

async function isMade(place: GatewayWorld): Promise<boolean> {
  const { record } = await place.metadata.query('find-name', { name: 'made' as never });
  return record !== null;
}

/** Until what came before would long have been done. */
async function settle(place: GatewayWorld, ask: () => Promise<unknown>): Promise<void> {
  for (let round = 0; round < 20; round++) await ask();
  expect(await isMade(place)).toBe(false);
}

test('what is denied to an address is denied to a client that is gone before its connection is taken', async () => {
  const { access, asked, bytes } = await openStage(world);
  expect((await send(access, asked)).status).toBe(403);
  // This thread stands still meanwhile, and takes no connection.
  const client = `const socket = require('node:net').connect(${world.port}, '127.0.0.1', () =>
    socket.write(process.argv[1], () => socket.resetAndDestroy()));`;
  expect(spawnSync(process.execPath, ['-e', client, bytes]).status).toBe(0);
  await settle(world, () => send(access, asked));
});

test('the same over TLS: the client is gone when its hands are shaken', async () => {
  const { bytes } = await openStage(secure);
  const shake = async () => {
    const raw = connect(secure.port, '127.0.0.1');
    const secured = connectTls({ socket: raw, rejectUnauthorized: false });
    await once(secured, 'secureConnect');
    return { raw, secured };
  };
  const { raw, secured } = await shake();
  // With the end of the handshake, in one turn of this thread: the server reads both behind the reset.
  secured.write(bytes);
  raw.resetAndDestroy();
  await settle(secure, async () => (await shake()).secured.destroy());
});

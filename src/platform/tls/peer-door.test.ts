// Over real sockets, with the first bytes of real clients. Places: rpc-server.test.ts.
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { makeCertificates } from '../../../tests/support/coordination/rpc-nodes.ts';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { createPeerPlaces, guardHandshakes } from './peer-door.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** What a client says first to the server of this name. */
async function helloTo(servername: string): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = connectTls({ port, host: '127.0.0.1', servername }).on('error', () => {});
  const [socket] = (await once(server, 'connection')) as [Socket];
  const [hello] = (await once(socket, 'data')) as [Buffer];
  client.destroy();
  server.close();
  return hello;
}

/** Turns of the event loop, as handshakes see them: each takes longer than a turn may. */
async function open() {
  const made = await makeCertificates();
  const { ca, cert, key } = made.security;
  const [caText, certText, keyText] = await Promise.all(
    [ca, cert, key].map((path) => readFile(path, 'utf8')),
  );
  const pem = { ca: caText, cert: certText, key: keyText } as { ca: string; cert: string; key: string };
  let turn = 0;
  const seen: { name: string; turn: number }[] = [];
  const server = createTlsServer({
    ...pem,
    minVersion: 'TLSv1.3',
    requestCert: true,
    rejectUnauthorized: true,
    SNICallback(name, found) {
      seen.push({ name, turn });
      found(null);
    },
  });
  const clock = createManualClock(0);
  const slow = {
    ...clock,
    monotonicMs() {
      clock.advance(10);
      return clock.monotonicMs();
    },
  };
  const places = createPeerPlaces({ connectionsMax: 1000, onYield: () => {} });
  guardHandshakes(server, { places, clock: slow, helloMaxMs: 60_000 });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const count = () => {
    turn++;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  closing.push(
    made.remove,
    () => server.close(),
    places.endStrangers,
    () => clearImmediate(counting),
  );
  const connectFrom = async (localAddress: string) => {
    const { port } = server.address() as AddressInfo;
    const client = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {});
    closing.push(() => client.destroy());
    // The server takes one in a turn.
    await Promise.all([once(client, 'connect'), once(server, 'connection')]);
    return client;
  };
  return { server, seen, pem, connectFrom };
}

test('of a crowd that wants to shake hands one does so in a turn, and who has asked for least is the next', async () => {
  const { seen, connectFrom } = await open();
  const [crowd, other] = await Promise.all([helloTo('crowd.test'), helloTo('other.test')]);
  const clients: Socket[] = [];
  for (let count = 0; count < 16; count++) clients.push(await connectFrom('127.0.0.1'));
  const last = await connectFrom('127.0.0.2');
  const answered = Promise.all([...clients, last].map((client) => once(client, 'data')));
  for (const client of clients) client.write(crowd);
  last.write(other);
  await answered;
  expect(new Set(seen.map(({ turn }) => turn)).size).toBe(17);
  expect(seen.findIndex(({ name }) => name === 'other.test')).toBeLessThan(3);
});

test('members shake hands, and what they send with the end of it is read', async () => {
  const { server, pem, connectFrom } = await open();
  const socket = await connectFrom('127.0.0.1');
  const member = connectTls({ ...pem, socket, servername: '', checkServerIdentity: () => undefined });
  const sent = Buffer.alloc(100_000, 7);
  member.write(sent);
  const [secured] = (await once(server, 'secureConnection')) as [TLSSocket];
  expect(secured.remoteAddress).toBe('127.0.0.1');
  let bytes = 0;
  for await (const piece of secured) {
    bytes += (piece as Buffer).length;
    if (bytes === sent.length) break;
  }
  expect(bytes).toBe(sent.length);
});

/** The key is a point on a curve of its own. Of 661 bits such a point takes 0.16 s. */
const SLOW_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBizCCAT4CAQUwCgYIKoZIzj0EAwIwDDEKMAgGA1UEAwwBYTAeFw0yNTAxMDEw
MDAwMDBaFw0zNTAxMDEwMDAwMDBaMAwxCjAIBgNVBAMMAWIwgfAwgckGByqGSM49
AgEwgb0CAQEwLAYHKoZIzj0BAQIhAIAAAAAAAAUAAAAAAAAAAAAAAAAAAAAAAAAA
AAAAAAABMEQEIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAFBCAAAAAA
AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABwQhAgAAAAAAAAAAAAAAAAAAAAAA
AAAAAAAAAAAAAAAAAAADAiEAgAAAAAAABP//////////////////////////////
//8DIgACAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA+gwCgYIKoZIzj0E
AwIDOwAwOAIaAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACGgEAAAAAAAAAAAAA
AAAAAAAAAAAAAAAAAAAA
-----END CERTIFICATE-----
`;

test.each(['TLS_AES_256_GCM_SHA384', 'TLS_AES_128_GCM_SHA256', 'TLS_CHACHA20_POLY1305_SHA256'])(
  'who sends a certificate whose key is slow to make loses the connection before it is made: %s',
  async (ciphers) => {
    const { server, pem, connectFrom } = await open();
    const shake = async (more: string) => {
      const socket = await connectFrom('127.0.0.1');
      const cert = `${pem.cert}\n${more}`;
      const client = connectTls({ ...pem, cert, socket, ciphers, checkServerIdentity: () => undefined });
      closing.push(() => client.destroy());
      client.on('error', () => {});
      return new Promise<string>((resolve) => {
        server.once('secureConnection', () => resolve('secured'));
        server.once('tlsClientError', () => resolve('refused'));
      });
    };
    expect(await shake(SLOW_CERTIFICATE)).toBe('refused');
    expect(await shake('')).toBe('secured');
  },
);

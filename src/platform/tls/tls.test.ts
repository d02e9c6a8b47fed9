import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, get } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { machineNames, openTls, selfSignedNames, TlsError, type TlsIdentity } from './tls.ts';

const DAY_MS = 24 * 3_600_000;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-tls-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const names = selfSignedNames({
  domains: ['s3.example.test', 'other.test'],
  names: ['10.1.2.3', 'FD00::1', 'localhost'],
});
const openSelfSigned = (more: { names?: string[]; nowMs?: () => number } = {}) =>
  openTls({ mode: 'self-signed', folder, names: more.names ?? names }, more.nowMs);

describe('self-signed', () => {
  test('serves all of its names, to a client that trusts the certificate alone', async () => {
    const { cert, key } = (await openSelfSigned()).current();
    const server = createServer({ cert, key }, (_, response) => response.end()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    for (const servername of [
      'localhost',
      's3.example.test',
      'bucket.s3.example.test',
      'bucket.other.test',
    ]) {
      const request = get({ host: '127.0.0.1', port, servername, ca: cert, agent: false });
      const [response] = await once(request, 'response');
      expect(response.statusCode).toBe(200);
      response.destroy();
    }
    server.closeAllConnections();
    server.close();
    const parsed = new X509Certificate(cert);
    for (const ip of ['127.0.0.1', '::1', '10.1.2.3', 'fd00::1'])
      expect(parsed.checkIP(ip), ip).toBeDefined();
    expect(parsed.checkHost('a.b.s3.example.test')).toBeUndefined();
    expect(parsed.checkHost('example.test')).toBeUndefined();
  });

  test('is stored in files that only their owner can read, and used again', async () => {
    const first = (await openSelfSigned()).current();
    for (const name of ['tls-cert.pem', 'tls-key.pem']) {
      expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
    }
    expect(readFileSync(join(folder, 'tls-cert.pem'), 'utf8')).toBe(first.cert);
    const second = (await openSelfSigned({ names: [...names].reverse() })).current();
    expect(second).toEqual(first);
    expect(first.fingerprint).toMatch(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/);
    expect(first.expiresAtMs).toBeGreaterThan(Date.now() + 800 * DAY_MS);
  });

  test('names this machine if it listens on all addresses, and stays when one of them disappears', async () => {
    const interfaces = (...addresses: string[]) => ({
      lo: [{ address: '127.0.0.1', internal: true }],
      eth0: addresses.map((address) => ({ address, internal: false })),
    });
    const open = (...addresses: string[]) =>
      openTls({
        mode: 'self-signed',
        folder,
        commonName: 'Store-1',
        namesOwnAddresses: true,
        names: selfSignedNames({
          domains: [],
          names: [],
          machine: machineNames('Store-1', interfaces(...addresses)),
        }),
      });
    const first = (await open('192.0.2.10', 'fe80::1', '2001:db8::1')).current();
    const parsed = new X509Certificate(first.cert);
    expect(parsed.subject).toBe('CN=Store-1');
    for (const ip of ['127.0.0.1', '192.0.2.10', '2001:db8::1']) expect(parsed.checkIP(ip), ip).toBeDefined();
    expect(parsed.checkHost('store-1')).toBeDefined();
    expect(parsed.checkIP('fe80::1')).toBeUndefined();
    expect((await open('192.0.2.10')).current().fingerprint).toBe(first.fingerprint);
    expect((await open('192.0.2.11')).current().fingerprint).not.toBe(first.fingerprint);
    expect(machineNames('not a name', {})).toEqual([]);
  });

  test.each([
    ['the names changed', ['localhost', 'other']],
    ['a name was removed', ['localhost']],
  ])('is made anew when %s', async (_, changed) => {
    const first = (await openSelfSigned()).current();
    const second = (await openSelfSigned({ names: changed })).current();
    expect(second.fingerprint).not.toBe(first.fingerprint);
  });

  test('is replaced near its end, on a reload too', async () => {
    let nowMs = Date.now();
    const source = await openSelfSigned({ nowMs: () => nowMs });
    const first = source.current();
    nowMs = first.expiresAtMs - 31 * DAY_MS;
    expect(await source.reload()).toEqual(first);
    nowMs = first.expiresAtMs - 29 * DAY_MS;
    const second = await source.reload();
    expect(second.fingerprint).not.toBe(first.fingerprint);
    expect(source.current()).toBe(second);
  });

  test('is replaced when the files do not belong together or are damaged', async () => {
    const first = (await openSelfSigned()).current();
    copyFileSync(join(folder, 'tls-key.pem'), join(folder, 'first-key'));
    await openSelfSigned({ names: ['other'] });
    copyFileSync(join(folder, 'first-key'), join(folder, 'tls-key.pem'));
    const third = (await openSelfSigned({ names: ['other'] })).current();
    expect(third.key).not.toBe(first.key);
    writeFileSync(join(folder, 'tls-cert.pem'), 'damaged');
    expect((await openSelfSigned({ names: ['other'] })).current().fingerprint).not.toBe(third.fingerprint);
  });
});

describe('own files', () => {
  let cert: string;
  let key: string;
  let pair: TlsIdentity;
  beforeEach(async () => {
    [cert, key] = [join(folder, 'own.crt'), join(folder, 'own.key')];
    pair = (await openSelfSigned()).current();
    writeFileSync(cert, pair.cert);
    writeFileSync(key, pair.key, { mode: 0o600 });
  });
  const openFiles = () => openTls({ mode: 'files', cert, key });

  test('are loaded, and loaded again on a reload', async () => {
    const source = await openFiles();
    expect(source.current()).toEqual(pair);
    const other = (await openSelfSigned({ names: ['other'] })).current();
    writeFileSync(cert, other.cert);
    writeFileSync(key, other.key, { mode: 0o600 });
    expect(await source.reload()).toEqual(other);
    expect(source.current()).toEqual(other);
  });

  test.each([
    [
      'is damaged',
      () => writeFileSync(cert, 'damaged'),
      /^the certificate .*own\.crt with the key .* is not usable: /,
    ],
    ['is gone', () => rmSync(cert), /^cannot read .*own\.crt: ENOENT/],
    [
      'has the key of another',
      async () => {
        writeFileSync(cert, (await openSelfSigned({ names: ['other'] })).current().cert);
      },
      /is not usable: the key is of another certificate$/,
    ],
  ])('a certificate that %s is refused, and a reload keeps the old one', async (_, spoil, message) => {
    const source = await openFiles();
    await spoil();
    await expect(openFiles()).rejects.toThrow(TlsError);
    await expect(source.reload()).rejects.toThrow(message);
    expect(source.current()).toEqual(pair);
  });
});

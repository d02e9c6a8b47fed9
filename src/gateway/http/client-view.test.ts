import type { Socket } from 'node:net';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { expectLinear, nearly } from '../../../tests/support/run/properties.ts';
import { createClientViewer } from './client-view.ts';
import { readHeaders } from './request-headers.ts';

const socketOf = (remoteAddress: string) => ({ remoteAddress }) as Socket;
const viewer = createClientViewer({
  trustedProxies: ['10.0.0.0/8', '192.0.2.7', 'fd00::/8'],
  publicNames: ['https://s3.example.com', 'files.example.com:8443'],
});
const forwarded = readHeaders(
  [
    ['Host', 'inner:9000'],
    ['X-Forwarded-For', 'spoofed, 198.51.100.9, 10.1.1.1'],
    ['X-Forwarded-Host', 'bucket.s3.example.com'],
    ['X-Forwarded-Proto', 'https'],
  ].flat(),
);

test('uses forwarded headers of a trusted proxy', () => {
  expect(viewer.view(socketOf('::ffff:10.2.3.4'), forwarded)).toEqual({
    remoteAddress: '198.51.100.9',
    host: 'bucket.s3.example.com',
    scheme: 'https',
    tls: undefined,
    isProxied: true,
    isPrivate: true,
  });
  expect(viewer.view(socketOf('fd00::1'), forwarded).remoteAddress).toBe('198.51.100.9');
});

test('ignores forwarded headers of any other peer', () => {
  for (const address of ['192.0.2.8', '11.0.0.1', '2001:db8::1', '']) {
    expect(viewer.view(socketOf(address), forwarded)).toEqual({
      remoteAddress: address,
      host: 'inner:9000',
      scheme: 'http',
      tls: undefined,
      isProxied: true,
      isPrivate: false,
    });
  }
});

test('knows a proxy by its mark, too', () => {
  const isProxied = (name: string) =>
    viewer.view(socketOf('192.0.2.8'), readHeaders(['Host', 'h', name, 'x'])).isProxied;
  expect(['Via', 'Forwarded', 'X-Forwarded-For'].map(isProxied)).toEqual([true, true, true]);
  expect(isProxied('X-Other')).toBe(false);
});

test('a proxy that sends nothing, or nonsense', () => {
  const bare = readHeaders([
    'Host',
    'h',
    'X-Forwarded-For',
    'unknown, ',
    'X-Forwarded-Proto',
    'gopher',
    'X-Forwarded-Host',
    ' ',
  ]);
  expect(viewer.view(socketOf('192.0.2.7'), bare)).toMatchObject({
    remoteAddress: '192.0.2.7',
    host: 'h',
    scheme: 'http',
  });
  const allTrusted = readHeaders(['Host', 'h', 'X-Forwarded-For', '10.0.0.1, 10.0.0.2']);
  expect(viewer.view(socketOf('192.0.2.7'), allTrusted).remoteAddress).toBe('10.0.0.1');
});

test.each([
  ['junk', 'x'.repeat(8000), '10.0.0.9'],
  ['digits and dots that are no address', '1.2.3.4.5', '10.0.0.9'],
  ['hexadecimal digits that are no address', 'dead:beef', '10.0.0.9'],
  ['a zone', 'fe80::1%eth0', '10.0.0.9'],
  ['junk behind an address: nobody known has seen what is before it', '127.0.0.1, unknown', '10.0.0.9'],
  ['junk before an address', 'unknown, 192.0.2.1', '192.0.2.1'],
  ['junk before a proxy', 'unknown, 10.0.0.2', '10.0.0.2'],
  ['an address with a port', '192.0.2.1:5678', '192.0.2.1'],
  ['IPv6 with a port', '[2001:db8::1]:5678', '2001:db8::1'],
  ['IPv6 in brackets', '[2001:db8::1]', '2001:db8::1'],
  ['empty entries', ' , 192.0.2.1, ,', '192.0.2.1'],
  ['more proxies than there are', `192.0.2.1${', 10.0.0.3'.repeat(5000)}`, '10.0.0.3'],
])('X-Forwarded-For with %s', (_what, list, address) => {
  const headers = readHeaders(['Host', 'h', 'X-Forwarded-For', list]);
  expect(viewer.view(socketOf('10.0.0.9'), headers).remoteAddress).toBe(address);
});

test('a connection is private over HTTPS up to the client, or with a client on this machine', () => {
  const atHome = createClientViewer({ trustedProxies: ['127.0.0.1', '10.0.0.0/8'], publicNames: [] });
  const isPrivate = (address: string, fields: Record<string, string> = {}, secure = false) => {
    const socket = secure
      ? { remoteAddress: address, getCipher: () => undefined, getProtocol: () => 'TLSv1.3' }
      : { remoteAddress: address };
    return atHome.view(socket as unknown as Socket, readHeaders(Object.entries(fields).flat())).isPrivate;
  };
  expect(isPrivate('127.0.0.2')).toBe(true);
  expect(isPrivate('::ffff:127.8.0.1')).toBe(true);
  expect(isPrivate('::1')).toBe(true);
  expect(isPrivate('192.0.2.1')).toBe(false);
  expect(isPrivate('127.evil')).toBe(false);
  expect(isPrivate('192.0.2.1', {}, true)).toBe(true);
  // Nobody but a trusted proxy can say so.
  expect(isPrivate('192.0.2.1', { 'x-forwarded-proto': 'https' })).toBe(false);
  expect(isPrivate('10.0.0.1', { 'x-forwarded-proto': 'https' })).toBe(true);
  expect(isPrivate('10.0.0.1', { 'x-forwarded-proto': 'http' }, true)).toBe(false);
  expect(isPrivate('10.0.0.1', {}, true)).toBe(true);
  // A proxy on this machine whose client is not.
  expect(isPrivate('127.0.0.1')).toBe(true);
  expect(isPrivate('127.0.0.1', { 'x-forwarded-proto': 'http' })).toBe(false);
  expect(isPrivate('127.0.0.1', { 'x-forwarded-for': '192.0.2.1' })).toBe(false);
  expect(isPrivate('127.0.0.1', { 'x-forwarded-for': '127.0.0.9', 'x-forwarded-proto': 'http' })).toBe(true);
});

test('a signature may be for the forwarded host, a public name, with or without the default port', () => {
  const client = viewer.view(socketOf('10.0.0.1'), forwarded);
  expect(viewer.otherHosts(client, 'inner:9000', 'bucket')).toEqual([
    'bucket.s3.example.com',
    'bucket.s3.example.com:443',
    'bucket.files.example.com:8443',
  ]);
  const direct = viewer.view(socketOf('1.2.3.4'), readHeaders(['Host', 'h:80']));
  expect(viewer.otherHosts(direct, 'h:80', undefined)).toEqual([
    'h',
    's3.example.com',
    's3.example.com:80',
    'files.example.com:8443',
  ]);
});

test('any forwarded headers give a client with an address', () => {
  const pieces = [
    ',',
    ' ',
    '::',
    '[',
    ']',
    '1.2.3.4',
    ':80',
    '10.0.0.1',
    'https',
    '.',
    'f',
    '\xff',
    '%',
    '__proto__',
  ];
  const texts = nearly(
    ['198.51.100.9, 10.1.1.1', '[2001:db8::1]', 'bucket.s3.example.com:80', 'https'],
    pieces,
  );
  fc.assert(
    fc.property(texts, texts, texts, texts, (sender, host, scheme, own) => {
      const fields = {
        'X-Forwarded-For': sender,
        'X-Forwarded-Host': host,
        'X-Forwarded-Proto': scheme,
        Host: own,
      };
      const client = viewer.view(socketOf('10.0.0.1'), readHeaders(Object.entries(fields).flat()));
      expect(client.remoteAddress).toMatch(/^[\da-fA-F.:]+$/);
      expect(['http', 'https']).toContain(client.scheme);
      for (const label of [undefined, 'bucket'])
        expect(viewer.otherHosts(client, own, label)).not.toContain(own);
    }),
  );
  const see = (text: string) => {
    const client = viewer.view(
      socketOf('10.0.0.1'),
      readHeaders(['X-Forwarded-For', text, 'X-Forwarded-Host', text]),
    );
    return viewer.otherHosts(client, text, undefined);
  };
  expectLinear(see, { pieces: [',', ' ', '1', ':', '1.', '[', ']', ':1'] });
});

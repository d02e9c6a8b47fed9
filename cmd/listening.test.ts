import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../src/config/load.ts';
import { LIMITS } from '../src/types/limits.ts';
import { gatewaySettings, guessesNames, openListenerTls } from './listening.ts';

const SELF_SIGNED = { tls: { mode: 'self-signed' } };

test.each([
  ['at every address, by no name', { listen: '0.0.0.0:9000', ...SELF_SIGNED }, true],
  ['at every address of IPv6', { listen: '[::]:9000', ...SELF_SIGNED }, true],
  ['with names', { listen: '0.0.0.0:9000', tls: { ...SELF_SIGNED.tls, names: ['s3.test'] } }, false],
  ['with a domain', { listen: '0.0.0.0:9000', domain: ['s3.test'], ...SELF_SIGNED }, false],
  ['at one address, which the certificate names', { listen: '192.0.2.1:9000', ...SELF_SIGNED }, false],
  ['without TLS', { listen: '0.0.0.0:9000' }, false],
])('a self-signed certificate may lack the name that clients use: %s', (_, settings, isGuessed) => {
  const file = { name: 'holdfast.json', text: JSON.stringify(settings) };
  expect(guessesNames(loadConfig({ file }))).toBe(isGuessed);
});

// pgBackRest compares its endpoint with the common name, and never with the addresses of a certificate.
test.each([
  ['the listening address', { listen: '192.0.2.1:9000', ...SELF_SIGNED }, '192.0.2.1'],
  [
    'at every address the first name',
    { listen: '0.0.0.0:9000', tls: { mode: 'self-signed', names: ['s3.test'] } },
    's3.test',
  ],
])('the common name of a self-signed certificate: %s', async (_, settings, name) => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-listening-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = { name: 'holdfast.json', text: JSON.stringify(settings) };
  const tls = await openListenerTls(loadConfig({ file }), folder);
  expect(new X509Certificate(tls?.current().cert ?? '').subject).toBe(`CN=${name}`);
});

test('over TLS, where each takes many times the memory, fewer connections are kept', () => {
  const config = loadConfig({});
  const ofThread = gatewaySettings(config, { cert: '', key: '' }, { threads: 2 });
  expect(gatewaySettings(config, undefined).connectionsMax).toBe(LIMITS.connectionsMax);
  expect(ofThread.connectionsMax).toBe(LIMITS.tlsConnectionsMax / 2);
});

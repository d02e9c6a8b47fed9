import { expect, test } from 'vitest';
import { loadConfig } from '../src/config/load.ts';
import { guessesNames } from './listening.ts';

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

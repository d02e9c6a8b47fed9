import { expect, test } from 'vitest';
import { hostOf, hostPortText, portOf } from './host-port.ts';

test.each([
  ['127.0.0.1', '127.0.0.1:9000'],
  ['node-1.example', 'node-1.example:9000'],
  ['::1', '[::1]:9000'],
  ['fd00::2', '[fd00::2]:9000'],
])('%s', (host, text) => {
  expect(hostPortText({ host, port: 9000 })).toBe(text);
  expect(hostOf(text)).toBe(host);
  expect(portOf(text)).toBe(9000);
});

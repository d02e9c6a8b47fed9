// Addresses of IPv6 are read by hand: as a well-kept library reads them, but for what RFC 4291 does not have.
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { expect, test } from 'vitest';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import { isInRange, parseAddressRange } from './addresses.ts';

const paddedOf = (parts: readonly number[]) =>
  parts.map((part) => part.toString(16).padStart(4, '0')).join(':');
const bytesOf = (text: string) => parseAddressRange(text)?.bytes;

test('every address is read as the library reads it, however it is written', () => {
  const groups = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 });
  fc.assert(
    fc.property(groups, (parts) => {
      const address = new ipaddr.IPv6(parts);
      if (address.isIPv4MappedAddress()) return;
      const bytes = address.toByteArray();
      const [plain, padded] = [address.toNormalizedString(), paddedOf(parts)];
      for (const text of [plain, padded, padded.toUpperCase(), address.toRFC5952String()])
        expect([text, bytesOf(text)]).toEqual([text, bytes]);
    }),
  );
});

test('what is made of the characters of addresses is read by both or by none', () => {
  const pieces = fc.constantFrom(
    ':',
    '::',
    '1',
    '0',
    'ffff',
    '12345',
    '1.2.3.4',
    '1.2',
    '.',
    'g',
    '256.1.1.1',
    '01.2.3.4',
  );
  fc.assert(
    fc.property(fc.array(pieces, { minLength: 1, maxLength: 14 }), (list) => {
      const text = list.join('');
      if (text.length > 50 || !text.includes(':')) return;
      const isStrict = /^[0-9a-f:.]+$/.test(text) && !/(^|[.:])0[0-9]+\./.test(text);
      const isRead = isStrict && ipaddr.IPv6.isValid(text);
      expect([text, bytesOf(text) !== undefined]).toEqual([text, isRead]);
    }),
    { numRuns: amountOf({ short: 600, long: 3000 }) },
  );
});

test('ranges hold what begins as they do, also of addresses of IPv4 in IPv6', () => {
  const holds = (range: string, address: string) => {
    const parsed = parseAddressRange(range);
    return parsed !== undefined && isInRange(address, parsed);
  };
  expect([holds('2001:db8::/33', '2001:db8:7fff::1'), holds('2001:db8::/33', '2001:db8:8000::1')]).toEqual([
    true,
    false,
  ]);
  expect([holds('192.0.2.0/24', '::ffff:192.0.2.9'), holds('::ffff:c000:200/120', '192.0.2.9')]).toEqual([
    true,
    true,
  ]);
  expect([holds('::/0', '192.0.2.9'), holds('0.0.0.0/0', '::1')]).toEqual([false, false]);
});

// Which addresses count as one, and which groups a tenant is in.
import { describe, expect, test } from 'vitest';
import { addressGroupOf, sharePathOf } from './tenant.ts';

describe('tenants', () => {
  test.each([
    ['192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::6', '2001:db8:1:2::/64'],
    ['2001:db8::6', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['64:ff9b::192.0.2.7', '64:ff9b:0:0::/64'],
  ])('%s counts as %s', (address, group) => {
    expect(addressGroupOf(address)).toBe(group);
  });

  test('unauthenticated addresses are one group, and each is one of its own within', () => {
    expect(sharePathOf({ account: undefined, address: '192.0.2.7' })).toEqual([
      'unproved',
      'unproved 192.0.2.7',
    ]);
    expect(sharePathOf({ account: '1', address: '192.0.2.7' })).toEqual(['account 1', 'account 1 192.0.2.7']);
  });
});

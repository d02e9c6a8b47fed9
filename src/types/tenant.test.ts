// Which addresses count as one, and which groups a tenant is in.
import { describe, expect, test } from 'vitest';
import { createFairShare, type FairShare, type SharePath } from '../base/async/fair-share.ts';
import { addressGroupOf, ownSigner, presignedSigner, SHARE_WEIGHTS, sharePathOf } from './tenant.ts';

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
    const address = '192.0.2.7';
    expect(sharePathOf({ account: undefined, address })).toEqual(['unproved', address]);
    expect(sharePathOf({ account: '1', signer: 'own KEY', address })).toEqual(['1', 'own KEY', address]);
  });

  test('a crowd with a presigned URL leaves its maker room at once, and half of the account as they end', () => {
    const share = createFairShare({ limit: 10_000, weights: SHARE_WEIGHTS });
    const pathsOf = (signer: string, count: number) =>
      Array.from({ length: count }, (_, at) => sharePathOf({ account: 'a', signer, address: String(at) }));
    const crowd = pathsOf(presignedSigner('K'), 250);
    const own = pathsOf(ownSigner('K'), 20);
    const readers = takeAll(share, crowd);
    expect(readers.length).toBeGreaterThan(7900);
    let held = takeAll(share, own).length;
    expect(held).toBeGreaterThan(700);
    // Readers end one after the other, and others come at once.
    for (let ended = 0; ended < 10_000; ended++) {
      share.giveBack(readers.shift() as SharePath, 1);
      held += takeAll(share, own).length;
      readers.push(...takeAll(share, [crowd[ended % crowd.length] as SharePath]));
    }
    expect(held).toBeGreaterThan(4000);
    expect(readers.length).toBeGreaterThan(4000);
    // Another account finds what it always finds.
    expect(takeAll(share, [['b', 'own K', '1']]).length).toBeGreaterThan(700);
  });
});

/** Takes single units, in turns of the paths, until the share refuses all of them; answers whose they are. */
function takeAll(share: FairShare, paths: readonly SharePath[]): SharePath[] {
  const taken: SharePath[] = [];
  for (;;) {
    const takers = paths.filter((path) => {
      const may = share.mayTake(path, 1);
      if (may) share.take(path, 1);
      return may;
    });
    if (takers.length === 0) return taken;
    taken.push(...takers);
  }
}

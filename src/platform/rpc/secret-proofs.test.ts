import { describe, expect, test } from 'vitest';
import { createManualClock, createSeededRandom } from '../../../tests/support/run/simulated.ts';
import { LIMITS } from '../../types/limits.ts';
import { createChallenges, createClusterSecret, type HandshakeFields } from './secret-proofs.ts';

const handshake: HandshakeFields = {
  path: '/service/Call',
  address: '127.0.0.1:1',
  clusterId: 'c',
  caller: 'a',
  callee: 'b',
  challenge: '1.00.11',
  nonce: 'n',
};

describe('proofs', () => {
  const secret = createClusterSecret('one secret');

  test('are known to holders of the secret, and do not reveal it', () => {
    const proof = secret.prove('caller', handshake);
    expect(createClusterSecret('one secret').verify('caller', handshake, proof)).toBe(true);
    expect(createClusterSecret('other secret').verify('caller', handshake, proof)).toBe(false);
    expect(proof).toMatch(/^[0-9a-f]{64}$/);
  });

  test.each(Object.keys(handshake) as (keyof HandshakeFields)[])('are over %s', (field) => {
    const proof = secret.prove('caller', handshake);
    expect(secret.verify('caller', { ...handshake, [field]: `${handshake[field]}x` }, proof)).toBe(false);
  });

  test("are of one end: the callee's proof is useless to a caller", () => {
    expect(secret.verify('caller', handshake, secret.prove('callee', handshake))).toBe(false);
  });

  test.each(['', '0', 'f'.repeat(64), 'é'.repeat(32), 'x'.repeat(10_000)])('are not %j', (proof) => {
    expect(secret.verify('caller', handshake, proof)).toBe(false);
  });

  test('no field can be taken for part of another', () => {
    const shifted = { ...handshake, caller: 'a","b', callee: '' };
    expect(secret.prove('caller', shifted)).not.toBe(secret.prove('caller', { ...handshake, callee: 'b' }));
  });
});

describe('challenges', () => {
  function open() {
    const clock = createManualClock(0);
    return { clock, challenges: createChallenges({ clock, random: createSeededRandom(1) }) };
  }

  test('are all different, and valid until they are spent', () => {
    const { challenges } = open();
    const [first, second] = [challenges.issue(), challenges.issue()];
    expect(first).not.toBe(second);
    expect([first, second].map(challenges.isGood)).toEqual([true, true]);
    challenges.spend(first);
    expect([first, second].map(challenges.isGood)).toEqual([false, true]);
  });

  test('expire; spent ones stay spent until then, and use no memory afterwards', () => {
    const { clock, challenges } = open();
    const [first, second] = [challenges.issue(), challenges.issue()];
    challenges.spend(first);
    clock.advance(LIMITS.challengeAgeMaxMs);
    expect([first, second].map(challenges.isGood)).toEqual([false, true]);
    clock.advance(1);
    expect([first, second].map(challenges.isGood)).toEqual([false, false]);
    challenges.spend(challenges.issue());
    expect(challenges.isGood(first)).toBe(false);
  });

  test('are valid in one process', () => {
    const clock = createManualClock(0);
    const other = createChallenges({ clock, random: createSeededRandom(2) });
    expect(open().challenges.isGood(other.issue())).toBe(false);
  });

  test.each(['', '.', '0', '0.00', '9e9.00.00', 'NaN..'])('are not %j', (made) => {
    expect(open().challenges.isGood(made)).toBe(false);
  });

  test('cannot be made younger', () => {
    const { clock, challenges } = open();
    const old = challenges.issue();
    clock.advance(LIMITS.challengeAgeMaxMs * 2);
    expect(challenges.isGood(old.replace(/^0\./, `${clock.monotonicMs()}.`))).toBe(false);
  });
});

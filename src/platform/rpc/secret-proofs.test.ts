import { describe, expect, test } from 'vitest';
import { createClusterSecret, type HandshakeFields } from './secret-proofs.ts';

const handshake: HandshakeFields = {
  address: '127.0.0.1:1',
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
    const shifted = { ...handshake, challenge: 'a","b', nonce: '' };
    const plain = { ...handshake, challenge: 'a', nonce: 'b' };
    expect(secret.prove('caller', shifted)).not.toBe(secret.prove('caller', plain));
  });
});

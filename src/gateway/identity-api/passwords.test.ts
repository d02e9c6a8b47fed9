import { scryptSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { systemRandom } from '../../platform/system-clock.ts';
import { hashPassword, isPassword } from './passwords.ts';

/** Of a low cost. */
const SALT = Buffer.from('salt');
const HASH = scryptSync('word', SALT, 32, { N: 16, r: 1, p: 1 });
const STORED = `scrypt$4$1$1$${SALT.toString('base64url')}$${HASH.toString('base64url')}`;

test('what is stored is a salted hash with its cost, another one for the same password', async () => {
  const [first, second] = [
    await hashPassword('word', systemRandom),
    await hashPassword('word', systemRandom),
  ];
  for (const hash of [first, second]) expect(hash).toMatch(/^scrypt\$15\$8\$1\$[\w-]{22}\$[\w-]{43}$/);
  expect(first).not.toBe(second);
  expect([await isPassword('word', first), await isPassword('Word', first)]).toEqual([true, false]);
});

test('a hash of another cost is read by its own', async () => {
  expect([await isPassword('word', STORED), await isPassword('Word', STORED)]).toEqual([true, false]);
});

test('beyond a bound nobody waits: SlowDown', async () => {
  const outcomes = await Promise.allSettled(Array.from({ length: 70 }, () => isPassword('word', STORED)));
  const refused = outcomes.filter((each) => each.status === 'rejected' && each.reason.code === 'SlowDown');
  expect([outcomes.filter(({ status }) => status === 'fulfilled').length, refused.length]).toEqual([64, 6]);
});

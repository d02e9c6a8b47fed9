import { scryptSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { systemRandom } from '../../platform/system-clock.ts';
import type { AppError } from '../../types/errors.ts';
import type { AccountId } from '../../types/names.ts';
import { createPasswords } from './passwords.ts';

/** Of a low cost. */
const SALT = Buffer.from('salt');
const HASH = scryptSync('word', SALT, 32, { N: 16, r: 1, p: 1 });
const STORED = `scrypt$4$1$1$${SALT.toString('base64url')}$${HASH.toString('base64url')}`;

const [ANN, BOB] = ['000000000011', '000000000012'] as [AccountId, AccountId];
const WORD = { password: 'word', stored: STORED };
const OTHER = { password: 'Word', stored: STORED };

function open() {
  const clock = createManualClock(0);
  return { clock, passwords: createPasswords({ clock, random: systemRandom }) };
}

test('what is stored is a salted hash with its cost, another one for the same password', async () => {
  const { passwords } = open();
  const [first, second] = [await passwords.hash(ANN, 'word'), await passwords.hash(ANN, 'word')];
  for (const hash of [first, second]) expect(hash).toMatch(/^scrypt\$15\$8\$1\$[\w-]{22}\$[\w-]{43}$/);
  expect(first).not.toBe(second);
  const asked = ['word', 'Word'].map((password) => passwords.isSame(ANN, { password, stored: first }));
  expect(await Promise.all(asked)).toEqual([true, false]);
});

test('a hash of another cost is read by its own', async () => {
  const { passwords } = open();
  expect([await passwords.isSame(ANN, WORD), await passwords.isSame(ANN, OTHER)]).toEqual([true, false]);
});

test('one account waits with half of the places, its further passwords are SlowDown, and others have their turns', async () => {
  const { passwords } = open();
  const done: string[] = [];
  const ask = async (accountId: AccountId) => {
    await passwords.isSame(accountId, WORD);
    done.push(accountId);
  };
  const crowd = Array.from({ length: 70 }, () => ask(ANN));
  const outcomes = Promise.allSettled([...crowd, ask(BOB)]);
  const refused = (await outcomes).filter(
    (each) => each.status === 'rejected' && each.reason.code === 'SlowDown',
  );
  expect([done.length, refused.length]).toEqual([33, 38]);
  // Behind the one that was under way already and one of the crowd.
  expect(done.indexOf(BOB)).toBeLessThanOrEqual(2);
  await ask(ANN);
});

test('many addresses that have proved nothing are one tenant, and take turns within it', async () => {
  const { passwords } = open();
  const done: string[] = [];
  const guess = async (address: string) => {
    await passwords.verify({ accountId: ANN, userId: 'who', address }, OTHER);
    done.push(address);
  };
  const addresses = Array.from({ length: 100 }, (_, at) => `192.0.2.${at}`);
  const guesses = Promise.allSettled(addresses.map(guess));
  await passwords.verify({ accountId: BOB, userId: 'who', address: '192.0.2.99' }, WORD);
  // The one that was under way, and one of the crowd.
  expect(done.length).toBeLessThanOrEqual(2);
  const refused = (await guesses).filter(({ status }) => status === 'rejected');
  expect([done.length, refused.length]).toEqual([32, 68]);
});

test('who guesses a password waits longer and longer, whatever was right meanwhile, and nobody else does', async () => {
  const { clock, passwords } = open();
  const ann = { accountId: ANN, userId: 'AIDA1' };
  const attempt = (given: typeof WORD, who = ann) =>
    passwords.verify(who, given).catch((error: AppError) => error.code);
  // At once, as a program would.
  const guesses = await Promise.all(Array.from({ length: 8 }, () => attempt(OTHER)));
  const wrong = new Array(5).fill(false);
  expect(guesses).toEqual([...wrong, ...new Array(3).fill('AuthenticationLockout')]);
  expect(await attempt(WORD)).toBe('AuthenticationLockout');
  expect(await attempt(WORD, { ...ann, userId: 'AIDA2' })).toBe(true);
  expect(await attempt(WORD, { ...ann, accountId: BOB })).toBe(true);
  clock.advance(30_000);
  expect([await attempt(OTHER), await attempt(WORD)]).toEqual([false, 'AuthenticationLockout']);
  clock.advance(60_000);
  expect([await attempt(WORD), await attempt(OTHER), await attempt(WORD)]).toEqual([true, false, true]);
});

test('what there was no place for is no guess', async () => {
  const { passwords } = open();
  const who = { accountId: ANN, userId: 'AIDA1' };
  const crowd = Promise.allSettled(Array.from({ length: 32 }, () => passwords.isSame(ANN, WORD)));
  for (let count = 0; count < 10; count++)
    await expect(passwords.verify(who, OTHER)).rejects.toMatchObject({ code: 'SlowDown' });
  await crowd;
  expect(await passwords.verify(who, WORD)).toBe(true);
});

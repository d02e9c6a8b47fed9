import { expect, test } from 'vitest';
import { LIMITS } from '../types/limits.ts';
import { createFailureWaits, SECRET_WAITS } from './failure-waits.ts';

test('failures of as many of its group as an account has users do not make those of a name forgotten', () => {
  const waits = createFailureWaits({ clock: { monotonicMs: () => 0 }, ...SECRET_WAITS });
  const own = { group: 'account', name: 'owner' };
  for (let count = 0; count < SECRET_WAITS.freeCount; count++) waits.note(own);
  for (let at = 0; at < LIMITS.usersMax; at++) waits.note({ group: 'account', name: `user ${at}` });
  expect(waits.mustWait(own)).toBe(true);
  // Beyond the bound who need not wait goes first.
  for (let at = 0; at < 20_000; at++) waits.note({ group: 'account', name: `other ${at}` });
  expect(waits.mustWait(own)).toBe(true);
});

test('failures of other groups, however many, do not make those of a name forgotten', () => {
  const waits = createFailureWaits({ clock: { monotonicMs: () => 0 }, ...SECRET_WAITS });
  const own = { group: 'account', name: 'owner' };
  for (let count = 0; count < SECRET_WAITS.freeCount; count++) waits.note(own);
  for (let at = 0; at < 20_000; at++) waits.note({ group: 'other', name: `owner ${at}` });
  expect(waits.mustWait(own)).toBe(true);
  waits.forget(own);
  expect(waits.mustWait(own)).toBe(false);
});

test('who fills the memory with names of one group makes nobody else forgotten', () => {
  const waits = createFailureWaits({ clock: { monotonicMs: () => 0 }, ...SECRET_WAITS });
  for (let at = 0; at < 25_000; at++) waits.note({ group: 'other', name: `owner ${at}` });
  const both = ['one', 'two'].map((name) => ({ group: 'account', name }));
  for (let count = 0; count < SECRET_WAITS.freeCount; count++) for (const who of both) waits.note(who);
  expect(both.map((who) => waits.mustWait(who))).toEqual([true, true]);
});

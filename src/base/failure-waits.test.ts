import { expect, test } from 'vitest';
import { createFailureWaits, SECRET_WAITS } from './failure-waits.ts';

test('failures of other groups, however many, do not make those of a name forgotten', () => {
  const waits = createFailureWaits({ clock: { monotonicMs: () => 0 }, ...SECRET_WAITS });
  const own = { group: 'account', name: 'owner' };
  for (let count = 0; count < SECRET_WAITS.freeCount; count++) waits.note(own);
  for (let at = 0; at < 20_000; at++) waits.note({ group: 'other', name: `owner ${at}` });
  expect(waits.mustWait(own)).toBe(true);
  waits.forget(own);
  expect(waits.mustWait(own)).toBe(false);
});

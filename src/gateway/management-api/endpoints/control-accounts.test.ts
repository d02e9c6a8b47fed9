import { expect, test } from 'vitest';
import type { AccountId } from '../../../types/names.ts';
import { sumStored } from './control-accounts.ts';

test('what many sub-accounts have stored is added up in short steps', () => {
  const customers = Array.from({ length: 10_000 }, (_, at) => ({
    controlId: at % 2,
    accountId: String(at) as AccountId,
  }));
  const steps = sumStored(customers, (accountId) => ({ activeBytes: Number(accountId) }));
  for (let count = 1; ; count++) {
    const step = steps.next();
    if (step.done !== true) continue;
    expect(count).toBe(3);
    expect([...step.value]).toEqual([
      [0, 24_995_000],
      [1, 25_000_000],
    ]);
    return;
  }
});

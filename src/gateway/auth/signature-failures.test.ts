import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { createSignatureFailures } from './signature-failures.ts';

const wrong = () => {
  throw new AppError('SignatureDoesNotMatch');
};
const good = () => {};

test('wrong signatures of a key from an address make the two wait longer and longer, and nobody else', () => {
  const clock = createManualClock(0);
  const failures = createSignatureFailures({ clock });
  const attempt = (verify: () => void, address = 'here') => {
    try {
      failures.judge({ accessKey: 'key', address }, verify);
      return 'good';
    } catch (error) {
      return (error as AppError).code;
    }
  };
  for (let count = 0; count < LIMITS.wrongSignaturesFree; count++)
    expect(attempt(wrong)).toBe('SignatureDoesNotMatch');
  expect([attempt(good), attempt(wrong), attempt(good, 'elsewhere')]).toEqual([
    'AuthenticationLockout',
    'AuthenticationLockout',
    'good',
  ]);
  clock.advance(1000);
  expect([attempt(wrong), attempt(good)]).toEqual(['SignatureDoesNotMatch', 'AuthenticationLockout']);
  clock.advance(1999);
  expect(attempt(good)).toBe('AuthenticationLockout');
  clock.advance(1);
  expect([attempt(good), attempt(wrong), attempt(good)]).toEqual(['good', 'SignatureDoesNotMatch', 'good']);
});

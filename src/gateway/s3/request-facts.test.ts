import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import type { Caller } from './caller.ts';
import { createRequestFacts } from './request-facts.ts';

const NOW_MS = Date.parse('2026-01-01T12:00:00Z');

/** s3:signatureAge of a request that was signed so. */
function ageOf(signatureVersion: 'SigV2' | 'SigV4', signedAtMs?: number) {
  const principal = { valuesAt: () => () => undefined };
  const caller = { kind: 'account', authType: 'QueryString', signatureVersion, principal };
  const parts = { exchange: { client: {} }, headers: {}, target: { query: { parameters: new Map() } } };
  const facts = createRequestFacts({ clock: createManualClock(NOW_MS), mfaCodes: undefined as never }, {
    ...(parts as never as object),
    caller: caller as unknown as Caller,
    signedAtMs,
  } as never);
  return facts.contextOf('s3:signatureage');
}

test('s3:signatureAge is the age of a SigV4 signature, and 0 with SigV2', () => {
  expect(ageOf('SigV4', NOW_MS - 90_000)).toBe('90000');
  expect(ageOf('SigV4', NOW_MS + 90_000)).toBe('0');
  expect(ageOf('SigV2')).toBe('0');
  expect(ageOf('SigV2', NOW_MS - 90_000)).toBe('0');
});

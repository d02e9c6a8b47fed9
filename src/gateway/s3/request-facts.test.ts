import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import type { Caller } from './caller.ts';
import { createRequestFacts } from './request-facts.ts';

const NOW_MS = Date.parse('2026-01-01T12:00:00Z');

function factsOf(caller: object, signedAtMs?: number, headers: object = {}) {
  const parts = { exchange: { client: {} }, headers, target: { query: { parameters: new Map() } } };
  return createRequestFacts({ clock: createManualClock(NOW_MS), mfaCodes: undefined as never }, {
    ...(parts as never as object),
    caller: caller as unknown as Caller,
    signedAtMs,
  } as never);
}

const ACCOUNT = { kind: 'account', authType: 'QueryString', principal: { valuesAt: () => () => undefined } };

/** s3:signatureAge of a request that was signed so. */
function ageOf(signatureVersion: 'SigV2' | 'SigV4', signedAtMs?: number) {
  return factsOf({ ...ACCOUNT, signatureVersion }, signedAtMs).contextOf('s3:signatureage');
}

test('names that every object has are no condition keys', () => {
  for (const caller of [{ ...ACCOUNT, signatureVersion: 'SigV4' }, { kind: 'anonymous' }]) {
    const { contextOf } = factsOf(caller);
    expect(contextOf('aws:currenttime')).toBe('2026-01-01T12:00:00.000Z');
    for (const key of ['constructor', '__proto__']) expect(contextOf(key), key).toBeUndefined();
  }
});

test('s3:signatureAge is the age of a SigV4 signature, and 0 with SigV2', () => {
  expect(ageOf('SigV4', NOW_MS - 90_000)).toBe('90000');
  expect(ageOf('SigV4', NOW_MS + 90_000)).toBe('0');
  expect(ageOf('SigV2')).toBe('0');
  expect(ageOf('SigV2', NOW_MS - 90_000)).toBe('0');
});

test('a header is read once, however many conditions look at it', () => {
  let readCount = 0;
  const headers = {
    get 'user-agent'() {
      readCount++;
      return 'a\xc3\xa4';
    },
  };
  const { contextOf } = factsOf({ ...ACCOUNT, signatureVersion: 'SigV4' }, NOW_MS, headers);
  expect([contextOf('aws:useragent'), contextOf('aws:useragent')]).toEqual(['aä', 'aä']);
  expect(readCount).toBe(1);
});

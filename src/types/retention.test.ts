import { describe, expect, test } from 'vitest';
import type { Retention } from './protection.ts';
import {
  type BucketCompliance,
  complianceEndMs,
  endOfDefault,
  mayChangeRetention,
  refusedCompliance,
} from './retention.ts';

const DAY = 24 * 3600 * 1000;
const at = (text: string) => new Date(text).getTime();

test('a default ends after days of 24 hours, or after years of the calendar', () => {
  const from = at('2027-03-01T10:00:00.000Z');
  expect(endOfDefault({ mode: 'COMPLIANCE', days: 2 }, from)).toBe(from + 2 * DAY);
  expect(endOfDefault({ mode: 'COMPLIANCE', years: 1 }, from)).toBe(at('2028-03-01T10:00:00.000Z'));
  expect(endOfDefault({ mode: 'COMPLIANCE', years: 1 }, at('2028-02-29T00:00:00.000Z'))).toBe(
    at('2029-03-01T00:00:00.000Z'),
  );
});

describe('a change of retention', () => {
  const compliance = (untilMs: number): Retention => ({ mode: 'COMPLIANCE', untilMs });
  const governance = (untilMs: number): Retention => ({ mode: 'GOVERNANCE', untilMs });

  test.each<[string, Retention | undefined, Retention | undefined, boolean, boolean]>([
    ['none before', undefined, compliance(1), true, true],
    ['ended', compliance(1000), undefined, true, true],
    ['COMPLIANCE longer', compliance(2000), compliance(2001), true, true],
    ['COMPLIANCE as it is', compliance(2000), compliance(2000), true, true],
    ['COMPLIANCE shorter', compliance(2000), compliance(1999), false, false],
    ['COMPLIANCE taken away', compliance(2000), undefined, false, false],
    ['COMPLIANCE to GOVERNANCE', compliance(2000), governance(9000), false, false],
    ['GOVERNANCE longer', governance(2000), governance(2001), true, true],
    ['GOVERNANCE shorter', governance(2000), governance(1999), false, true],
    ['GOVERNANCE taken away', governance(2000), undefined, false, true],
    ['GOVERNANCE to COMPLIANCE', governance(2000), compliance(2001), false, true],
  ])('%s', (_case, before, after, plain, bypassing) => {
    expect(mayChangeRetention(before, after, { acceptedMs: 1000 })).toBe(plain);
    expect(mayChangeRetention(before, after, { acceptedMs: 1000, bypassesGovernance: true })).toBe(bypassing);
  });
});

describe('settings of compliance', () => {
  const settings: BucketCompliance = {
    isEnabled: true,
    lockAtMs: 1000,
    retentionDays: 3,
    conditionalHold: true,
    deleteAfterRetention: false,
  };

  test('once locked, nothing is reduced; holds and deletion may change', () => {
    expect(refusedCompliance(settings, { ...settings, isEnabled: false }, 1000)).toBe('status');
    expect(refusedCompliance(settings, { ...settings, retentionDays: 2 }, 1000)).toBe('retention-days');
    expect(refusedCompliance(settings, { ...settings, lockAtMs: 999 }, 1000)).toBe('lock-time');
    const { lockAtMs: _, ...unlocked } = settings;
    expect(refusedCompliance(settings, unlocked, 1000)).toBe('lock-time');
    const others = { retentionDays: 4, conditionalHold: false, deleteAfterRetention: true };
    expect(refusedCompliance(settings, { ...settings, ...others }, 1000)).toBeUndefined();
  });

  test('before the lock everything may change', () => {
    expect(refusedCompliance(settings, { ...settings, isEnabled: false }, 999)).toBeUndefined();
  });

  test('a version is kept for the days from its creation or release, and until its own time', () => {
    expect(complianceEndMs({ modifiedAtMs: 5 }, settings)).toBe(5 + 3 * DAY);
    const released = { compliance: { conditionalHold: true as const, holdReleasedAtMs: 7 } };
    expect(complianceEndMs({ modifiedAtMs: 5, protection: released }, settings)).toBe(7 + 3 * DAY);
    const later = { compliance: { retainUntilMs: 4 * DAY } };
    expect(complianceEndMs({ modifiedAtMs: 5, protection: later }, settings)).toBe(4 * DAY);
  });
});

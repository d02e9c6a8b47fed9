import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { amountOf } from '../../tests/support/run/long-form.ts';
import {
  abortOf,
  daysAfter,
  earliestOfNew,
  expirationOf,
  isInFilter,
  type LifecycleRule,
  markerExpirationOf,
  nextMidnight,
  noncurrentExpirationOf,
  noTags,
} from './lifecycle.ts';

const DAY = 24 * 3600_000;
const at = (text: string) => Date.parse(text);

function ruleOf(rule: Partial<LifecycleRule>): LifecycleRule {
  return { id: 'r', isEnabled: true, filter: {}, ...rule };
}

describe('days', () => {
  test('end at the next midnight, UTC: the example of AWS', () => {
    expect(daysAfter(at('2014-01-15T10:30Z'), 3, DAY)).toBe(at('2014-01-19'));
  });

  test('that end at midnight last for another day', () => {
    expect(daysAfter(at('2014-01-15'), 3, DAY)).toBe(at('2014-01-19'));
    expect(nextMidnight(at('2014-01-15'), DAY)).toBe(at('2014-01-16'));
    expect(nextMidnight(at('2014-01-15') - 1, DAY)).toBe(at('2014-01-15'));
  });

  test('may be short ones, for tests', () => {
    expect(daysAfter(10_500, 2, 1000)).toBe(13_000);
  });
});

test('of rules that overlap the first one that is due decides, and tells its name', () => {
  const rules = [
    ruleOf({ id: 'long', expiration: { days: 30 } }),
    ruleOf({ id: 'short', expiration: { days: 3 }, filter: { prefix: 'tmp/' } }),
    ruleOf({ id: 'off', expiration: { days: 1 }, isEnabled: false }),
  ];
  const version = { modifiedAtMs: 0, sizeBytes: 1, tags: noTags };
  expect(expirationOf(rules, { ...version, key: 'tmp/a' }, DAY)).toEqual({ atMs: 4 * DAY, ruleId: 'short' });
  expect(expirationOf(rules, { ...version, key: 'a' }, DAY)).toEqual({ atMs: 31 * DAY, ruleId: 'long' });
});

test('tags are asked for only where a rule with tags would be the first', () => {
  const tag = { key: 't', value: '1' };
  const rules = [
    ruleOf({ expiration: { days: 2 } }),
    ruleOf({ expiration: { days: 3 }, filter: { tags: [tag] } }),
  ];
  const tags = () => {
    throw new Error('asked');
  };
  expect(expirationOf(rules, { key: 'a', sizeBytes: 1, modifiedAtMs: 0, tags }, DAY)?.atMs).toBe(3 * DAY);
});

test('bounds of size exclude what is as large as they are, and whatever has no size', () => {
  const filter = { sizeGreaterThan: 10, sizeLessThan: 12 };
  const subject = { key: 'a', tags: noTags };
  expect([10, 11, 12].map((sizeBytes) => isInFilter(filter, { ...subject, sizeBytes }))).toEqual([
    false,
    true,
    false,
  ]);
  expect(isInFilter(filter, subject)).toBe(false);
});

// ---- against a model that asks every rule for everything ----

const TAGS = [
  { key: 'a', value: '1' },
  { key: 'a', value: '2' },
  { key: 'b', value: '1' },
];
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const days = fc.integer({ min: 1, max: 4 });
const ruleArbitrary = fc.record({
  isEnabled: fc.boolean(),
  prefix: maybe(fc.constantFrom('', 'a', 'a/', 'b')),
  tags: fc.subarray(TAGS),
  greater: maybe(fc.integer({ min: 0, max: 3 })),
  less: maybe(fc.integer({ min: 1, max: 4 })),
  expiration: maybe(
    fc.oneof(
      fc.record({ days }),
      fc.record({ atMs: fc.integer({ min: 0, max: 5 }).map((day) => day * DAY) }),
      fc.record({ expiredObjectDeleteMarker: fc.boolean() }),
    ),
  ),
  noncurrent: maybe(fc.record({ days, newerVersions: maybe(fc.integer({ min: 1, max: 3 })) })),
  abort: maybe(days),
});
type Drawn = typeof ruleArbitrary extends fc.Arbitrary<infer T> ? T : never;
const subjectArbitrary = fc.record({
  key: fc.constantFrom('a', 'a/x', 'b', 'bc', 'c'),
  sizeBytes: fc.integer({ min: 0, max: 4 }),
  tags: fc.uniqueArray(fc.constantFrom(...TAGS), { selector: ({ key }) => key }),
  fromMs: fc.integer({ min: 0, max: 3 * DAY }),
  newerCount: fc.integer({ min: 0, max: 4 }),
});

function drawn(rules: readonly Drawn[]): LifecycleRule[] {
  return rules.map(({ isEnabled, prefix, tags, greater, less, expiration, noncurrent, abort }, index) => ({
    id: `${index}`,
    isEnabled,
    filter: {
      ...(prefix !== undefined && { prefix }),
      ...(tags.length > 0 && { tags }),
      ...(greater !== undefined && { sizeGreaterThan: greater }),
      ...(less !== undefined && { sizeLessThan: less }),
    },
    ...(expiration && { expiration }),
    ...(noncurrent && {
      noncurrentExpiration: {
        days: noncurrent.days,
        ...(noncurrent.newerVersions !== undefined && { newerVersions: noncurrent.newerVersions }),
      },
    }),
    ...(abort !== undefined && { abortUploadsAfterDays: abort }),
  }));
}

/** The midnight behind so many days, found by counting up. */
function midnightBehind(fromMs: number, count: number): number {
  let midnight = 0;
  while (midnight <= fromMs + count * DAY) midnight += DAY;
  return midnight;
}

function takes(
  rule: Drawn,
  key: string,
  sizeBytes: number | undefined,
  tags: readonly { key: string; value: string }[],
) {
  if (!rule.isEnabled || !key.startsWith(rule.prefix ?? '')) return false;
  if (rule.greater !== undefined && !(sizeBytes !== undefined && sizeBytes > rule.greater)) return false;
  if (rule.less !== undefined && !(sizeBytes !== undefined && sizeBytes < rule.less)) return false;
  return rule.tags.every((tag) => tags.some(({ key, value }) => key === tag.key && value === tag.value));
}

const firstOf = (times: readonly (number | undefined)[]) => {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
};

test('every rule takes what a model of it takes, at that time', () => {
  const property = fc.property(
    fc.array(ruleArbitrary, { maxLength: 4 }),
    subjectArbitrary,
    (rules, subject) => {
      const { key, sizeBytes, tags, fromMs, newerCount } = subject;
      const stored = drawn(rules);
      const whole = { key, sizeBytes, tags: () => tags };
      const ofVersion = rules.filter((rule) => takes(rule, key, sizeBytes, tags));
      const ofMarker = rules.filter((rule) => takes(rule, key, undefined, []));
      const byAge = ({ expiration }: Drawn) => {
        if (expiration === undefined || 'expiredObjectDeleteMarker' in expiration) return undefined;
        return 'atMs' in expiration ? expiration.atMs : midnightBehind(fromMs, expiration.days);
      };
      expect(expirationOf(stored, { ...whole, modifiedAtMs: fromMs }, DAY)?.atMs).toBe(
        firstOf(ofVersion.map(byAge)),
      );
      const alone = ofMarker.map((rule) => {
        const { expiration } = rule;
        const isAtOnce =
          expiration && 'expiredObjectDeleteMarker' in expiration && expiration.expiredObjectDeleteMarker;
        return isAtOnce ? 0 : byAge(rule);
      });
      expect(markerExpirationOf(stored, { key, modifiedAtMs: fromMs }, DAY)?.atMs).toBe(firstOf(alone));
      const noncurrent = ofVersion.map(({ noncurrent: one }) =>
        one === undefined || newerCount < (one.newerVersions ?? 0)
          ? undefined
          : midnightBehind(fromMs, one.days),
      );
      const version = { ...whole, sinceMs: fromMs, newerCount };
      expect(noncurrentExpirationOf(stored, version, DAY)?.atMs).toBe(firstOf(noncurrent));
      const aborted = ofMarker.map(({ abort }) =>
        abort === undefined ? undefined : midnightBehind(fromMs, abort),
      );
      expect(abortOf(stored, { key, initiatedAtMs: fromMs }, DAY)?.atMs).toBe(firstOf(aborted));
      // Nothing that comes from then on is due before.
      const soonest = earliestOfNew(stored, fromMs, DAY);
      const due = firstOf([...ofVersion.map(byAge), ...alone, ...noncurrent, ...aborted]);
      expect(soonest).toBeLessThanOrEqual(Math.max(due ?? Infinity, nextMidnight(fromMs, DAY)));
    },
  );
  fc.assert(property, { numRuns: amountOf({ short: 400, long: 2000 }) });
});

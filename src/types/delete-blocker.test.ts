import { expect, test } from 'vitest';
import { blockedRemoval, DELETE_RULES, type DeleteBlocker } from './delete-blocker.ts';
import type { AccountId, BucketId, BucketName } from './names.ts';
import type { VersionProtection } from './protection.ts';
import type { BucketRecord } from './records/rows.ts';
import type { BucketCompliance } from './retention.ts';
import type { VersionSummary } from './version.ts';

const bucket: BucketRecord = {
  bucketId: 'b1' as BucketId,
  name: 'bucket' as BucketName,
  nameEpoch: 1,
  owner: '000000000001' as AccountId,
  state: 'open',
  createdAtMs: 1,
  cfgVersion: 1,
  versioning: 'enabled',
};

const DAY = 24 * 3600 * 1000;
const compliance: BucketCompliance = {
  isEnabled: true,
  retentionDays: 0,
  conditionalHold: false,
  deleteAfterRetention: false,
};

function blockerOf(
  protection: VersionProtection | undefined,
  {
    bypassesGovernance,
    settings = compliance,
  }: { bypassesGovernance?: true; settings?: BucketCompliance } = {},
) {
  const version: VersionSummary = {
    order: 1,
    isDeleteMarker: false,
    sizeBytes: 1,
    modifiedAtMs: 1,
    etag: 'e'.repeat(32),
    owner: bucket.owner,
    ...(protection && { protection }),
  };
  const removal = { acceptedMs: 1000, ...(bypassesGovernance && { bypassesGovernance }) };
  return DELETE_RULES.deleteBlocker(version, { ...bucket, compliance: settings }, removal)?.by;
}

test.each<[string, VersionProtection | undefined, string | undefined]>([
  ['nothing protects it', undefined, undefined],
  ['retention until the next ms', { retention: { mode: 'COMPLIANCE', untilMs: 1001 } }, 'retention'],
  ['retention that ends now', { retention: { mode: 'COMPLIANCE', untilMs: 1000 } }, undefined],
  ['governance', { retention: { mode: 'GOVERNANCE', untilMs: 1001 } }, 'retention'],
  [
    'a legal hold behind its retention',
    { retention: { mode: 'COMPLIANCE', untilMs: 1 }, legalHold: true },
    'legal-hold',
  ],
  ['a RetentionTime to come', { compliance: { retainUntilMs: 1001 } }, 'compliance'],
  ['a RetentionTime that has come', { compliance: { retainUntilMs: 1000 } }, undefined],
  ['a conditional hold', { compliance: { conditionalHold: true } }, 'conditional-hold'],
  ['a released one', { compliance: { conditionalHold: true, holdReleasedAtMs: 5 } }, undefined],
  ['a legal hold of compliance', { compliance: { legalHold: true } }, 'compliance-legal-hold'],
])('%s', (_case, protection, by) => {
  expect(blockerOf(protection)).toBe(by);
});

test('the right to bypass governance applies to governance only', () => {
  expect(
    blockerOf({ retention: { mode: 'GOVERNANCE', untilMs: 1001 } }, { bypassesGovernance: true }),
  ).toBeUndefined();
  expect(blockerOf({ retention: { mode: 'COMPLIANCE', untilMs: 1001 } }, { bypassesGovernance: true })).toBe(
    'retention',
  );
  expect(
    blockerOf(
      { retention: { mode: 'GOVERNANCE', untilMs: 1001 }, legalHold: true },
      { bypassesGovernance: true },
    ),
  ).toBe('legal-hold');
});

test('versions are not decoded where the bucket never protected any', () => {
  expect(DELETE_RULES.mayBlockDeletes(bucket)).toBe(false);
  expect(DELETE_RULES.mayBlockDeletes({ ...bucket, mayProtect: true })).toBe(true);
});

test('settings of compliance bind all versions from their creation, and only while they are enabled', () => {
  const settings = { ...compliance, retentionDays: 1 };
  expect(blockerOf(undefined, { settings })).toBe('compliance');
  expect(blockerOf(undefined, { settings: { ...settings, isEnabled: false } })).toBeUndefined();
  const held = { compliance: { conditionalHold: true, legalHold: true } } as const;
  expect(blockerOf(held, { settings: { ...settings, isEnabled: false } })).toBeUndefined();
});

test('the days of compliance count from the release of the hold', () => {
  const settings = { ...compliance, retentionDays: 1 };
  const released = (holdReleasedAtMs: number) => ({
    compliance: { conditionalHold: true as const, holdReleasedAtMs },
  });
  expect(blockerOf(released(1000 - DAY + 1), { settings })).toBe('compliance');
  expect(blockerOf(released(1000 - DAY), { settings })).toBeUndefined();
});

test.each<[DeleteBlocker['by'], string]>([
  ['retention', 'object lock'],
  ['legal-hold', 'object lock'],
  ['compliance', 'compliance, and its retention'],
  ['conditional-hold', 'compliance, and its conditional hold'],
  ['compliance-legal-hold', 'compliance, and is under a legal hold'],
])('clients are told what protects a version: %s', (by, told) => {
  const { code, message } = blockedRemoval({ by });
  expect(code).toBe('AccessDenied');
  expect(message).toContain(told);
});

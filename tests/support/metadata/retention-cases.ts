// What may protect a version, by which rule of its bucket, and whether it does after some time: for tests that cross it
// with everything that may be done to the version. Whether it keeps the version is written down here, and not computed.
import type { CommandOf } from '../../../src/ports/metadata/port.ts';
import type { ProtectionChange } from '../../../src/ports/metadata/versions.ts';
import type { ObjectKey } from '../../../src/types/names.ts';
import type { VersionProtection } from '../../../src/types/protection.ts';
import type { BucketCompliance } from '../../../src/types/retention.ts';
import type { Versioning } from '../../../src/types/versioning.ts';
import { BUCKET, type MetadataShards } from './metadata-shards.ts';

export const DAY = 24 * 3600_000;
export const START = Date.parse('2024-01-01');

export type Rule = 'no rule' | 'object lock' | 'compliance' | 'locked compliance';

export interface RetentionCase {
  name: string;
  rules: readonly Rule[];
  /** The version may not go. */
  keeps: boolean;
  /** Who may bypass GOVERNANCE may remove it all the same. */
  mayBypass?: true;
  /** Other versions of the bucket are kept by its rule as well, though nothing of their own keeps them. */
  keepsOthers?: true;
  /** Given with the version. */
  given?: VersionProtection;
  defaultRetention?: { mode: 'GOVERNANCE' | 'COMPLIANCE'; days: number };
  retentionDays?: number;
  conditionalHold?: true;
  /** What happens to it then, one thing after another: so much time passes, or its protection is changed. */
  later?: readonly (number | ProtectionChange | 'disabled')[];
}

const ALL: readonly Rule[] = ['no rule', 'object lock', 'compliance', 'locked compliance'];
const LOCK: readonly Rule[] = ['object lock'];
const COMPLIANCE: readonly Rule[] = ['compliance', 'locked compliance'];
const retention = (mode: 'GOVERNANCE' | 'COMPLIANCE') => ({ retention: { mode, untilMs: START + 30 * DAY } });
const release: ProtectionChange = { kind: 'compliance', releasesHold: true };
const retentionTime: ProtectionChange = { kind: 'compliance', retainUntilMs: START + 60 * DAY };
const governed = { rules: LOCK, given: retention('GOVERNANCE') };
const complied = { rules: LOCK, given: retention('COMPLIANCE') };

export const RETENTION_CASES: readonly RetentionCase[] = [
  { name: 'nothing', rules: ALL, keeps: false },
  { name: 'GOVERNANCE, running', ...governed, keeps: true, mayBypass: true, later: [29 * DAY] },
  { name: 'GOVERNANCE, ended', ...governed, keeps: false, later: [31 * DAY] },
  { name: 'COMPLIANCE, running', ...complied, keeps: true, later: [29 * DAY] },
  { name: 'COMPLIANCE, ended', ...complied, keeps: false, later: [31 * DAY] },
  { name: 'legal hold', rules: LOCK, given: { legalHold: true }, keeps: true, later: [365 * DAY] },
  {
    name: 'legal hold, taken off',
    rules: LOCK,
    given: { legalHold: true },
    keeps: false,
    later: [{ kind: 'legal-hold', isOn: false }],
  },
  {
    name: 'legal hold and GOVERNANCE',
    rules: LOCK,
    given: { ...retention('GOVERNANCE'), legalHold: true },
    keeps: true,
  },
  {
    name: 'the default of the bucket, running',
    rules: LOCK,
    defaultRetention: { mode: 'COMPLIANCE', days: 30 },
    keeps: true,
    later: [29 * DAY],
  },
  {
    name: 'the default of the bucket, ended',
    rules: LOCK,
    defaultRetention: { mode: 'COMPLIANCE', days: 30 },
    keeps: false,
    later: [31 * DAY],
  },
  {
    name: 'RetentionDays, running',
    rules: COMPLIANCE,
    retentionDays: 30,
    keeps: true,
    keepsOthers: true,
    later: [29 * DAY],
  },
  { name: 'RetentionDays, ended', rules: COMPLIANCE, retentionDays: 30, keeps: false, later: [31 * DAY] },
  {
    name: 'RetentionTime, running',
    rules: COMPLIANCE,
    retentionDays: 1,
    keeps: true,
    later: [retentionTime, 59 * DAY],
  },
  {
    name: 'RetentionTime, ended',
    rules: COMPLIANCE,
    retentionDays: 1,
    keeps: false,
    later: [retentionTime, 61 * DAY],
  },
  { name: 'conditional hold', rules: COMPLIANCE, conditionalHold: true, keeps: true, later: [365 * DAY] },
  {
    name: 'conditional hold, released, RetentionDays running from there',
    rules: COMPLIANCE,
    retentionDays: 30,
    conditionalHold: true,
    keeps: true,
    later: [31 * DAY, release, 29 * DAY],
  },
  {
    name: 'conditional hold, released, RetentionDays ended',
    rules: COMPLIANCE,
    retentionDays: 30,
    conditionalHold: true,
    keeps: false,
    later: [release, 31 * DAY],
  },
  {
    name: 'legal hold of compliance',
    rules: COMPLIANCE,
    keeps: true,
    later: [{ kind: 'compliance', legalHold: true }, 365 * DAY],
  },
  {
    name: 'legal hold of compliance, taken off',
    rules: COMPLIANCE,
    keeps: false,
    later: [
      { kind: 'compliance', legalHold: true },
      { kind: 'compliance', legalHold: false },
    ],
  },
  {
    name: 'compliance that is disabled',
    rules: ['compliance'],
    retentionDays: 30,
    conditionalHold: true,
    keeps: false,
    later: [{ kind: 'compliance', legalHold: true }, 'disabled'],
  },
];

export function versioningsOf(rule: Rule): readonly Versioning[] {
  return rule === 'object lock' ? ['enabled'] : ['unversioned', 'enabled', 'suspended'];
}

export function complianceOf(retention: RetentionCase, rule: Rule): BucketCompliance {
  const { retentionDays = 0, conditionalHold = false } = retention;
  return {
    isEnabled: true,
    retentionDays,
    conditionalHold,
    deleteAfterRetention: false,
    ...(rule === 'locked compliance' && { lockAtMs: START }),
  };
}

/** Switches the bucket's rule on. */
export async function setRule(world: MetadataShards, retention: RetentionCase, rule: Rule): Promise<void> {
  if (rule === 'no rule') return;
  const { defaultRetention } = retention;
  const outcome = await world.execute(
    'set-bucket-config',
    rule === 'object lock'
      ? { bucketId: BUCKET, kind: 'objectLock', document: { ...(defaultRetention && { defaultRetention }) } }
      : { bucketId: BUCKET, kind: 'compliance', document: complianceOf(retention, rule) },
  );
  if (outcome.kind !== 'changed') throw new Error(`${rule}: ${outcome.kind}`);
}

/** What becomes of the version's protection behind its creation. */
export async function passTime(
  world: MetadataShards,
  retention: RetentionCase,
  version: Pick<CommandOf<'set-protection'>, 'versionId'> & { key: ObjectKey },
): Promise<void> {
  for (const event of retention.later ?? []) {
    if (typeof event === 'number') {
      world.clock.advance(event);
      continue;
    }
    const outcome =
      event === 'disabled'
        ? await world.execute('set-bucket-config', {
            bucketId: BUCKET,
            kind: 'compliance',
            document: { ...complianceOf(retention, 'compliance'), isEnabled: false },
          })
        : await world.execute('set-protection', { bucketId: BUCKET, ...version, change: event });
    if (outcome.kind !== 'set' && outcome.kind !== 'changed') throw new Error(outcome.kind);
  }
}

// What may become of the protection of a version, and of the rules of a bucket: neither is ever reduced by those who may not,
// and a refusal changes no byte of the shard. Beside tests/models/retention-table.test.ts (service 2.4, 2.5, 3; extensions 2.6).
import { describe, expect, test } from 'vitest';
import { beginMove, DRIVER, driveJob } from '../../tests/support/metadata/drive-job.ts';
import {
  BUCKET,
  BUCKET_NAME,
  beginUpload,
  createAccount,
  etagOf,
  kek,
  type MetadataShards,
  openMetadata,
  putPart,
} from '../../tests/support/metadata/metadata-shards.ts';
import { DAY, START } from '../../tests/support/metadata/retention-cases.ts';
import { storedRows } from '../../tests/support/metadata/stored-rows.ts';
import type { CommandOf } from '../ports/metadata/port.ts';
import type { CompactedSegment, ProtectionChange } from '../ports/metadata/versions.ts';
import type { AccountId, ObjectKey, VersionId } from '../types/names.ts';
import type { Retention, VersionProtection } from '../types/protection.ts';
import type { BucketCompliance } from '../types/retention.ts';
import type { BlobUse } from '../types/version.ts';
import type { Versioning } from '../types/versioning.ts';

const key = 'a' as ObjectKey;
const governance = (days: number): Retention => ({ mode: 'GOVERNANCE', untilMs: START + days * DAY });
const strict = (days: number): Retention => ({ mode: 'COMPLIANCE', untilMs: START + days * DAY });
const settings = (more: Partial<BucketCompliance> = {}): BucketCompliance => ({
  isEnabled: true,
  retentionDays: 30,
  conditionalHold: false,
  deleteAfterRetention: false,
  ...more,
});

async function setConfig(world: MetadataShards, config: object) {
  return world.execute('set-bucket-config', {
    bucketId: BUCKET,
    ...config,
  } as CommandOf<'set-bucket-config'>);
}

async function openLocked(): Promise<MetadataShards> {
  const world = await openMetadata();
  await world.createBucket('enabled');
  expect(await setConfig(world, { kind: 'objectLock', document: {} })).toMatchObject({ kind: 'changed' });
  return world;
}

async function openCompliant(document: BucketCompliance, versioning?: Versioning): Promise<MetadataShards> {
  const world = await openMetadata();
  await world.createBucket(versioning);
  expect(await setConfig(world, { kind: 'compliance', document })).toMatchObject({ kind: 'changed' });
  return world;
}

async function find(world: MetadataShards) {
  const found = await world.query('get-version', { bucketId: BUCKET, key, includeBody: false });
  if (found.kind !== 'found') throw new Error(found.kind);
  return found.version;
}

type Bypassing = Extract<ProtectionChange, { kind: 'retention' }>;
const setTo = (retention: Retention | null, more: Partial<Bypassing> = {}): ProtectionChange => ({
  kind: 'retention',
  retention,
  ...more,
});
const bypass = { bypassesGovernance: true } as const;

interface ChangeCase {
  /** At first, set on day 0; `day`: when it is changed. */
  before?: VersionProtection;
  day?: number;
  change: ProtectionChange;
  /** undefined: it is refused. */
  after: VersionProtection | undefined;
}

const LOCK_CHANGES: Readonly<Record<string, ChangeCase>> = {
  'none to GOVERNANCE': { change: setTo(governance(9)), after: { retention: governance(9) } },
  'none to COMPLIANCE': { change: setTo(strict(9)), after: { retention: strict(9) } },
  'GOVERNANCE, longer': {
    before: { retention: governance(9) },
    change: setTo(governance(10)),
    after: { retention: governance(10) },
  },
  'GOVERNANCE, shorter': {
    before: { retention: governance(9) },
    change: setTo(governance(8)),
    after: undefined,
  },
  'GOVERNANCE, shorter, bypassing': {
    before: { retention: governance(9) },
    change: setTo(governance(8), bypass),
    after: { retention: governance(8) },
  },
  'GOVERNANCE, taken away': { before: { retention: governance(9) }, change: setTo(null), after: undefined },
  'GOVERNANCE, taken away, bypassing': {
    before: { retention: governance(9) },
    change: setTo(null, bypass),
    after: {},
  },
  'GOVERNANCE to COMPLIANCE': {
    before: { retention: governance(9) },
    change: setTo(strict(9)),
    after: undefined,
  },
  'GOVERNANCE to COMPLIANCE, bypassing': {
    before: { retention: governance(9) },
    change: setTo(strict(9), bypass),
    after: { retention: strict(9) },
  },
  'GOVERNANCE that has ended, taken away': {
    before: { retention: governance(9) },
    day: 9,
    change: setTo(null),
    after: {},
  },
  'COMPLIANCE, longer': {
    before: { retention: strict(9) },
    change: setTo(strict(10)),
    after: { retention: strict(10) },
  },
  'COMPLIANCE, shorter, bypassing': {
    before: { retention: strict(9) },
    change: setTo(strict(8), bypass),
    after: undefined,
  },
  'COMPLIANCE, taken away, bypassing': {
    before: { retention: strict(9) },
    change: setTo(null, bypass),
    after: undefined,
  },
  'COMPLIANCE to GOVERNANCE, bypassing': {
    before: { retention: strict(9) },
    change: setTo(governance(99), bypass),
    after: undefined,
  },
  'COMPLIANCE that has ended, shorter': {
    before: { retention: strict(9) },
    day: 9,
    change: setTo(governance(10)),
    after: { retention: governance(10) },
  },
  'a legal hold beside a retention': {
    before: { retention: strict(9) },
    change: { kind: 'legal-hold', isOn: true },
    after: { retention: strict(9), legalHold: true },
  },
  'no legal hold any more': {
    before: { retention: strict(9), legalHold: true },
    change: { kind: 'legal-hold', isOn: false },
    after: { retention: strict(9), hadLegalHold: true },
  },
  'a retention beside a legal hold': {
    before: { legalHold: true },
    change: setTo(strict(9)),
    after: { retention: strict(9), legalHold: true },
  },
  'settings of compliance': { change: { kind: 'compliance', legalHold: true }, after: undefined },
};

describe('object lock of a version', () => {
  test.each(Object.entries(LOCK_CHANGES))('%s', async (_, { before, day = 1, change, after }) => {
    const world = await openLocked();
    await world.put(key, { version: { ...(before && { protection: before }) } });
    world.clock.advance(day * DAY);
    await expectChange(world, change, after);
  });
});

async function expectChange(
  world: MetadataShards,
  change: ProtectionChange,
  after: VersionProtection | undefined,
): Promise<void> {
  const [version, rows] = [await find(world), await storedRows(world.kv)];
  const outcome = await world.execute('set-protection', { bucketId: BUCKET, key, change });
  if (after === undefined) {
    expect(['blocked', 'not-enabled']).toContain(outcome.kind);
    expect(await storedRows(world.kv)).toEqual(rows);
    return;
  }
  expect(outcome.kind).toBe('set');
  const { protection: _, ...rest } = version;
  expect(await find(world)).toEqual({ ...rest, ...(Object.keys(after).length > 0 && { protection: after }) });
}

/** Of a version that was made under a conditional hold on day 0, in a bucket with 30 RetentionDays. */
const COMPLIANCE_CHANGES: Readonly<Record<string, { earlier?: ProtectionChange[] } & ChangeCase>> = {
  'RetentionTime behind RetentionDays': {
    change: { kind: 'compliance', retainUntilMs: START + 31 * DAY },
    after: { compliance: { conditionalHold: true, retainUntilMs: START + 31 * DAY } },
  },
  'RetentionTime within RetentionDays': {
    change: { kind: 'compliance', retainUntilMs: START + 29 * DAY },
    after: undefined,
  },
  'RetentionTime, earlier than the one before': {
    earlier: [{ kind: 'compliance', retainUntilMs: START + 99 * DAY }],
    change: { kind: 'compliance', retainUntilMs: START + 98 * DAY },
    after: undefined,
  },
  'a release': {
    change: { kind: 'compliance', releasesHold: true },
    after: { compliance: { conditionalHold: true, holdReleasedAtMs: START + DAY } },
  },
  'a second release does not begin anew': {
    earlier: [{ kind: 'compliance', releasesHold: true }],
    day: 5,
    change: { kind: 'compliance', releasesHold: true, legalHold: true },
    after: { compliance: { conditionalHold: true, holdReleasedAtMs: START + DAY, legalHold: true } },
  },
  'a release, and a RetentionTime before the days that count from it': {
    day: 5,
    change: { kind: 'compliance', releasesHold: true, retainUntilMs: START + 34 * DAY },
    after: undefined,
  },
  'a retention of object lock': { change: setTo(governance(9)), after: undefined },
  'a legal hold of object lock': { change: { kind: 'legal-hold', isOn: true }, after: undefined },
};

describe('compliance of a version', () => {
  test.each(Object.entries(COMPLIANCE_CHANGES))('%s', async (_, { earlier = [], day, change, after }) => {
    const world = await openCompliant(settings({ conditionalHold: true }));
    await world.put(key);
    world.clock.advance(DAY);
    for (const each of earlier) {
      const outcome = await world.execute('set-protection', { bucketId: BUCKET, key, change: each });
      expect(outcome.kind).toBe('set');
    }
    if (day !== undefined) world.clock.advance((day - 1) * DAY);
    await expectChange(world, change, after);
  });
});

describe('the rules of a bucket', () => {
  const lock = { kind: 'objectLock', document: {} };
  const suspended = { kind: 'versioning', document: { status: 'suspended' } };
  const compliance = (more: Partial<BucketCompliance> = {}) => ({
    kind: 'compliance',
    document: settings(more),
  });
  const off = compliance({ isEnabled: false });

  test.each([
    ['no object lock without versioning', 'unversioned', [], lock, 'needs-versioning'],
    ['nor where it is suspended', 'suspended', [], lock, 'needs-versioning'],
    ['object lock keeps versioning', 'enabled', [lock], suspended, 'has-object-lock'],
    ['object lock goes without compliance', 'enabled', [lock], compliance(), 'has-object-lock'],
    ['compliance goes without object lock', 'enabled', [compliance()], lock, 'has-compliance'],
    ['locked, too', 'enabled', [compliance({ lockAtMs: START })], lock, 'has-compliance'],
    ['locked: not switched off', 'enabled', [compliance({ lockAtMs: START })], off, 'locked-status'],
    [
      'locked: not shorter',
      'enabled',
      [compliance({ lockAtMs: START })],
      compliance({ lockAtMs: START, retentionDays: 29 }),
      'locked-retention-days',
    ],
    ['locked: not unlocked', 'enabled', [compliance({ lockAtMs: START })], compliance(), 'locked-lock-time'],
    [
      'locked: not locked later',
      'enabled',
      [compliance({ lockAtMs: START })],
      compliance({ lockAtMs: START + 9 * DAY }),
      'locked-lock-time',
    ],
  ] as const)('%s', async (_, versioning, earlier, config, because) => {
    const world = await openMetadata();
    await world.createBucket(versioning);
    for (const each of earlier) expect(await setConfig(world, each)).toMatchObject({ kind: 'changed' });
    const before = await storedRows(world.kv);
    expect(await setConfig(world, config)).toEqual({ kind: 'refused', because });
    expect(await storedRows(world.kv)).toEqual(before);
  });

  test.each([
    ['locked: longer', compliance({ lockAtMs: START, retentionDays: 31 })],
    ['locked: a conditional hold for new versions', compliance({ lockAtMs: START, conditionalHold: true })],
    ['locked: deletion by the service', compliance({ lockAtMs: START, deleteAfterRetention: true })],
    ['locked: suspended versioning, which keeps the null version', suspended],
  ])('%s', async (_, config) => {
    const world = await openCompliant(settings({ lockAtMs: START }), 'enabled');
    await world.put(key);
    expect(await setConfig(world, config)).toMatchObject({ kind: 'changed', bucket: { mayProtect: true } });
    expect(await world.remove(key, (await find(world)).versionId)).toMatchObject({ kind: 'blocked' });
  });

  test('settings that will be locked may be changed until then; the operator alone unlocks them', async () => {
    const world = await openCompliant(settings({ lockAtMs: START + 9 * DAY }));
    const unlock = () =>
      world.execute('unlock-compliance', { bucketId: BUCKET, by: 'somebody', reason: 'r' });
    const before = await storedRows(world.kv);
    expect(await unlock()).toEqual({ kind: 'not-locked' });
    expect(await storedRows(world.kv)).toEqual(before);
    expect(await setConfig(world, compliance({ lockAtMs: START + 8 * DAY }))).toMatchObject({
      kind: 'changed',
    });
    world.clock.advance(8 * DAY);
    expect(await setConfig(world, off)).toEqual({ kind: 'refused', because: 'locked-status' });
    await world.put(key);
    // What is unlocked binds as before, until somebody changes it.
    expect(await unlock()).toMatchObject({ kind: 'unlocked', unlocks: [{ by: 'somebody' }] });
    expect(await world.remove(key)).toMatchObject({ kind: 'blocked' });
    expect(await setConfig(world, off)).toMatchObject({ kind: 'changed', bucket: { mayProtect: true } });
    expect(await world.remove(key)).toMatchObject({ kind: 'deleted' });
  });

  test('a rename of a key in several entries ends before anything may be protected', async () => {
    const world = await openMetadata();
    await world.createBucket('enabled');
    await world.put(key);
    await world.put(key);
    const move = { from: key, to: 'b' as ObjectKey };
    const begun = await world.execute('begin-key-move', {
      bucketId: BUCKET,
      move,
      overwrites: false,
      driver: DRIVER,
    });
    if (begun.kind !== 'begun') throw new Error(begun.kind);
    for (const config of [lock, compliance()])
      expect(await setConfig(world, config)).toEqual({ kind: 'refused', because: 'keys-are-moving' });
    await driveJob(world, begun.job);
    expect(await setConfig(world, lock)).toMatchObject({ kind: 'changed' });
  });

  test('a MOVE of a prefix that has begun before asks the rules as they are then', async () => {
    const world = await openMetadata();
    await world.createBucket();
    for (const name of ['p/1', 'p/2']) await world.put(name);
    const job = await beginMove(world, { from: 'p/', to: 'q/' });
    await setConfig(world, compliance());
    expect((await driveJob(world, job)).ended).toMatchObject({ movedCount: 0, errorCount: 2 });
    expect(await world.versions()).toEqual(['p/1 null*', 'p/2 null*']);
  });

  test('an upload from before object lock gets the default in its Complete; one with a lock needs a bucket with it', async () => {
    const world = await openMetadata();
    await world.createBucket('enabled');
    const uploadId = await beginUpload(world, key);
    const protection = { legalHold: true as const };
    await expect(beginUpload(world, key, undefined, undefined, { protection })).rejects.toThrow('locked');
    await putPart(world, { key, uploadId }, { partNumber: 1 });
    const defaultRetention = { mode: 'COMPLIANCE', days: 3 };
    await setConfig(world, { kind: 'objectLock', document: { defaultRetention } });
    const parts = [{ partNumber: 1, etag: etagOf('part 1') }];
    await world.execute('complete-upload', { bucketId: BUCKET, key, uploadId, parts });
    const { versionId, modifiedAtMs, protection: given } = await find(world);
    expect(given).toEqual({ retention: { mode: 'COMPLIANCE', untilMs: modifiedAtMs + 3 * DAY } });
    expect(await world.remove(key, versionId)).toMatchObject({ kind: 'blocked' });
  });

  test('versions are given no lock in a bucket with compliance', async () => {
    const world = await openCompliant(settings());
    for (const protection of [{ legalHold: true as const }, { retention: governance(1) }]) {
      await expect(world.put(key, { version: { protection } })).rejects.toThrow('locked');
      await expect(beginUpload(world, key, undefined, undefined, { protection })).rejects.toThrow('locked');
    }
  });
});

test('compaction leaves a version what it is, and what protects it', async () => {
  const world = await openLocked();
  const retention = { mode: 'COMPLIANCE', untilMs: START + 9 * DAY } as const;
  await world.put(key);
  for (let count = 0; count < 3; count++) {
    const { sizeBytes, grant } = world.newData();
    const piece = { sizeBytes, md5: etagOf('piece'), births: grant.births, crcs: {} };
    const command = {
      bucketId: BUCKET,
      key,
      piece,
      kek: { found: kek, renewed: kek },
      linkId: world.newLinkId(),
    };
    await world.execute('append-version', command);
  }
  await world.execute('set-protection', { bucketId: BUCKET, key, change: setTo(retention) });
  const before = await find(world);
  const { manifest } = before;
  if (manifest.kind !== 'direct') throw new Error(manifest.kind);
  const run: CompactedSegment[] = manifest.segments.slice(1).map(({ use, offsetBytes, sizeBytes }) => {
    const { blobId, grown } = manifest.uses[use] as BlobUse;
    return { blobId, offsetBytes, sizeBytes, ...(grown && { lastPieceId: grown.lastPieceId }) };
  });
  const sizeBytes = run.reduce((sum, one) => sum + one.sizeBytes, 0);
  const [birth] = world.newData({ sizeBytes }).grant.births;
  if (birth === undefined) throw new Error('a birth');
  expect(await world.execute('fold-version', { bucketId: BUCKET, key, kek, run, birth })).toEqual({
    kind: 'folded',
  });
  const after = await find(world);
  expect(after).toEqual({ ...before, manifest: after.manifest });
  expect(after.manifest).not.toEqual(manifest);
  expect(await world.remove(key, before.versionId as VersionId)).toMatchObject({ kind: 'blocked' });
});

test('an account with a bucket is not deleted, whatever is in it', async () => {
  const world = await openMetadata();
  const accountId = '000000000002' as AccountId;
  await createAccount(world, accountId);
  await world.execute('reserve-name', { name: BUCKET_NAME, owner: accountId });
  const before = await storedRows(world.kv);
  expect(await world.execute('delete-account', { accountId })).toEqual({ kind: 'owns-buckets' });
  expect(await storedRows(world.kv)).toEqual(before);
});

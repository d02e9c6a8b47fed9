// Every mutation of a version or a key against everything that may protect a version, in every state of a bucket: what is
// protected is neither removed nor replaced nor renamed, and a refusal changes no byte of the shard; what is not protected,
// or not any more, goes (service 2.4, 2.5, 3; extensions 2.6).
import { describe, expect, test } from 'vitest';
import { type ClosingCalls, driveClosing } from '../../src/metadata/buckets/drive-closing.ts';
import { SECTION, wrappedKeyName } from '../../src/metadata/master-keys/wrapped-keys.ts';
import { currentRow, versionPosition } from '../../src/metadata/schema/keyspace.ts';
import { metadataMachine } from '../../src/metadata/state-machine.ts';
import type { EngineCommands } from '../../src/ports/metadata/engine.ts';
import type { CommandName, CommandOf, OutcomeOf, QueryOf } from '../../src/ports/metadata/port.ts';
import type { ObjectKey, VersionId } from '../../src/types/names.ts';
import { packOriginals } from '../../src/types/originals.ts';
import { dataLinkId, type VersionRecord } from '../../src/types/version.ts';
import type { Versioning } from '../../src/types/versioning.ts';
import { beginMove, DRIVER, driveJob } from '../support/metadata/drive-job.ts';
import { passLifecycle } from '../support/metadata/lifecycle-pass.ts';
import {
  BUCKET,
  beginUpload,
  copyOf,
  etagOf,
  kek,
  type MetadataShards,
  type NewData,
  OWNER,
  openMetadata,
  putPart,
} from '../support/metadata/metadata-shards.ts';
import {
  passTime,
  RETENTION_CASES,
  type RetentionCase,
  type Rule,
  setRule,
  versioningsOf,
} from '../support/metadata/retention-cases.ts';
import { storedRows } from '../support/metadata/stored-rows.ts';

/** What commands may do to versions: `rows` are in the table below, `tests` are in retention-changes.test.ts. */
const COMMANDS: Readonly<
  Record<Exclude<CommandName, keyof EngineCommands>, 'rows' | 'tests' | { touchesNoVersion: string }>
> = {
  'commit-version': 'rows',
  'recommit-version': 'rows',
  'compose-version': 'rows',
  'append-version': 'rows',
  'complete-upload': 'rows',
  'delete-versions': 'rows',
  'move-key': 'rows',
  'begin-move': 'rows',
  'step-move': 'rows',
  'begin-key-move': 'rows',
  'step-key-move': 'rows',
  'close-bucket': 'rows',
  'step-closing': 'rows',
  'empty-bucket': 'rows',
  'delete-bucket': 'rows',
  'set-tags': 'rows',
  'set-acl': 'rows',
  'rewrap-keys': 'rows',
  'rename-bucket': 'rows',
  'admit-foreign-objects': 'rows',
  'fold-version': 'tests',
  'set-protection': 'tests',
  'set-bucket-config': 'tests',
  'unlock-compliance': 'tests',
  'delete-account': 'tests',
  'add-mail': { touchesNoVersion: 'mails' },
  'note-mail': { touchesNoVersion: 'mails' },
  'set-master-keys': { touchesNoVersion: 'which master keys a cluster uses' },
  'note-account-removal': { touchesNoVersion: 'how far a removal has come' },
  'step-lifecycle': 'rows',
  'create-account': { touchesNoVersion: 'accounts' },
  'set-account': { touchesNoVersion: 'accounts' },
  'add-access-key': { touchesNoVersion: 'accounts' },
  'change-access-key': { touchesNoVersion: 'accounts' },
  'change-identities': { touchesNoVersion: 'identities' },
  'forget-identities': { touchesNoVersion: 'identities' },
  'note-key-uses': { touchesNoVersion: 'identities' },
  'change-tenancy': { touchesNoVersion: 'accounts' },
  'set-account-quota': { touchesNoVersion: 'quotas' },
  'grant-quota': { touchesNoVersion: 'quotas' },
  'note-quota-lease': { touchesNoVersion: 'quotas' },
  'end-quota-phase': { touchesNoVersion: 'quotas' },
  'note-soft-quota': { touchesNoVersion: 'quotas' },
  'check-room': { touchesNoVersion: 'nothing' },
  'open-quota-lease': { touchesNoVersion: 'quotas' },
  'set-quota-lease': { touchesNoVersion: 'quotas' },
  'shrink-quota-lease': { touchesNoVersion: 'quotas' },
  'close-quota-lease': { touchesNoVersion: 'quotas' },
  'reserve-name': { touchesNoVersion: 'names' },
  'activate-name': { touchesNoVersion: 'names' },
  'begin-rename': { touchesNoVersion: 'names' },
  'end-rename': { touchesNoVersion: 'names' },
  'forget-name': { touchesNoVersion: 'names, of buckets that are deleted' },
  'create-bucket': { touchesNoVersion: 'of a bucket that is there it changes nothing' },
  'hold-move': { touchesNoVersion: 'the job alone' },
  'create-upload': { touchesNoVersion: 'uploads' },
  'commit-part': { touchesNoVersion: 'uploads' },
  'abort-upload': { touchesNoVersion: 'uploads' },
  'expire-uploads': { touchesNoVersion: 'uploads' },
  'release-parts': { touchesNoVersion: 'uploads that have ended' },
  'forget-completed-uploads': { touchesNoVersion: 'uploads that have ended' },
  'claim-links': { touchesNoVersion: 'links of copies' },
  'release-links': { touchesNoVersion: 'links that other shards have given back' },
  'settle-claims': { touchesNoVersion: 'links of which other shards know nothing' },
  'condemn-blobs': { touchesNoVersion: 'data without links' },
  'release-manifest-page': { touchesNoVersion: 'data without links' },
  'erase-blobs': { touchesNoVersion: 'data without links' },
  'note-debts': { touchesNoVersion: 'repair entries' },
  'settle-debts': { touchesNoVersion: 'repair entries' },
  'note-audit': { touchesNoVersion: 'progress of the audit' },
  'note-scan': { touchesNoVersion: 'progress of a scan' },
  'learn-history': { touchesNoVersion: 'histories of shards' },
  'assert-links': { touchesNoVersion: 'links, which it adds' },
  'note-asserted': { touchesNoVersion: 'histories of shards' },
  'confirm-history': { touchesNoVersion: 'histories of shards' },
  'finish-outbox': { touchesNoVersion: 'the outbox' },
  'keep-answer': { touchesNoVersion: 'stored outcomes' },
  'forget-tokens': { touchesNoVersion: 'stored outcomes' },
  'forget-jobs': { touchesNoVersion: 'jobs that have ended' },
  'take-events': { touchesNoVersion: 'events' },
  'set-price-list': { touchesNoVersion: 'price lists' },
  'add-traffic': { touchesNoVersion: 'usage' },
  'close-usage': { touchesNoVersion: 'usage' },
  'note-orphaned': { touchesNoVersion: 'usage' },
  'note-usage-closed': { touchesNoVersion: 'usage' },
  'mend-usage': { touchesNoVersion: 'usage' },
  'mend-account': { touchesNoVersion: 'usage' },
  'begin-month': { touchesNoVersion: 'invoices' },
  'close-invoices': { touchesNoVersion: 'invoices' },
  'end-month': { touchesNoVersion: 'invoices' },
  tick: { touchesNoVersion: 'shard time' },
};

/** With a prefix of its own, so that a MOVE of it is about nothing else. */
const KEY = 'p/key' as ObjectKey;
const OTHER = 'q/key' as ObjectKey;
/** What is moved, copied and composed from; nothing of its own protects it. */
const SOURCE = 's/key' as ObjectKey;

type Verdict = 'done' | 'blocked';
interface Table {
  world: MetadataShards;
  versioning: Versioning;
  target: VersionRecord;
  source: NewData;
}

interface Mutation {
  commands: readonly CommandName[];
  /**
   * What it does to the version of KEY: whether it is gone in each state of the bucket, or in some; or it changes these fields of
   * it; or nothing, and is done or refused whatever protects the version.
   */
  does:
    | 'gone'
    | 'gone where null'
    | 'gone but under a marker'
    | { changes: readonly (keyof VersionRecord)[] }
    | 'is refused';
  bypasses?: true;
  /** Another version has to go for it, too. */
  movesSource?: true;
  needsCurrent?: true;
  /** Parts of it are done, or it leaves a trace of its own: then only versions are as they were. */
  leavesTrace?: true;
  prepare(table: Table): Promise<() => Promise<Verdict>>;
}

const verdictOf = ({ kind }: { kind: string }): Verdict => {
  if (kind === 'blocked') return 'blocked';
  if (kind === 'committed') return 'done';
  throw new Error(kind);
};
const ofMove = (result: OutcomeOf<'move-key'>): Verdict => {
  if (result.kind !== 'moved-key') throw new Error(result.kind);
  if (Array.isArray(result.result)) return 'done';
  if (result.result.kind === 'blocked') return 'blocked';
  throw new Error(result.result.kind);
};
const ofDelete = async (
  { world }: Table,
  items: { versionId?: VersionId; bypassesGovernance?: true; key?: ObjectKey }[],
): Promise<Verdict> => {
  const outcome = await world.execute('delete-versions', {
    bucketId: BUCKET,
    owner: OWNER,
    items: items.map((item) => ({ key: KEY, ...item })),
  });
  const [first] = outcome.items;
  if (first?.kind === 'deleted') return 'done';
  if (first?.kind === 'blocked') return 'blocked';
  throw new Error(first?.kind);
};
const ofJob = async (world: MetadataShards, from: string, to: string): Promise<Verdict> => {
  const { ended } = await driveJob(world, await beginMove(world, { from, to, overwrites: true }));
  if (ended?.errorCount === 0) return 'done';
  const [error] = ended?.errors ?? [];
  if (error?.code === 'AccessDenied') return 'blocked';
  throw new Error(error?.code);
};

const MUTATIONS: Readonly<Record<string, Mutation>> = {
  PUT: {
    commands: ['commit-version'],
    does: 'gone where null',
    prepare: async ({ world }) => {
      const data = world.newData();
      return async () => verdictOf(await world.put(KEY, { data, etag: etagOf('new') }));
    },
  },
  'copy onto it': {
    commands: ['commit-version'],
    does: 'gone where null',
    prepare: async ({ world, source }) => {
      const data = copyOf(source, world.newLinkId());
      return async () => verdictOf(await world.put(KEY, { data, etag: etagOf('new') }));
    },
  },
  'copy onto itself': {
    commands: ['recommit-version'],
    does: 'gone where null',
    needsCurrent: true,
    prepare: async ({ world, target }) => {
      const { versionId, order, manifest } = target;
      const expected = { versionId, order, dataLinkId: dataLinkId(manifest) };
      const version = { owner: OWNER, kek, sealedHeaders: Uint8Array.of(8) };
      const command = { bucketId: BUCKET, key: KEY, linkId: world.newLinkId(), expected, version };
      return async () => verdictOf(await world.execute('recommit-version', command));
    },
  },
  compose: {
    commands: ['compose-version'],
    does: 'gone where null',
    prepare: async ({ world, source }) => {
      const { grant, uses, sizeBytes, manifest } = copyOf(source, world.newLinkId());
      const segments = manifest.kind === 'direct' ? manifest.segments : [];
      const originals = packOriginals({ sizeBytes, md5: etagOf('source') });
      const version = { sizeBytes, etag: `${etagOf('whole')}-1`, owner: OWNER, kek, originals };
      const token = { token: 'composed', digest: 'd' };
      const command = { bucketId: BUCKET, key: KEY, version, body: { uses, segments }, data: grant, token };
      return async () => verdictOf(await world.execute('compose-version', command));
    },
  },
  append: {
    commands: ['append-version'],
    does: 'gone where null',
    needsCurrent: true,
    prepare: async ({ world }) => {
      const { sizeBytes, grant } = world.newData();
      const piece = { sizeBytes, md5: etagOf('piece'), births: grant.births, crcs: {} };
      const linkId = world.newLinkId();
      const token = { token: 'appended', digest: 'd' };
      const command = { bucketId: BUCKET, key: KEY, linkId, kek: { found: kek, renewed: kek }, piece, token };
      return async () => verdictOf(await world.execute('append-version', command));
    },
  },
  Complete: {
    commands: ['complete-upload'],
    does: 'gone where null',
    prepare: async ({ world }) => {
      const uploadId = await beginUpload(world, KEY);
      await putPart(world, { key: KEY, uploadId }, { partNumber: 1 });
      const parts = [{ partNumber: 1, etag: etagOf('part 1') }];
      return async () =>
        verdictOf(await world.execute('complete-upload', { bucketId: BUCKET, key: KEY, uploadId, parts }));
    },
  },
  DELETE: {
    commands: ['delete-versions'],
    does: 'gone where null',
    prepare: async (table) => () => ofDelete(table, [{}]),
  },
  'DELETE of the version': {
    commands: ['delete-versions'],
    does: 'gone',
    prepare: async (table) => () => ofDelete(table, [table.target]),
  },
  'DELETE of the version, bypassing GOVERNANCE': {
    commands: ['delete-versions'],
    does: 'gone',
    bypasses: true,
    prepare: async (table) => () => {
      const { versionId } = table.target;
      return ofDelete(table, [{ versionId, bypassesGovernance: true }]);
    },
  },
  'DELETE of several': {
    commands: ['delete-versions'],
    does: 'gone',
    leavesTrace: true,
    prepare: async (table) => () => {
      const { versionId } = table.target;
      return ofDelete(table, [{ versionId }, { key: 'none' as ObjectKey }, { versionId }]);
    },
  },
  MOVE: {
    commands: ['move-key'],
    does: 'gone',
    prepare:
      async ({ world }) =>
      async () => {
        const move = { from: KEY, to: OTHER };
        return ofMove(await world.execute('move-key', { bucketId: BUCKET, move, overwrites: true }));
      },
  },
  'MOVE onto it': {
    commands: ['move-key'],
    does: 'gone where null',
    movesSource: true,
    prepare:
      async ({ world }) =>
      async () => {
        const move = { from: SOURCE, to: KEY };
        return ofMove(await world.execute('move-key', { bucketId: BUCKET, move, overwrites: true }));
      },
  },
  'MOVE of its prefix': {
    commands: ['begin-move', 'step-move'],
    does: 'gone',
    leavesTrace: true,
    prepare:
      async ({ world }) =>
      () =>
        ofJob(world, 'p/', 'q/'),
  },
  'MOVE of a prefix onto its own': {
    commands: ['begin-move', 'step-move'],
    does: 'gone where null',
    movesSource: true,
    leavesTrace: true,
    prepare:
      async ({ world }) =>
      () =>
        ofJob(world, 's/', 'p/'),
  },
  'MOVE in several entries': {
    commands: ['begin-key-move', 'step-key-move'],
    does: 'gone',
    prepare:
      async ({ world }) =>
      async () => {
        const command = {
          bucketId: BUCKET,
          move: { from: KEY, to: OTHER },
          overwrites: true,
          driver: DRIVER,
        };
        const outcome = await world.execute('begin-key-move', command);
        if (outcome.kind === 'begun') {
          const { ended } = await driveJob(world, outcome.job);
          return ended?.endedAtMs === undefined ? 'blocked' : 'done';
        }
        expect(outcome).toMatchObject({ kind: 'refused', result: { kind: 'blocked' } });
        return 'blocked';
      },
  },
  'MOVE of its prefix that has found it to be a large key': {
    commands: ['begin-move', 'step-key-move'],
    does: 'gone',
    leavesTrace: true,
    prepare: async ({ world }) => {
      const { jobId } = await beginMove(world, { from: 'p/', to: 'q/', overwrites: true });
      const place = { bucketId: BUCKET, jobId, driver: DRIVER, begin: { leg: 0 }, key: KEY, to: OTHER };
      return async () => {
        const command = { ...place, stepCount: 0, phase: 'open' as const, versionsMax: 10 };
        const outcome = await world.execute('step-key-move', command);
        if (outcome.kind !== 'stepped') throw new Error(outcome.kind);
        const { ended } = await driveJob(world, outcome.job);
        expect(ended?.endedAtMs).toBeDefined();
        if (Array.isArray(outcome.result)) return 'done';
        expect(outcome.result).toMatchObject({ kind: 'blocked' });
        return 'blocked';
      };
    },
  },
  'DELETE of the bucket': {
    commands: ['delete-bucket'],
    does: 'is refused',
    prepare:
      async ({ world }) =>
      async () => {
        expect(await world.execute('delete-bucket', { bucketId: BUCKET })).toEqual({ kind: 'not-empty' });
        return 'blocked';
      },
  },
  'forced DELETE of the bucket': {
    commands: ['close-bucket', 'step-closing'],
    does: 'gone',
    movesSource: true,
    leavesTrace: true,
    prepare:
      async ({ world }) =>
      async () => {
        const closed = await world.execute('close-bucket', { bucketId: BUCKET });
        if (closed.kind !== 'closing') throw new Error(closed.kind);
        const calls: ClosingCalls = {
          look: (query) => world.query('find-protected', query),
          step: (command) => world.execute('step-closing', command),
        };
        const { kind } = await driveClosing(calls, closed.job);
        if (kind === 'gone') throw new Error(kind);
        const { bucket } = await world.query('get-bucket', { bucketId: BUCKET });
        expect(bucket?.state).toBe(kind === 'deleted' ? 'deleted' : 'open');
        return kind === 'deleted' ? 'done' : 'blocked';
      },
  },
  'rules of lifecycle by which it is due': {
    commands: ['step-lifecycle'],
    does: 'gone but under a marker',
    leavesTrace: true,
    prepare: async ({ world }) => {
      const expiration = { days: 1 };
      const rule = { id: 'r', isEnabled: true, filter: { prefix: KEY }, noncurrentExpiration: { days: 1 } };
      const document = { rules: [{ ...rule, expiration }] };
      const set = await world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'lifecycle', document });
      expect(set.kind).toBe('changed');
      world.clock.advance(1000);
      const calls = {
        find: (query: QueryOf<'find-expirable'>) => world.query('find-expirable', query),
        step: (command: CommandOf<'step-lifecycle'>) => world.execute('step-lifecycle', command),
      };
      return async () => {
        const counts = await passLifecycle(calls, { bucketId: BUCKET, dayMs: 100 });
        return counts.keptCount > 0 ? 'blocked' : 'done';
      };
    },
  },
  'emptying of a bucket before it is deleted': {
    commands: ['empty-bucket', 'close-bucket'],
    does: 'is refused',
    leavesTrace: true,
    prepare: async ({ world }) => {
      const closed = await world.execute('close-bucket', { bucketId: BUCKET });
      if (closed.kind !== 'closing') throw new Error(closed.kind);
      const { jobId } = closed.job;
      return async () => {
        const command = { bucketId: BUCKET, jobId, stepCount: 0 };
        expect(await world.execute('empty-bucket', command)).toEqual({ kind: 'elsewhere' });
        return 'blocked';
      };
    },
  },
  'other tags': {
    commands: ['set-tags'],
    does: { changes: ['tags'] },
    prepare:
      async ({ world, target }) =>
      async () => {
        const tags = [{ key: 'k', value: 'v' }];
        const { versionId } = target;
        const outcome = await world.execute('set-tags', { bucketId: BUCKET, key: KEY, versionId, tags });
        expect(outcome.kind).toBe('tagged');
        return 'done';
      },
  },
  'another list of grants': {
    commands: ['set-acl'],
    does: { changes: ['acl'] },
    prepare:
      async ({ world, target }) =>
      async () => {
        const { versionId, owner } = target;
        const grants = [{ grantee: 'AllUsers' as const, permission: 'READ' as const }];
        const command = { bucketId: BUCKET, key: KEY, versionId, owner, grants };
        const outcome = await world.execute('set-acl', command);
        expect(outcome.kind).toBe('set');
        return 'done';
      },
  },
  'another master key': {
    commands: ['rewrap-keys'],
    does: { changes: ['kek'] },
    prepare:
      async ({ world, target }) =>
      async () => {
        const row = wrappedKeyName(
          SECTION.versions,
          versionPosition(currentRow(BUCKET, KEY).key, target.order),
        );
        const replacement = { ...kek, keyId: 'k2' };
        const outcome = await world.execute('rewrap-keys', { items: [{ row, expected: kek, replacement }] });
        expect(outcome).toEqual({ kind: 'rewrapped', count: 1 });
        return 'done';
      },
  },
  'another name of the bucket': {
    commands: ['rename-bucket'],
    does: { changes: [] },
    prepare:
      async ({ world }) =>
      async () => {
        const { bucket } = await world.query('get-bucket', { bucketId: BUCKET });
        if (bucket === null) throw new Error('a bucket');
        const { name, nameEpoch } = bucket;
        const command = { bucketId: BUCKET, from: name, to: 'other-name' as typeof name, nameEpoch };
        const outcome = await world.execute('rename-bucket', command);
        expect(outcome).toMatchObject({ kind: 'renamed' });
        const after = (await world.query('get-bucket', { bucketId: BUCKET })).bucket;
        expect(after).toEqual({ ...bucket, name: 'other-name', nameEpoch: nameEpoch + 1 });
        return 'done';
      },
  },
  'objects of other accounts': {
    commands: ['admit-foreign-objects'],
    does: { changes: [] },
    prepare:
      async ({ world }) =>
      async () => {
        const { bucket } = await world.query('get-bucket', { bucketId: BUCKET });
        const outcome = await world.execute('admit-foreign-objects', { bucketId: BUCKET });
        expect(outcome).toMatchObject({
          kind: 'admitted',
          bucket: { ...bucket, cfgVersion: expect.anything() },
        });
        return 'done';
      },
  },
};

async function find(world: MetadataShards, versionId: VersionId): Promise<VersionRecord | undefined> {
  const found = await world.query('get-version', {
    bucketId: BUCKET,
    key: KEY,
    versionId,
    includeBody: false,
  });
  return found.kind === 'found' ? found.version : undefined;
}

/** A version of KEY as the case has it, at the end of all that happens to it. */
async function setUp(
  retention: RetentionCase,
  { rule, versioning, isHidden }: { rule: Rule; versioning: Versioning; isHidden: boolean },
): Promise<Table> {
  const world = await openMetadata();
  await world.createBucket(versioning);
  const source = world.newData();
  // Before the rule, so that none of it is in the source's own record.
  await world.put(SOURCE, { data: source });
  world.clock.advance(1000);
  await setRule(world, retention, rule);
  const { given } = retention;
  const written = await world.put(KEY, { version: { ...(given && { protection: given }) } });
  if (written.kind !== 'committed') throw new Error(written.kind);
  const { versionId } = written;
  if (isHidden) await world.remove(KEY);
  await passTime(world, retention, { key: KEY, versionId });
  world.clock.advance(1000);
  const target = await find(world, versionId);
  if (target === undefined) throw new Error('the version');
  return { world, versioning, target, source };
}

function without(record: VersionRecord, fields: readonly (keyof VersionRecord)[]): Partial<VersionRecord> {
  const rest: Partial<VersionRecord> = { ...record };
  for (const field of fields) delete rest[field];
  return rest;
}

function takesVersion(does: Mutation['does'], at: { isNull: boolean; isHidden: boolean }): boolean {
  if (does === 'gone') return true;
  if (does === 'gone where null') return at.isNull;
  // A current version that is not the null version stays below the marker that it gets.
  return does === 'gone but under a marker' && (at.isNull || at.isHidden);
}

function expectedVerdict(
  { does, bypasses, movesSource }: Mutation,
  retention: RetentionCase,
  state: { rule: Rule; isGone: boolean },
): Verdict {
  if (does === 'is refused') return 'blocked';
  if (typeof does === 'object') return 'done';
  if (movesSource && retention.keepsOthers) return 'blocked';
  const mayGo = !retention.keeps || (bypasses && retention.mayBypass);
  return state.isGone && !mayGo ? 'blocked' : 'done';
}

async function check(retention: RetentionCase, rule: Rule, versioning: Versioning, isHidden: boolean) {
  for (const [name, mutation] of Object.entries(MUTATIONS)) {
    if (mutation.needsCurrent && isHidden) continue;
    const { does, leavesTrace } = mutation;
    const table = await setUp(retention, { rule, versioning, isHidden });
    const { world, target } = table;
    const isGone = takesVersion(does, { isNull: target.versionId === 'null', isHidden });
    const run = await mutation.prepare(table);
    const before = await storedRows(world.kv);
    const verdict = await run();
    expect(`${name}: ${verdict}`).toBe(`${name}: ${expectedVerdict(mutation, retention, { rule, isGone })}`);
    if (verdict === 'blocked' && !leavesTrace) expect(await storedRows(world.kv), name).toEqual(before);
    const after = await find(world, target.versionId);
    if (verdict === 'done' && isGone) {
      const isSame = after !== undefined && after.modifiedAtMs === target.modifiedAtMs;
      // Of a bucket that was deleted the versions are there until its job has taken them out.
      expect(isSame, name).toBe(name === 'forced DELETE of the bucket');
      continue;
    }
    if (after === undefined) throw new Error(`${name}: it is gone`);
    const changes = typeof does === 'object' ? does.changes : [];
    expect(without(after, changes), name).toEqual(without(target, changes));
    await world.markUnlinked();
    const blobs = target.manifest.kind === 'direct' ? target.manifest.uses.map(({ blobId }) => blobId) : [];
    expect(await world.stateOf(...blobs), name).toEqual(['live']);
  }
}

describe.each(RETENTION_CASES.map((retention) => [retention.name, retention] as const))(
  '%s',
  (_, retention) => {
    const states = retention.rules.flatMap((rule) =>
      versioningsOf(rule).flatMap((versioning) =>
        (versioning === 'enabled' ? [false, true] : [false]).map((isHidden) => ({
          rule,
          versioning,
          isHidden,
        })),
      ),
    );
    test.each(states)('$rule, $versioning, behind a delete marker: $isHidden', (state) =>
      check(retention, state.rule, state.versioning, state.isHidden),
    );
  },
);

test('every command is classified, and those that may touch a version are in the table or in a test', () => {
  expect(Object.keys(COMMANDS).sort()).toEqual(Object.keys(metadataMachine.commands).sort());
  const inRows = new Set(Object.values(MUTATIONS).flatMap(({ commands }) => commands));
  const wanted = Object.entries(COMMANDS).flatMap(([name, how]) => (how === 'rows' ? [name] : []));
  expect([...inRows].sort()).toEqual(wanted.sort());
});

// Buckets of a random run against the model of retention: how they are asked, what is drawn for them by chance, their rules
// and their ends, and that what is listed is what the model has.
import { isDeepStrictEqual } from 'node:util';
import { must } from '../../../src/base/assert.ts';
import { LOOK_ROWS_MAX } from '../../../src/metadata/buckets/drive-closing.ts';
import type {
  CommandName,
  CommandOf,
  OutcomeOf,
  QueryName,
  QueryOf,
  Reply,
  ResultOf,
} from '../../../src/ports/metadata/port.ts';
import {
  type BucketId,
  type BucketName,
  makeBlobId,
  makeLinkId,
  type ObjectKey,
  type UploadId,
  type VersionId,
} from '../../../src/types/names.ts';
import type { VersionProtection } from '../../../src/types/protection.ts';
import type { MovePrefixJob } from '../../../src/types/records/job-record.ts';
import type { BucketRecord } from '../../../src/types/records/rows.ts';
import type { BlobUse, VersionRecord } from '../../../src/types/version.ts';
import { createSeededRandom } from '../run/simulated.ts';
import { dataOf, type NewData, OWNER } from './metadata-shards.ts';
import { ModelBucket, type ModelCompliance, type ModelVersion, refusedSetting } from './retention-model.ts';

const DAY = 24 * 3600_000;
const NAMES = ['p/1', 'p/2', 'q/1', 'q/2'] as const;

/** The shard under test; what is refused or lost on the way is asked for again until it is answered. */
export interface ModelledShard {
  execute<N extends CommandName>(
    name: N,
    command: CommandOf<N>,
    bucket?: { bucketId: BucketId; name: BucketName; cfgVersion: number },
  ): Promise<Extract<Reply<OutcomeOf<N>>, { kind: 'done' | 'stale-bucket' }>>;
  query<N extends QueryName>(name: N, query: QueryOf<N>): Promise<ResultOf<N>>;
  /** Of jumps of the clock, as the test knows it; ms. */
  unacceptedMs(): number;
}

export interface Slot {
  bucketId: BucketId;
  name: BucketName;
  model: ModelBucket;
  stepCount: number;
  uploads: { key: ObjectKey; uploadId: UploadId; given: Partial<ModelVersion> }[];
  jobs: MovePrefixJob[];
}

export class RetentionBuckets {
  protected readonly shard: ModelledShard;
  protected readonly random: ReturnType<typeof createSeededRandom>;
  protected readonly slots: Slot[] = [];
  protected readonly log: string[] = [];
  protected bucketCount = 0;
  protected etagCount = 0;
  protected lastMs = 0;
  /** How often each thing was done, and how often something was kept. */
  readonly counts = new Map<string, number>();

  constructor(shard: ModelledShard, seed: number) {
    this.shard = shard;
    this.random = createSeededRandom(seed);
  }

  below(end: number): number {
    return Buffer.from(this.random.bytes(4)).readUInt32BE() % end;
  }

  /** The last steps, for the message of a failure. */
  get history(): string {
    return this.log.slice(-12).join('\n');
  }

  note(text: string): void {
    this.log.push(text);
  }

  protected count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  /** Shard time now, which ids are made from: what has been heard is old behind a step of the clock. */
  async hearTime(): Promise<void> {
    await this.send('tick', {});
  }

  // ---- calls ----

  /** Expects that nobody else has changed the bucket. */
  protected async do<N extends CommandName>(
    slot: Slot,
    name: N,
    command: CommandOf<N>,
  ): Promise<OutcomeOf<N>> {
    const outcome = await this.ask(slot, name, command);
    if (outcome === undefined) throw new Error(`${name}: stale-bucket`);
    return outcome;
  }

  /** undefined: the shard says that the bucket is another one, or closing, or that the key is being renamed. */
  protected async ask<N extends CommandName>(
    slot: Slot,
    name: N,
    command: CommandOf<N>,
  ): Promise<OutcomeOf<N> | undefined> {
    const { cfgVersion } = await this.rowOf(slot);
    const { bucketId, name: bucketName } = slot;
    const reply = await this.shard.execute(name, command, { bucketId, name: bucketName, cfgVersion });
    this.hear(reply);
    return reply.kind === 'done' ? reply.value : undefined;
  }

  /** As workers do, for which the bucket is not looked at. */
  protected async send<N extends CommandName>(name: N, command: CommandOf<N>): Promise<OutcomeOf<N>> {
    const reply = await this.shard.execute(name, command);
    this.hear(reply);
    if (reply.kind !== 'done') throw new Error(`${name}: ${reply.kind}`);
    return reply.value;
  }

  protected hear({ timeMs }: { timeMs: number }): void {
    this.lastMs = timeMs;
  }

  /** What retention went by in the last command. */
  protected get atMs(): number {
    return this.lastMs - this.shard.unacceptedMs();
  }

  protected async rowOf({ bucketId }: Slot): Promise<BucketRecord> {
    const { bucket } = await this.shard.query('get-bucket', { bucketId });
    return must(bucket ?? undefined, 'a bucket');
  }

  protected async versionOf(
    { bucketId }: Slot,
    key: ObjectKey,
    versionId?: VersionId,
  ): Promise<VersionRecord | undefined> {
    const query = { bucketId, key, includeBody: false, ...(versionId && { versionId }) };
    const found = await this.shard.query('get-version', query);
    return found.kind === 'found' ? found.version : undefined;
  }

  // ---- chance ----

  protected pick<T>(all: readonly T[]): T {
    return all[this.below(all.length)] as T;
  }

  protected flip(oneIn = 2): boolean {
    return this.below(oneIn) === 0;
  }

  protected key(): ObjectKey {
    return this.pick(NAMES) as string as ObjectKey;
  }

  /** Any version of the bucket, or none. */
  protected version({ model }: Slot): { key: ObjectKey; version: ModelVersion } | undefined {
    const all = model.all();
    if (all.length === 0) return undefined;
    const { key, version } = this.pick(all);
    return { key: key as ObjectKey, version };
  }

  protected untilMs(): number {
    return this.lastMs + 1 + this.below(40 * DAY);
  }

  protected etag(): string {
    return `${++this.etagCount}`.padStart(32, '0');
  }

  protected linkId() {
    return makeLinkId({ timeMs: this.lastMs, random: this.random.bytes(10) });
  }

  protected newData(): NewData {
    const blobId = makeBlobId({ timeMs: this.lastMs, homeShard: 0, random: this.random.bytes(8) });
    const use: BlobUse = {
      blobId,
      linkId: this.linkId(),
      sizeBytes: 10,
      storage: 'chunks',
      chunkSizeBytes: 1024 * 1024,
      wrappedDataKey: Uint8Array.of(7),
    };
    return dataOf([use], { births: [{ use }], links: [] });
  }

  /** What a request may name for a new version, and how the model has it. */
  protected given({ model }: Slot): { given: Partial<ModelVersion>; protection?: VersionProtection } {
    if (model.lock === undefined || this.flip()) return { given: {} };
    const mode = this.pick(['GOVERNANCE', 'COMPLIANCE'] as const);
    const untilMs = this.untilMs();
    const retention = this.flip() ? { mode, untilMs } : undefined;
    const legalHold = this.flip(4) ? (true as const) : undefined;
    const given = { ...retention, ...(legalHold && { legalHold }) };
    const protection = { ...(retention && { retention }), ...(legalHold && { legalHold }) };
    return Object.keys(protection).length === 0 ? { given } : { given, protection };
  }

  // ---- buckets ----

  protected async newBucket(at: number): Promise<Slot> {
    const number = ++this.bucketCount;
    const slot: Slot = {
      bucketId: `b${number.toString(16).padStart(15, '0')}` as BucketId,
      name: `bucket-${number}` as BucketName,
      model: new ModelBucket(),
      stepCount: 0,
      uploads: [],
      jobs: [],
    };
    await this.send('create-bucket', { bucketId: slot.bucketId, name: slot.name, owner: OWNER });
    if (this.flip()) await this.setVersioning(slot, 'enabled');
    this.slots[at] = slot;
    return slot;
  }

  protected async setVersioning(
    slot: Slot,
    status: 'enabled' | 'suspended',
    isMoving = false,
  ): Promise<void> {
    const setting = { kind: 'versioning', status } as const;
    if (await this.set(slot, { kind: 'versioning', document: { status } }, setting, isMoving))
      slot.model.versioning = status;
  }

  protected async setLock(slot: Slot, isMoving = false): Promise<void> {
    const mode = this.pick(['GOVERNANCE', 'COMPLIANCE'] as const);
    const days = 1 + this.below(30);
    const lock = this.flip() ? { mode, days } : {};
    const document = lock.mode === undefined ? {} : { defaultRetention: { mode, days } };
    if (!(await this.set(slot, { kind: 'objectLock', document }, { kind: 'objectLock' }, isMoving))) return;
    slot.model.lock = lock;
    slot.model.hasRules = true;
  }

  protected async setCompliance(slot: Slot, isMoving = false): Promise<void> {
    const before = slot.model.compliance;
    const lockAtMs = this.flip(3) ? this.lastMs + this.below(2) * this.below(5 * DAY) : undefined;
    const after: ModelCompliance = {
      isOn: !this.flip(4),
      days: this.flip() ? this.below(30) : (before?.days ?? 0) + this.below(2),
      hold: this.flip(3),
      lockAtMs: before !== undefined && this.flip() ? before.lockAtMs : lockAtMs,
    };
    const deletesAfter = this.flip(4);
    const document = {
      isEnabled: after.isOn,
      retentionDays: after.days,
      conditionalHold: after.hold,
      deleteAfterRetention: deletesAfter,
      ...(after.lockAtMs !== undefined && { lockAtMs: after.lockAtMs }),
    };
    const isAsBefore = isDeepStrictEqual(after, before) && deletesAfter === slot.model.deletesAfter;
    const waits = isMoving && !isAsBefore;
    if (!(await this.set(slot, { kind: 'compliance', document }, { kind: 'compliance', after }, waits)))
      return;
    slot.model.compliance = after;
    slot.model.deletesAfter = deletesAfter;
    if (after.isOn) slot.model.hasRules = true;
  }

  protected async set(
    slot: Slot,
    config: object,
    setting: Parameters<typeof refusedSetting>[1],
    isMoving: boolean,
  ): Promise<boolean> {
    const command = { bucketId: slot.bucketId, ...config } as CommandOf<'set-bucket-config'>;
    const outcome = await this.send('set-bucket-config', command);
    // A lock of settings goes by shard time, whether the operator has accepted it or not.
    const refused = refusedSetting(slot.model, setting, { atMs: this.lastMs, isMoving });
    const isSame = this.isSame(slot, setting);
    if (outcome.kind === 'refused') this.count(`kept: ${outcome.because}`);
    expectSame(
      outcome.kind === 'refused' ? outcome.because : outcome.kind,
      isSame ? 'changed' : (refused ?? 'changed'),
    );
    return outcome.kind === 'changed';
  }

  /** What is set already is set again, whatever else there is. */
  protected isSame({ model }: Slot, setting: Parameters<typeof refusedSetting>[1]): boolean {
    if (setting.kind !== 'compliance' || model.compliance === undefined) return false;
    const { isOn, days, hold, lockAtMs } = model.compliance;
    const { after } = setting;
    return isOn === after.isOn && days === after.days && hold === after.hold && lockAtMs === after.lockAtMs;
  }

  async versioning(slot: Slot): Promise<void> {
    await this.setVersioning(slot, this.flip() ? 'enabled' : 'suspended');
  }

  async lock(slot: Slot): Promise<void> {
    await this.setLock(slot);
  }

  async compliance(slot: Slot): Promise<void> {
    await this.setCompliance(slot);
  }

  async unlock(slot: Slot): Promise<void> {
    const { bucketId, model } = slot;
    const outcome = await this.send('unlock-compliance', { bucketId, by: 'an operator', reason: 'r' });
    expectSame(outcome.kind, model.isLocked(this.lastMs) ? 'unlocked' : 'not-locked');
    if (outcome.kind === 'unlocked' && model.compliance)
      model.compliance = { ...model.compliance, lockAtMs: undefined };
  }

  async deleteBucket({ bucketId, model }: Slot, at: number): Promise<void> {
    const outcome = await this.send('delete-bucket', { bucketId });
    expectSame(outcome.kind, model.all().length === 0 ? 'deleted' : 'not-empty');
    if (outcome.kind === 'deleted') await this.newBucket(at);
  }

  async forceDelete(slot: Slot, at: number): Promise<void> {
    const { bucketId, model } = slot;
    const closed = await this.do(slot, 'close-bucket', { bucketId });
    if (closed.kind !== 'closing') throw new Error(closed.kind);
    const { bucket } = await this.shard.query('get-bucket', { bucketId });
    const { cfgVersion } = must(bucket ?? undefined, 'a bucket');
    const claim = { bucketId, name: slot.name, cfgVersion };
    const items = [{ key: this.key() }];
    const refused = await this.shard.execute('delete-versions', { bucketId, owner: OWNER, items }, claim);
    expectSame(refused.kind, 'stale-bucket');
    const isKept = () => model.all().some(({ version }) => model.isKept(version, this.atMs));
    for (let job = closed.job; ; ) {
      const { jobId, stepCount, after } = job;
      const limit = this.flip() ? 2 : LOOK_ROWS_MAX;
      const look = await this.shard.query('find-protected', { bucketId, limit, ...(after && { after }) });
      const { count, kept, next } = look;
      const how = next === undefined ? { kind: 'delete' as const } : { kind: 'look' as const, after: next };
      const step = { bucketId, jobId, stepCount, count, next: kept ? ({ kind: 'reopen' } as const) : how };
      const outcome = await this.send('step-closing', step);
      if (outcome.kind === 'looking') {
        ({ job } = outcome);
        continue;
      }
      expectSame(outcome.kind, isKept() ? 'reopened' : 'deleted');
      if (outcome.kind === 'reopened') this.count('kept: a bucket');
      else await this.newBucket(at);
      return;
    }
  }

  // ---- comparison ----

  /** Versions of the bucket, as they are listed. */
  protected async listed(bucketId: BucketId): Promise<Map<string, ModelVersion[]>> {
    const page = await this.shard.query('list-versions', { bucketId, prefix: '', max: 1000 });
    const keys = new Map<string, ModelVersion[]>();
    for (const { key, versionId, isLatest, summary } of page.versions) {
      const { retention, legalHold, compliance } = summary.protection ?? {};
      const version: ModelVersion = {
        id: versionId,
        etag: summary.etag,
        isMarker: summary.isDeleteMarker,
        madeMs: summary.modifiedAtMs,
        mode: retention?.mode,
        untilMs: retention?.untilMs,
        legalHold,
        timeMs: compliance?.retainUntilMs,
        isHeld: compliance?.conditionalHold,
        releasedMs: compliance?.holdReleasedAtMs,
        complianceHold: compliance?.legalHold,
      };
      const others = keys.get(key) ?? [];
      expectSame(isLatest, others.length === 0);
      keys.set(key, [...others, version]);
    }
    return keys;
  }

  protected async compare({ bucketId, model }: Slot): Promise<void> {
    expectSame(textOf(await this.listed(bucketId)), textOf(model.keys));
  }
}

/** In the order of keys; fields that do not protect are left out. */
function textOf(keys: ReadonlyMap<string, readonly ModelVersion[]>): string {
  return [...keys]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([key, versions]) => versions.map((version) => `${key} ${textOfVersion(version)}`))
    .join('\n');
}

function textOfVersion(version: ModelVersion): string {
  const fields = Object.entries(version).filter(([, value]) => value !== undefined && value !== false);
  return JSON.stringify(Object.fromEntries(fields.sort(([a], [b]) => (a < b ? -1 : 1))));
}

export function expectSame(seen: unknown, expected: unknown): void {
  if (seen !== expected) throw new Error(`expected ${expected}, is ${seen}`);
}

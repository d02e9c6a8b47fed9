// Random sequences of everything that may be done to versions, buckets and their rules, against the model of retention: what
// each command answers is what the model expects at the shard's time, and what is listed then is what the model has.
import { must } from '../../../src/base/assert.ts';
import { SECTION, wrappedKeyName } from '../../../src/metadata/master-keys/wrapped-keys.ts';
import { currentRow, versionPosition } from '../../../src/metadata/schema/keyspace.ts';
import type { CommandOf, OutcomeOf } from '../../../src/ports/metadata/port.ts';
import type { ProtectionChange } from '../../../src/ports/metadata/versions.ts';
import type { VersionId } from '../../../src/types/names.ts';
import { packOriginals } from '../../../src/types/originals.ts';
import type { VersionProtection } from '../../../src/types/protection.ts';
import type { MovePrefixJob } from '../../../src/types/records/job-record.ts';
import { dataLinkId, type VersionRecord } from '../../../src/types/version.ts';
import { copyOf, dataOf, kek, type NewData, OWNER } from './metadata-shards.ts';
import { expectSame, type Slot } from './retention-buckets.ts';
import { RetentionLifecycle } from './retention-lifecycle.ts';
import { type ModelBucket, type ModelVersion, mayRetain } from './retention-model.ts';

const DRIVER = 'a gateway';
const SLOTS = 3;
const PREFIXES = ['p/', 'q/', 'p/n/'] as const;
/** A bucket that still has its rules then is left to itself, and another one takes its place. */
const STEPS_OF_A_BUCKET = 250;

export class RetentionRun extends RetentionLifecycle {
  async step(): Promise<void> {
    const at = this.below(SLOTS);
    const slot = this.slots[at] ?? (await this.newBucket(at));
    if (++slot.stepCount > STEPS_OF_A_BUCKET) {
      await this.newBucket(at);
      return;
    }
    const operations = Object.entries(OPERATIONS).flatMap(([name, weight]) =>
      new Array<string>(weight).fill(name),
    );
    const name = this.pick(operations) as keyof typeof OPERATIONS;
    this.count(name);
    this.note(`${slot.name} ${name}`);
    await this[name](slot, at);
    if (this.slots[at] === slot) await this.compare(slot);
  }

  // ---- writes ----

  /** The outcome of something that makes a version of `key`. */
  protected wrote(
    { model }: Slot,
    key: string,
    outcome: { kind: string; versionId?: string; modifiedAtMs?: number },
    made: { etag: string; given?: Partial<ModelVersion> },
  ): void {
    const mayWrite = model.mayWrite(key, this.atMs);
    expectSame(outcome.kind, mayWrite ? 'committed' : 'blocked');
    if (!mayWrite) {
      this.count('kept: a null version');
      return;
    }
    const { versionId: id = '', modifiedAtMs: madeMs = 0 } = outcome;
    expectSame(madeMs, this.lastMs);
    expectSame(id === 'null', model.versioning !== 'enabled');
    model.write(key, model.newVersion({ id, etag: made.etag, madeMs }, made.given));
  }

  async put(slot: Slot): Promise<void> {
    const { given, protection } = this.given(slot);
    await this.commit(slot, this.newData(), { given, ...(protection && { protection }) });
  }

  async copy(slot: Slot): Promise<void> {
    const source = await this.versionOf(slot, this.key());
    if (source?.manifest.kind !== 'direct') return;
    await this.commit(slot, this.copied(source), { given: {} });
  }

  protected copied({ manifest }: VersionRecord): NewData {
    const uses = manifest.kind === 'direct' ? manifest.uses : [];
    return copyOf(dataOf(uses, { births: [], links: [] }), this.linkId());
  }

  protected async commit(
    slot: Slot,
    data: NewData,
    { given, protection }: { given: Partial<ModelVersion>; protection?: VersionProtection },
  ): Promise<void> {
    const [key, etag] = [this.key(), this.etag()];
    const outcome = await this.do(slot, 'commit-version', {
      bucketId: slot.bucketId,
      key,
      version: {
        sizeBytes: data.sizeBytes,
        etag,
        owner: OWNER,
        kek,
        sealedHeaders: Uint8Array.of(9),
        originals: packOriginals({ sizeBytes: data.sizeBytes, md5: etag }),
        manifest: data.manifest,
        ...(protection && { protection }),
      },
      data: data.grant,
    });
    this.wrote(slot, key, outcome, { etag, given });
  }

  async copyOntoItself(slot: Slot): Promise<void> {
    const key = this.key();
    const source = await this.versionOf(slot, key);
    if (source === undefined) return;
    const { versionId, order, manifest, etag } = source;
    const { given, protection } = this.given(slot);
    const outcome = await this.do(slot, 'recommit-version', {
      bucketId: slot.bucketId,
      key,
      expected: { versionId, order, dataLinkId: dataLinkId(manifest) },
      version: {
        owner: OWNER,
        kek: must(source.kek, 'a key'),
        sealedHeaders: Uint8Array.of(8),
        ...(protection && { protection }),
      },
      linkId: this.linkId(),
    });
    this.wrote(slot, key, outcome, { etag, given });
  }

  async compose(slot: Slot): Promise<void> {
    const source = await this.versionOf(slot, this.key());
    if (source?.manifest.kind !== 'direct') return;
    const { uses, grant, sizeBytes, manifest } = this.copied(source);
    const segments = manifest.kind === 'direct' ? manifest.segments : [];
    const [key, md5] = [this.key(), this.etag()];
    const etag = `${md5}-1`;
    const outcome = await this.do(slot, 'compose-version', {
      bucketId: slot.bucketId,
      key,
      version: { sizeBytes, etag, owner: OWNER, kek, originals: packOriginals({ sizeBytes, md5 }) },
      body: { uses, segments },
      data: grant,
    });
    this.wrote(slot, key, outcome, { etag });
  }

  async append(slot: Slot): Promise<void> {
    const key = this.key();
    const source = await this.versionOf(slot, key);
    // Few pieces, so that a run of any length does little at a time.
    if (source?.manifest.kind !== 'direct' || source.manifest.uses.length > 5) return;
    const found = must(source.kek, 'a key');
    const { sizeBytes, grant } = this.newData();
    const outcome = await this.do(slot, 'append-version', {
      bucketId: slot.bucketId,
      key,
      piece: { sizeBytes, md5: this.etag(), births: grant.births, crcs: {} },
      kek: { found, renewed: found },
      linkId: this.linkId(),
    });
    const etag = outcome.kind === 'committed' ? outcome.etag : '';
    this.wrote(slot, key, outcome, { etag });
  }

  async beginUpload(slot: Slot): Promise<void> {
    const key = this.key();
    const { given, protection } = this.given(slot);
    const { bucketId } = slot;
    const upload = { key, initiator: OWNER, owner: OWNER, kek, sealedHeaders: Uint8Array.of(9) };
    const created = await this.do(slot, 'create-upload', {
      bucketId,
      upload: { ...upload, ...(protection && { protection }) },
    });
    if (created.kind !== 'created') throw new Error('what is given ends in the future');
    const { uploadId } = created.upload;
    const { sizeBytes, uses, manifest, grant } = this.newData();
    const segments = manifest.kind === 'direct' ? manifest.segments : [];
    const part = { partNumber: 1, sizeBytes, etag: '1'.repeat(32), uses, segments };
    expectSame(
      (await this.do(slot, 'commit-part', { bucketId, key, uploadId, part, data: grant })).kind,
      'committed',
    );
    slot.uploads.push({ key, uploadId, given });
  }

  async completeUpload(slot: Slot): Promise<void> {
    const [upload] = slot.uploads;
    if (upload === undefined) return;
    const { key, uploadId, given } = upload;
    const parts = [{ partNumber: 1, etag: '1'.repeat(32) }];
    const { bucketId } = slot;
    const outcome = await this.do(slot, 'complete-upload', { bucketId, key, uploadId, parts });
    const etag = outcome.kind === 'committed' ? outcome.etag : '';
    this.wrote(slot, key, outcome, { etag, given });
    if (outcome.kind === 'committed') slot.uploads.shift();
  }

  // ---- deletions ----

  async delete(slot: Slot): Promise<void> {
    const count = 1 + this.below(3);
    const items = Array.from({ length: count }, () => {
      const found = this.flip(4) ? undefined : this.version(slot);
      if (found === undefined) return { key: this.key() };
      const versionId = found.version.id as VersionId;
      return { key: found.key, versionId, ...(this.flip(3) && { bypassesGovernance: true as const }) };
    });
    const { bucketId, model } = slot;
    const { items: outcomes } = await this.do(slot, 'delete-versions', { bucketId, owner: OWNER, items });
    expectSame(outcomes.length, items.length);
    for (const [at, item] of items.entries()) {
      const outcome = must(outcomes[at], 'an outcome');
      const isBlocked = !this.deleted(model, item, outcome);
      expectSame(outcome.kind, isBlocked ? 'blocked' : 'deleted');
      if (isBlocked) this.count('kept: a version');
    }
  }

  protected deleted(
    model: ModelBucket,
    item: { key: string; versionId?: string; bypassesGovernance?: true },
    outcome: OutcomeOf<'delete-versions'>['items'][number],
  ): boolean {
    const { key, versionId, bypassesGovernance = false } = item;
    const isSimple = versionId === undefined;
    if (isSimple && model.versioning !== 'unversioned') {
      if (!model.mayWrite(key, this.atMs)) return false;
      const id = outcome.kind === 'deleted' ? (outcome.versionId ?? '') : '';
      model.write(key, { id, etag: '', isMarker: true, madeMs: this.lastMs });
      return true;
    }
    const target = isSimple ? model.current(key) : model.of(key).find(({ id }) => id === versionId);
    if (target === undefined) return true;
    if (model.isKept(target, this.atMs, bypassesGovernance)) return false;
    model.remove(key, target);
    return true;
  }

  // ---- renames ----

  async move(slot: Slot): Promise<void> {
    const [from, to] = [this.key(), this.key()];
    if (from === to) return;
    const overwrites = this.flip();
    const { bucketId } = slot;
    const outcome = await this.do(slot, 'move-key', { bucketId, move: { from, to }, overwrites });
    if (outcome.kind !== 'moved-key') throw new Error(outcome.kind);
    this.moved(slot, { from, to, overwrites }, outcome.result);
  }

  protected moved(
    { model }: Slot,
    { from, to, overwrites }: { from: string; to: string; overwrites: boolean },
    result: readonly string[] | { kind: string },
  ): void {
    const expected = model.mayMove(from, to, overwrites, this.atMs);
    expectSame(
      'kind' in result ? result.kind : result.join(),
      typeof expected === 'string' ? expected : expected.join(),
    );
    if (expected === 'blocked') this.count('kept: a key');
    if (typeof expected !== 'string') model.move(from, to);
  }

  /** Its steps come later, between other things. */
  async beginMove(slot: Slot): Promise<void> {
    const [from, to] = [this.pick(PREFIXES), this.pick(PREFIXES)];
    if (from === to || slot.jobs.length > 1) return;
    const command = { bucketId: slot.bucketId, from, to, overwrites: this.flip(), driver: DRIVER };
    const outcome = await this.do(slot, 'begin-move', command);
    if (outcome.kind !== 'begun') throw new Error(outcome.kind);
    slot.jobs.push(outcome.job);
  }

  async stepMove(slot: Slot): Promise<void> {
    const { bucketId } = slot;
    const [before] = slot.jobs;
    if (before === undefined) return;
    const { jobId, from, to, overwrites } = before;
    const { job } = await this.shard.query('get-job', { jobId });
    if (job?.kind !== 'move-prefix' || job.endedAtMs !== undefined) {
      slot.jobs.shift();
      return;
    }
    const { leg, after, stepCount } = job;
    const begin = after === undefined ? { leg } : { leg, after };
    const keysMax = 1 + this.below(2);
    const found = await this.shard.query('find-moves', { bucketId, from, to, cursor: begin, keysMax });
    const { keys, cursor } = found;
    const command = {
      bucketId,
      jobId,
      driver: DRIVER,
      stepCount,
      begin,
      from,
      to,
      keys,
      ...(cursor && { cursor }),
    };
    const outcome = await this.send('step-move', command);
    if (outcome.kind !== 'stepped') throw new Error(outcome.kind);
    for (const [at, key] of keys.entries()) {
      const move = { from: key, to: to + key.slice(from.length), overwrites };
      this.moved(slot, move, must(outcome.results[at], 'a result'));
    }
  }

  /** In several entries, to its end; what others ask for meanwhile is refused. */
  async moveInEntries(slot: Slot): Promise<void> {
    const [from, to] = [this.key(), this.key()];
    if (from === to) return;
    const { bucketId, model } = slot;
    const overwrites = this.flip();
    const command = { bucketId, move: { from, to }, overwrites, driver: DRIVER };
    const begun = await this.do(slot, 'begin-key-move', command);
    const expected = model.mayMove(from, to, overwrites, this.atMs);
    const isBegun = typeof expected !== 'string';
    expectSame(begun.kind === 'refused' ? begun.result.kind : begun.kind, isBegun ? 'begun' : expected);
    if (begun.kind !== 'begun') return;
    await this.setLock(slot, true);
    await this.setCompliance(slot, true);
    const items = [{ key: this.pick([from, to]) }];
    expectSame(await this.ask(slot, 'delete-versions', { bucketId, owner: OWNER, items }), undefined);
    let job: MovePrefixJob = begun.job;
    let hasMore = true;
    while (job.endedAtMs === undefined) {
      const { jobId, stepCount } = job;
      const command: CommandOf<'step-key-move'> = {
        bucketId,
        jobId,
        driver: DRIVER,
        stepCount,
        begin: { leg: 0 },
        key: from,
        to,
        phase: hasMore ? 'move' : 'close',
        versionsMax: 2,
      };
      const outcome = await this.send('step-key-move', command);
      if (outcome.kind !== 'stepped') throw new Error(outcome.kind);
      ({ job, hasMore } = outcome);
    }
    model.move(from, to);
  }

  // ---- what protects a version ----

  async protect(slot: Slot): Promise<void> {
    const found = this.version(slot);
    if (found === undefined) return;
    const { key, version } = found;
    const { model, bucketId } = slot;
    const change = this.change(model);
    const versionId = version.id as VersionId;
    const outcome = await this.do(slot, 'set-protection', { bucketId, key, versionId, change });
    const after = this.changed(model, version, change);
    if (after === 'blocked') this.count('kept: a protection');
    expectSame(outcome.kind, typeof after === 'string' ? after : 'set');
    if (typeof after !== 'string') Object.assign(version, after);
  }

  protected change(model: ModelBucket): ProtectionChange {
    const isOfCompliance = model.lock === undefined ? !this.flip(8) : this.flip(8);
    if (isOfCompliance) {
      const hold = this.pick([undefined, undefined, undefined, true, false]);
      return {
        kind: 'compliance',
        ...(this.flip() && { retainUntilMs: this.untilMs() }),
        ...(hold !== undefined && { legalHold: hold }),
        ...(this.flip() && { releasesHold: true as const }),
      };
    }
    if (this.flip(4)) return { kind: 'legal-hold', isOn: this.flip(3) };
    const mode = this.pick(['GOVERNANCE', 'COMPLIANCE'] as const);
    return {
      kind: 'retention',
      retention: this.flip(4) ? null : { mode, untilMs: this.untilMs() },
      ...(this.flip(3) && { bypassesGovernance: true as const }),
    };
  }

  protected changed(
    model: ModelBucket,
    version: ModelVersion,
    change: ProtectionChange,
  ): Partial<ModelVersion> | 'blocked' | 'not-enabled' | 'delete-marker' {
    const isOn = change.kind === 'compliance' ? model.compliance?.isOn === true : model.lock !== undefined;
    if (!isOn) return 'not-enabled';
    if (version.isMarker) return 'delete-marker';
    if (change.kind === 'legal-hold') return { legalHold: change.isOn };
    if (change.kind === 'retention') {
      const after = change.retention ?? undefined;
      const bypasses = change.bypassesGovernance === true;
      if (!mayRetain(version, after, { atMs: this.atMs, bypasses })) return 'blocked';
      return { mode: after?.mode, untilMs: after?.untilMs };
    }
    if (change.kind !== 'compliance') return 'not-enabled';
    const { retainUntilMs, legalHold, releasesHold } = change;
    const isReleased = releasesHold && version.isHeld && version.releasedMs === undefined;
    const released = { ...version, ...(isReleased && { releasedMs: this.lastMs }) };
    if (retainUntilMs !== undefined && retainUntilMs < model.ruleEndMs(released)) return 'blocked';
    return {
      releasedMs: released.releasedMs,
      ...(retainUntilMs !== undefined && { timeMs: retainUntilMs }),
      ...(legalHold !== undefined && { complianceHold: legalHold }),
    };
  }

  // ---- what changes nothing of it ----

  async describe(slot: Slot): Promise<void> {
    const found = this.version(slot);
    if (found === undefined || found.version.isMarker) return;
    const { bucketId } = slot;
    const { key } = found;
    const versionId = found.version.id as VersionId;
    if (this.flip()) {
      const tags = this.flip() ? null : [{ key: 'k', value: `${this.below(9)}` }];
      expectSame((await this.do(slot, 'set-tags', { bucketId, key, versionId, tags })).kind, 'tagged');
    } else {
      const grants = this.flip() ? null : [{ grantee: 'AllUsers' as const, permission: 'READ' as const }];
      const command = { bucketId, key, versionId, owner: OWNER, grants };
      expectSame((await this.do(slot, 'set-acl', command)).kind, 'set');
    }
  }

  async rewrap(slot: Slot): Promise<void> {
    const found = this.version(slot);
    if (found === undefined || found.version.isMarker) return;
    const { key, version } = found;
    const stored = must(await this.versionOf(slot, key, version.id as VersionId), 'a version');
    const expected = must(stored.kek, 'a key');
    const position = versionPosition(currentRow(slot.bucketId, key).key, stored.order);
    const row = wrappedKeyName(SECTION.versions, position);
    const replacement = { ...expected, wrapped: this.random.bytes(3) };
    expectSame(
      (await this.send('rewrap-keys', { items: [{ row, expected, replacement }] })).kind,
      'rewrapped',
    );
  }
}

/** Each is a method of RetentionRun, and comes so often. */
const OPERATIONS = {
  put: 14,
  copy: 3,
  copyOntoItself: 4,
  compose: 3,
  append: 3,
  beginUpload: 3,
  completeUpload: 4,
  delete: 14,
  move: 6,
  beginMove: 2,
  stepMove: 5,
  moveInEntries: 2,
  protect: 12,
  describe: 2,
  rewrap: 2,
  lifecycleRules: 2,
  lifecycle: 4,
  versioning: 3,
  lock: 3,
  compliance: 4,
  unlock: 1,
  deleteBucket: 1,
  forceDelete: 2,
} as const;

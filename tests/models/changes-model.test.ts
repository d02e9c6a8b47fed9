// Puts, copies, compositions, appends, renames of keys and prefixes and deletions of few keys, mixed, in buckets of each
// versioning state, with crashes between any two commits, some asked for again under their token, against a list of versions
// per key: contents, ETags, order and ids of versions, usage and links are always the model's, and fsck finds nothing
// (service 4.2).

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CHUNK_COLUMNS } from '../../src/chunks/disk/keyspace.ts';
import { SHARD_COLUMNS } from '../../src/metadata/engine/shards.ts';
import { driveMove } from '../../src/metadata/moves/drive-move.ts';
import type { CopyFrom } from '../../src/objects/object-store.ts';
import { createKeyring } from '../../src/platform/memory/memory-keyring.ts';
import { createMemoryKv } from '../../src/platform/memory/memory-kv.ts';
import type { IdempotencyToken } from '../../src/ports/metadata/jobs.ts';
import type { ObjectKey, VersionId } from '../../src/types/names.ts';
import { type FsckWorld, openFsckWorld } from '../support/fsck/fsck-world.ts';
import {
  etagOf,
  type Model,
  type ModelVersion,
  movedPrefix,
  NEW,
  nextModel,
  of,
  type Step,
  setArbitrary,
  stepArbitrary,
  type Versioning,
} from '../support/metadata/changes-model.ts';
import { moveCalls } from '../support/metadata/drive-job.ts';
import { driveLeftJobs, type Life, mortal, runJobs } from '../support/metadata/lives.ts';
import { OWNER } from '../support/metadata/metadata-shards.ts';
import { codeOf, readAll, sourceOf } from '../support/objects/object-world.ts';
import { amountOf } from '../support/run/long-form.ts';
import { createManualClock } from '../support/run/simulated.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const RUNS = amountOf({ short: 20, long: 400 });
const ROUNDS_MAX = 8;
const STEPS_MAX = 40;

let bodyCount = 0;
function newBody(sizeBytes: number): Buffer {
  const body = Buffer.alloc(sizeBytes, `body ${bodyCount++}, `);
  return body;
}

/** What ends a process, and says so. */
interface Ending {
  life: Life;
  ended: Promise<false>;
}

function newEnding(): Ending {
  const { promise, resolve } = Promise.withResolvers<false>();
  const life = { left: Number.POSITIVE_INFINITY, commitCount: 0, end: () => resolve(false) };
  return { life, ended: promise };
}

/** One life of the process after another, over the same stores. */
class Lives {
  readonly #stores = {
    kv: createMemoryKv(SHARD_COLUMNS),
    chunkKv: createMemoryKv(CHUNK_COLUMNS),
    clock: createManualClock(Date.parse('2024-01-01')),
    keyring: createKeyring(),
  };
  #ending = newEnding();
  #seed = 0;
  world!: FsckWorld;

  async begin(): Promise<void> {
    const { kv, chunkKv } = this.#stores;
    this.#ending = newEnding();
    const { life } = this.#ending;
    const stores = { ...this.#stores, kv: mortal(kv, life), chunkKv: mortal(chunkKv, life) };
    const isRestarted = this.world !== undefined;
    this.#seed += 100;
    this.world = await openFsckWorld({ isEmpty: true, isRestarted, stores, seed: this.#seed });
  }

  /** False when the process ended before. */
  async run(crashAfter: number | null, act: () => Promise<unknown>): Promise<boolean> {
    const { life, ended } = this.#ending;
    if (crashAfter !== null) life.left = crashAfter;
    const isDone = await Promise.race([act().then(() => true), ended]);
    if (isDone) {
      life.left = Number.POSITIVE_INFINITY;
      return true;
    }
    // What was under way beside the commit that was cut off comes to its end, or to a commit of its own.
    await new Promise(setImmediate);
    await this.begin();
    return false;
  }

  advance(ms: number): void {
    this.#stores.clock.advance(ms);
  }
}

interface Performed {
  model: Model;
  /** Of the bucket, before the step. */
  versioning: Versioning;
  body: Buffer;
  token: IdempotencyToken | undefined;
}

/** Does the step; throws what the store refuses with. Refusals of a rename are thrown by their kind. */
async function perform(
  world: FsckWorld,
  step: Step,
  { model, versioning, body, token }: Performed,
): Promise<void> {
  const { calls, store, metadata } = world;
  const bucket = world.bucket();
  const { bucketId } = bucket.believed;
  const name = 'key' in step ? (step.key as ObjectKey) : ('' as ObjectKey);
  const { signal } = new AbortController();
  const sourceAt = async (from: string, versionId?: string): Promise<CopyFrom> => {
    const id = versionId as VersionId | undefined;
    const found = await world.find(from, id === undefined ? {} : { versionId: id });
    return { bucket, key: from as ObjectKey, found, ...(id && { versionId: id }) };
  };
  switch (step.kind) {
    case 'put':
      await world.put(name, body);
      return;
    case 'append':
      await store.appendObject({
        calls,
        bucket,
        key: name,
        body: sourceOf(body),
        signal,
        tokenOf: () => token,
      });
      return;
    case 'copy': {
      const source = await sourceAt(step.from, of(model, step.from)[step.pick]?.id);
      await store.copyObject({ calls, source, bucket, key: name, owner: OWNER, signal });
      return;
    }
    case 'compose': {
      // As a gateway looks: the components may be others by now.
      if (token !== undefined) {
        const { kind } = await metadata.query('get-kept-outcome', { bucketId, token });
        if (kind === 'repeated') return;
      }
      const components = await Promise.all(step.parts.map((part) => sourceAt(part)));
      await store.composeObject({ calls, components, bucket, key: name, owner: OWNER, token });
      return;
    }
    case 'move': {
      const move = { from: step.from as ObjectKey, to: name };
      const command = { bucketId, move, overwrites: step.overwrites, ...(token && { token }) };
      const outcome = await metadata.execute('move-key', command);
      if (outcome.kind === 'moved-key' && !Array.isArray(outcome.result))
        throw new Refused(outcome.result.kind);
      return;
    }
    case 'move-prefix':
      await performPrefix(world, step, { model, versioning, token });
      return;
    case 'delete': {
      const versionId = step.pick === null ? undefined : (of(model, name)[step.pick]?.id as VersionId);
      const items = [{ key: name, ...(versionId && { versionId }) }];
      await metadata.execute('delete-versions', { bucketId, owner: OWNER, items });
      return;
    }
    case 'set': {
      const { versioning } = step;
      await metadata.execute('set-bucket-config', {
        bucketId,
        kind: 'versioning',
        document: { status: versioning },
      });
      return;
    }
  }
}

/** What the job has counted is the model's, whoever drove it, and however often it was asked for. */
async function performPrefix(
  { metadata, ...world }: FsckWorld,
  step: Step & { kind: 'move-prefix' },
  { model, versioning, token }: Pick<Performed, 'model' | 'versioning' | 'token'>,
): Promise<void> {
  const { bucketId } = world.bucket().believed;
  const { from, to, overwrites } = step;
  const command = { bucketId, from, to, overwrites, ...(token && { token }) };
  const begun = await metadata.execute('begin-move', command);
  if (begun.kind !== 'begun' && begun.kind !== 'began-before') throw new Refused(begun.kind);
  const calls = moveCalls(metadata, begun.kind === 'begun' ? begun.job : begun);
  const found = await calls.findJob();
  if (found !== undefined) for await (const _ of driveMove(calls, found.job));
  const { movedCount } = movedPrefix(model, step, versioning);
  expect((await calls.findJob())?.job).toMatchObject({ movedCount, endedAtMs: expect.any(Number) });
}

class Refused extends Error {
  readonly code: string;
  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/** Ids of the versions of each key, newest first. */
async function readIds({
  metadata,
  ...world
}: FsckWorld): Promise<Map<string, { id: string; isMarker: boolean }[]>> {
  const { bucketId } = world.bucket().believed;
  const { versions } = await metadata.query('list-versions', { bucketId, prefix: '', max: 1000 });
  const listed = versions.map(({ key: name, versionId, summary }) => ({
    name,
    version: { id: versionId as string, isMarker: summary.isDeleteMarker },
  }));
  const byKey = Map.groupBy(listed, ({ name }) => name as string);
  return new Map([...byKey].map(([name, all]) => [name, all.map(({ version }) => version)]));
}

/** `model` with the ids of new versions as the store has them; undefined where it is not what the store has. */
async function bind(world: FsckWorld, model: Model, before: Model): Promise<Model | undefined> {
  const actual = await readIds(world);
  if ([...actual.keys()].sort().join() !== [...model.keys()].sort().join()) return undefined;
  const known = new Set([...before.values()].flatMap((versions) => versions.map(({ id }) => id)));
  const bound = new Map<string, ModelVersion[]>();
  for (const [name, versions] of model) {
    const its = actual.get(name) ?? [];
    const isSame =
      its.length === versions.length &&
      versions.every(({ id, bytes }, at) => {
        const found = its[at];
        const isId = id === NEW ? !known.has(found?.id ?? '') : found?.id === id;
        return isId && found?.isMarker === (bytes === undefined);
      });
    if (!isSame) return undefined;
    bound.set(
      name,
      versions.map((version, at) => ({ ...version, id: its[at]?.id ?? '' })),
    );
  }
  return bound;
}

/** Whether the versions of a key have the bytes and ETags that they are to have. */
async function hasContents(
  world: FsckWorld,
  name: string,
  versions: readonly ModelVersion[],
): Promise<boolean> {
  const bucket = world.bucket();
  for (const version of versions) {
    if (version.bytes === undefined) continue;
    const found = await world.find(name, { versionId: version.id as VersionId });
    const { sizeBytes, etag } = found.version;
    if (etag !== etagOf(version)) return false;
    const opened = await world.store.openObject({
      calls: world.calls,
      bucket,
      key: name as ObjectKey,
      found,
      range: { offsetBytes: 0, sizeBytes },
      signal: new AbortController().signal,
    });
    const bytes = opened.kind === 'bytes' ? opened.bytes : await readAll(opened.stream);
    if (!bytes.equals(version.bytes)) return false;
  }
  return true;
}

/** Background jobs run until nothing waits, and all agrees then. */
async function runUntilAtRest(world: FsckWorld, advance: (ms: number) => void): Promise<void> {
  advance(26 * HOUR);
  let pending = ['not yet'];
  for (let round = 0; round < ROUNDS_MAX && pending.length > 0; round++) {
    await runJobs(world);
    advance(11 * MINUTE);
    const report = await world.fsck({ readData: true });
    expect(report.findings).toEqual([]);
    ({ pending } = report);
  }
  expect(pending).toEqual([]);
}

async function expectUsage(world: FsckWorld, model: Model): Promise<void> {
  const objects = [...model.values()].flat().flatMap(({ bytes }) => bytes ?? []);
  const usage = await world.metadata.query('count-usage', { bucketId: world.bucket().believed.bucketId });
  const sizeBytes = objects.reduce((sum, { length }) => sum + length, 0);
  expect(usage).toMatchObject({ objectCount: objects.length, sizeBytes });
}

async function check(steps: readonly Step[], first: Versioning): Promise<void> {
  const lives = new Lives();
  await lives.begin();
  let model: Model = new Map();
  let versioning: Versioning = 'unversioned';
  const start: Step[] = first === 'unversioned' ? [] : [{ kind: 'set', versioning: first, crash: null }];
  for (const [at, step] of [...start, ...steps].entries()) {
    const body = newBody('size' in step ? step.size : 0);
    const next = nextModel(model, step, { versioning, body });
    if (next === undefined) continue;
    const mayBearToken = ['append', 'compose', 'move', 'move-prefix'].includes(step.kind);
    const token = step.again && mayBearToken ? { token: `step ${at}`, digest: step.kind } : undefined;
    let refusal: string | undefined;
    const act = async () => {
      refusal = await codeOf(perform(lives.world, step, { model, versioning, body, token }));
    };
    let isDone = await lives.run(step.crash, act);
    if (token !== undefined) isDone = await lives.run(null, act);
    else if (!isDone && step.kind === 'move-prefix') await driveLeftJobs(lives.world);
    const told = isDone ? (refusal === 'no error' ? undefined : refusal) : undefined;
    if (isDone) expect(told, JSON.stringify(step)).toBe(typeof next === 'string' ? next : undefined);
    const candidates = typeof next === 'string' ? [model] : isDone ? [next] : [next, model];
    let found: Model | undefined;
    for (const candidate of candidates) {
      const bound = await bind(lives.world, candidate, model);
      const name = 'key' in step ? step.key : '';
      if (bound !== undefined && (await hasContents(lives.world, name, of(bound, name)))) found ??= bound;
    }
    if (found === undefined) throw new Error(`${JSON.stringify(step)} led to something else`);
    model = found;
    if (step.kind === 'set') {
      const { bucketId } = lives.world.bucket().believed;
      const { bucket } = await lives.world.metadata.query('get-bucket', { bucketId });
      versioning = bucket?.versioning ?? versioning;
      lives.world.bucket().believed.cfgVersion = bucket?.cfgVersion ?? 0;
    }
    await expectUsage(lives.world, model);
  }
  for (const [name, versions] of model) expect(await hasContents(lives.world, name, versions)).toBe(true);
  await runUntilAtRest(lives.world, (ms) => lives.advance(ms));
  for (const [name, versions] of model) expect(await hasContents(lives.world, name, versions)).toBe(true);
}

test.each(['unversioned', 'enabled', 'suspended'] as const)(
  '%s: the store is what the model is',
  { timeout: 60_000 + RUNS * 5000 },
  async (first) => {
    const changes = fc.array(
      first === 'unversioned'
        ? stepArbitrary
        : fc.oneof({ weight: 12, arbitrary: stepArbitrary }, setArbitrary),
      {
        minLength: 5,
        maxLength: STEPS_MAX,
        size: 'max',
      },
    );
    await fc.assert(
      fc.asyncProperty(changes, (steps) => check(steps, first)),
      { numRuns: RUNS },
    );
  },
);

// MOVE of keys and prefixes against a model, in all states of versioning; then what no model meets.
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { beginMove, DRIVER, driveJob, moveCalls } from '../../../tests/support/metadata/drive-job.ts';
import {
  BUCKET,
  type BUCKET_NAME,
  etagOf,
  type MetadataShards,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { inSlices } from '../../../tests/support/run/in-slices.ts';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import { compareBytes, utf8 } from '../../base/bytes/bytes.ts';
import type { CommandOf } from '../../ports/metadata/port.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BlobId, ObjectKey } from '../../types/names.ts';
import { driveMove } from './drive-move.ts';
import { planPrefixMove } from './plan-prefix-move.ts';

const RUNS = amountOf({ short: 100, long: 3000 });
const STEP_RUNS = amountOf({ short: 60, long: 2000 });

type Versioning = 'unversioned' | 'enabled' | 'suspended';

interface ModelVersion {
  id: string;
  isMarker: boolean;
  blobId?: BlobId;
}

type Step =
  | { kind: 'set'; versioning: 'enabled' | 'suspended' }
  | { kind: 'put'; key: string }
  | { kind: 'delete'; key: string }
  | { kind: 'move'; from: string; to: string; overwrites: boolean }
  | { kind: 'prefix'; from: string; to: string; overwrites: boolean };

const KEYS = ['a', 'a/', 'a/a', 'a/b', 'a/a/a', 'b', 'b/a', 'ba'];
const PREFIXES = ['a', 'a/', 'a/a', 'b', 'b/'];

class Model {
  versioning: Versioning = 'unversioned';
  readonly keys = new Map<string, ModelVersion[]>();

  of(key: string): ModelVersion[] {
    return this.keys.get(key) ?? [];
  }

  write(key: string, version: ModelVersion): void {
    const others = this.of(key).filter(({ id }) => version.id !== 'null' || id !== 'null');
    this.keys.set(key, [version, ...others]);
  }

  /** The number of versions that moved, or why none did. */
  move(from: string, to: string, overwrites: boolean): number | 'no-such-key' | 'exists' {
    const [source, target] = [this.of(from), this.of(to)];
    if (source.length === 0) return 'no-such-key';
    if (target[0] !== undefined && !target[0].isMarker && !overwrites) return 'exists';
    const bringsNull = source.some(({ id }) => id === 'null');
    const replaced = bringsNull ? target.find(({ id }) => id === 'null') : undefined;
    // Where versions are kept, no write takes a null version away.
    const mayReplace = overwrites && this.versioning !== 'enabled';
    if (replaced !== undefined && !replaced.isMarker && !mayReplace) return 'exists';
    this.keys.set(to, [...source, ...target.filter((version) => version !== replaced)]);
    this.keys.delete(from);
    return source.length;
  }

  /** One key after the other, in the order of the walk. */
  movePrefix(from: string, to: string, overwrites: boolean): { movedCount: number; errors: string[] } {
    let movedCount = 0;
    const errors: string[] = [];
    for (const { gte, lt, reverse } of planPrefixMove(from, to)) {
      const inLeg = [...this.keys.keys()]
        .filter((key) => this.of(key).length > 0)
        .filter((key) => compareBytes(utf8(key), gte) >= 0 && compareBytes(utf8(key), lt) < 0)
        .sort();
      for (const key of reverse ? inLeg.reverse() : inLeg) {
        const result = this.move(key, to + key.slice(from.length), overwrites);
        if (typeof result === 'number') movedCount += result;
        else errors.push(key);
      }
    }
    return { movedCount, errors };
  }

  all(): { key: string; id: string; isLatest: boolean }[] {
    const keys = [...this.keys.keys()].sort();
    return keys.flatMap((key) => this.of(key).map(({ id }, at) => ({ key, id, isLatest: at === 0 })));
  }
}

async function apply(world: MetadataShards, model: Model, step: Step, blobIds: BlobId[]): Promise<void> {
  if (step.kind === 'set') {
    model.versioning = step.versioning;
    await world.execute('set-bucket-config', {
      bucketId: BUCKET,
      kind: 'versioning',
      document: { status: step.versioning },
    });
  } else if (step.kind === 'put') {
    const data = world.newData();
    const blobId = data.uses[0]?.blobId as BlobId;
    blobIds.push(blobId);
    const outcome = await world.put(step.key, { data });
    if (outcome.kind !== 'committed') throw new Error(outcome.kind);
    model.write(step.key, { id: outcome.versionId, isMarker: false, blobId });
  } else if (step.kind === 'delete') {
    const outcome = await world.remove(step.key);
    if (outcome.kind !== 'deleted') throw new Error(outcome.kind);
    if (model.versioning === 'unversioned') model.keys.delete(step.key);
    else model.write(step.key, { id: outcome.versionId ?? '', isMarker: true });
  } else if (step.kind === 'move') {
    const { from, to, overwrites } = step;
    if (from === to) return;
    const ids = model.of(from).map(({ id }) => id);
    const expected = model.move(from, to, overwrites);
    const move = { from: from as ObjectKey, to };
    const outcome = await world.execute('move-key', { bucketId: BUCKET, move, overwrites });
    if (
      'result' in outcome &&
      !Array.isArray(outcome.result) &&
      outcome.result.kind === 'too-many-versions'
    ) {
      const moved = await moveInSteps(world, { move, overwrites });
      expect(moved).toEqual(typeof expected === 'number' ? new Set(ids) : expected);
      return;
    }
    const result = typeof expected === 'number' ? ids : { kind: expected };
    expect(outcome).toEqual({ kind: 'moved-key', versioning: model.versioning, result });
  } else {
    const { from, to, overwrites } = step;
    if (from === to) return;
    const expected = model.movePrefix(from, to, overwrites);
    const job = await beginMove(world, { from, to, overwrites });
    for await (const _ of driveMove(moveCalls(world, job), job)) await expectWhole(world);
    const ended = (await moveCalls(world, job).findJob())?.job;
    expect(ended).toMatchObject({ movedCount: expected.movedCount, errorCount: expected.errors.length });
    expect(ended?.errors.map(({ sourceKey }) => sourceKey)).toEqual(expected.errors);
  }
}

/** Each version is under one key, and fsck finds nothing, while a key is renamed in several entries too. */
async function expectWhole(world: MetadataShards): Promise<void> {
  const { versions } = await world.query('list-versions', { bucketId: BUCKET, prefix: '', max: 1000 });
  const named = versions.filter(({ versionId }) => versionId !== 'null').map(({ versionId }) => versionId);
  expect(new Set(named).size).toBe(named.length);
  for (const table of ['objects', 'versionIds', 'jobs', 'openJobs'] as const) {
    const { findings } = await world.query('check-rows', { table, keyIds: ['k1'], limit: 1000 });
    expect(findings).toEqual([]);
  }
}

/** The ids of what has moved, or why nothing has. */
async function moveInSteps(
  world: MetadataShards,
  { move, overwrites }: Pick<CommandOf<'begin-key-move'>, 'move' | 'overwrites'>,
): Promise<Set<string> | string> {
  const begun = await world.execute('begin-key-move', { bucketId: BUCKET, move, overwrites, driver: DRIVER });
  if (begun.kind === 'refused') return begun.result.kind;
  if (begun.kind !== 'begun') throw new Error(begun.kind);
  const ids: string[] = [...begun.result];
  await expectWhole(world);
  const { job } = begun;
  for await (const step of driveMove(moveCalls(world, job), job)) {
    for (const { result } of step.moved) ids.push(...(result as string[]));
    await expectWhole(world);
  }
  const ended = (await moveCalls(world, job).findJob())?.job;
  expect(ended).toMatchObject({ movedCount: ids.length, endedAtMs: expect.any(Number) });
  expect(ended).not.toHaveProperty('within');
  return new Set(ids);
}

async function check(steps: readonly Step[]): Promise<void> {
  const world = await openMetadata();
  await world.createBucket();
  const model = new Model();
  const blobIds: BlobId[] = [];
  for (const step of steps) await apply(world, model, step, blobIds);

  const { versions } = await world.query('list-versions', { bucketId: BUCKET, prefix: '', max: 1000 });
  expect(versions.map(({ key, versionId, isLatest }) => ({ key, id: versionId, isLatest }))).toEqual(
    model.all(),
  );
  const orders = Map.groupBy(versions, ({ key }) => key);
  for (const ofKey of orders.values()) {
    const descending = ofKey.map(({ summary }) => summary.order);
    expect(new Set(descending).size).toBe(descending.length);
    expect(descending).toEqual([...descending].sort((a, b) => b - a));
  }
  // Data lives as long as a version of it, under whatever key.
  await world.markUnlinked();
  const linked = new Set([...model.keys.values()].flat().map(({ blobId }) => blobId));
  expect(await world.stateOf(...blobIds)).toEqual(
    blobIds.map((blobId) => (linked.has(blobId) ? 'live' : 'condemned')),
  );
  const objectCount = [...model.keys.values()].flat().filter(({ isMarker }) => !isMarker).length;
  expect(await world.query('count-usage', {})).toMatchObject({ objectCount, sizeBytes: 10 * objectCount });
  const scan = { keyIds: ['k1'], limit: 1000 };
  for (const table of ['objects', 'versionIds', 'jobs', 'openJobs'] as const) {
    expect((await world.query('check-rows', { table, ...scan })).findings).toEqual([]);
  }
}

type MoveLimits = Pick<typeof LIMITS, 'moveVersionsMax' | 'moveStepVersionsMax'>;

async function withLimits(
  changed: Record<keyof MoveLimits, number>,
  act: () => Promise<void>,
): Promise<void> {
  const { moveVersionsMax, moveStepVersionsMax } = LIMITS;
  Object.assign(LIMITS, changed);
  try {
    await act();
  } finally {
    Object.assign(LIMITS, { moveVersionsMax, moveStepVersionsMax });
  }
}

const key = fc.constantFrom(...KEYS);
const prefix = fc.constantFrom(...PREFIXES);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('put' as const), key }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('delete' as const), key }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('set' as const),
      versioning: fc.constantFrom('enabled' as const, 'suspended' as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('move' as const),
      from: key,
      to: key,
      overwrites: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('prefix' as const),
      from: prefix,
      to: prefix,
      overwrites: fc.boolean(),
    }),
  },
);

test('after any moves versions, data and counts equal those of the model', async () => {
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 30 }), check), { numRuns: RUNS });
});

test('also where a key takes an entry for each of its versions', async () => {
  await withLimits({ moveVersionsMax: 1, moveStepVersionsMax: 1 }, () =>
    fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 30 }), check), { numRuns: STEP_RUNS }),
  );
});

test('a key that moves in several entries and stays under its prefix is moved once', async () => {
  const steps: Step[] = [
    { kind: 'set', versioning: 'enabled' },
    { kind: 'put', key: 'a/a' },
    { kind: 'delete', key: 'a/a' },
    { kind: 'prefix', from: 'a', to: 'a/a', overwrites: false },
  ];
  await withLimits({ moveVersionsMax: 1, moveStepVersionsMax: 1 }, () => check(steps));
});

describe('one key', () => {
  let world: MetadataShards;
  beforeEach(async () => {
    world = await openMetadata();
    await world.createBucket();
  });

  const moved = (from: string, to: string, more: Partial<CommandOf<'move-key'>> = {}) => ({
    bucketId: BUCKET,
    move: { from: from as ObjectKey, to },
    overwrites: false,
    ...more,
  });

  test('keeps its time and its ETag', async () => {
    await world.put('a');
    const before = await world.query('get-version', {
      bucketId: BUCKET,
      key: 'a' as ObjectKey,
      includeBody: false,
    });
    world.clock.advance(60_000);
    await world.execute('move-key', moved('a', 'b'));
    const after = await world.query('get-version', {
      bucketId: BUCKET,
      key: 'b' as ObjectKey,
      includeBody: false,
    });
    expect(after).toEqual(before);
  });

  test('repeated under its request id, it is done once', async () => {
    await world.put('a');
    const envelope = { shard: 0, requestId: 'r1' };
    const first = await world.shards.execute(envelope, 'move-key', moved('a', 'b'));
    await world.put('a');
    const again = await world.shards.execute({ ...envelope, isRetry: true }, 'move-key', moved('a', 'b'));
    expect(again).toMatchObject({ kind: 'done', value: (first as { value: unknown }).value });
    expect(await world.versions()).toEqual(['a null*', 'b null*']);
  });

  test('under a token the first outcome is returned again; a refusal leaves nothing', async () => {
    const token = { token: 't', digest: 'd' };
    const refused = await world.execute('move-key', moved('a', 'b', { token }));
    expect(refused).toMatchObject({ result: { kind: 'no-such-key' } });
    await world.put('a');
    const first = await world.execute('move-key', moved('a', 'b', { token }));
    expect(await world.execute('move-key', moved('a', 'b', { token }))).toEqual(first);
    const other = { token: 't', digest: 'other' };
    expect(await world.execute('move-key', moved('a', 'b', { token: other }))).toEqual({
      kind: 'token-reused',
    });
  });

  test('conditions on both ends', async () => {
    await world.put('a', { etag: etagOf('1') });
    await world.put('b', { etag: etagOf('2') });
    const result = async (more: object) => {
      const move = { from: 'a' as ObjectKey, to: 'b', ...more };
      const command = { bucketId: BUCKET, move, overwrites: true };
      return (await world.execute('move-key', command)) as { result: unknown };
    };
    const wrong = { ifMatch: [etagOf('3')] };
    expect((await result({ sourceConditions: wrong })).result).toMatchObject({ kind: 'source-condition' });
    expect((await result({ targetConditions: wrong })).result).toMatchObject({ kind: 'target-condition' });
    const right = {
      sourceConditions: { ifMatch: [etagOf('1')] },
      targetConditions: { ifMatch: [etagOf('2')] },
    };
    expect((await result(right)).result).toEqual(['null']);
  });

  test('a null version is not lost where versions are kept; a marker that is null is replaced', async () => {
    await world.put('a');
    await world.put('b');
    await world.execute('set-bucket-config', {
      bucketId: BUCKET,
      kind: 'versioning',
      document: { status: 'enabled' },
    });
    await world.remove('b');
    expect(await world.execute('move-key', moved('a', 'b'))).toMatchObject({ result: { kind: 'exists' } });
    const overwriting = moved('a', 'b', { overwrites: true });
    expect(await world.execute('move-key', overwriting)).toMatchObject({ result: { kind: 'exists' } });
    expect(await world.versions()).toEqual(['a null*', 'b v2*-', 'b null']);
    const setVersioning = (status: 'enabled' | 'suspended') =>
      world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'versioning', document: { status } });
    await setVersioning('suspended');
    await world.remove('b');
    await setVersioning('enabled');
    expect(await world.execute('move-key', moved('a', 'b'))).toMatchObject({ result: ['null'] });
    expect(await world.versions()).toEqual(['b null*', 'b v2-']);
  });

  describe('of many versions', () => {
    const tooMany = { kind: 'moved-key', versioning: 'enabled', result: { kind: 'too-many-versions' } };
    beforeEach(() =>
      world.execute('set-bucket-config', {
        bucketId: BUCKET,
        kind: 'versioning',
        document: { status: 'enabled' },
      }),
    );
    const usage = () => world.query('count-usage', {});

    /** Its versions in their order, and how many entries a prefix that is the key takes for them. */
    async function expectSteps(key: string, versionCount: number): Promise<number> {
      const before = await usage();
      expect(before.objectCount).toBe(versionCount);
      expect(await world.execute('move-key', moved(key, 'elsewhere'))).toEqual(tooMany);
      const idsOf = async (prefix: string) => {
        const page = { bucketId: BUCKET, prefix, max: 2 * LIMITS.moveVersionsMax };
        return (await world.query('list-versions', page)).versions.map(({ versionId }) => versionId);
      };
      const ids = await idsOf(key);
      const job = await beginMove(world, { from: key, to: 'elsewhere' });
      const { steps, ended } = await driveJob(world, job);
      expect(ended).toMatchObject({ movedCount: versionCount, errorCount: 0 });
      expect(await usage()).toEqual(before);
      expect(await idsOf('elsewhere')).toEqual(ids);
      expect(await idsOf(key)).toEqual([]);
      return steps.filter(({ moved }) => moved.length > 0).length;
    }

    test(`${LIMITS.moveVersionsMax} of them move at once; with one more they move in several entries`, async () => {
      await inSlices(LIMITS.moveVersionsMax, () => world.put('a'));
      const outcome = await world.execute('move-key', moved('a', 'b'));
      if (outcome.kind !== 'moved-key' || !Array.isArray(outcome.result)) throw new Error(outcome.kind);
      expect(new Set(outcome.result).size).toBe(LIMITS.moveVersionsMax);
      expect(await world.execute('move-key', moved('a', 'b'))).toMatchObject({
        result: { kind: 'no-such-key' },
      });
      await world.put('b');
      const stepCount = await expectSteps('b', LIMITS.moveVersionsMax + 1);
      // The first one is for the latest version.
      expect(stepCount).toBe(1 + LIMITS.moveVersionsMax / LIMITS.moveStepVersionsMax);
    });

    test(`versions with ${LIMITS.moveKeyBytesMax / 1024 / 1024} MiB of metadata move in entries of ${LIMITS.moveBytesMax / 1024 / 1024} MiB`, async () => {
      const count = 31;
      const sealedHeaders = new Uint8Array(LIMITS.moveKeyBytesMax / (count + 1));
      // The latest is not counted.
      for (let at = 0; at <= count; at++) await world.put('a', { version: { sealedHeaders } });
      expect(await world.execute('move-key', moved('a', 'b'))).toMatchObject({
        result: { length: count + 1 },
      });
      await world.put('b', { version: { sealedHeaders } });
      expect(await expectSteps('b', count + 2)).toBe(1 + LIMITS.moveKeyBytesMax / LIMITS.moveBytesMax);
    });
  });

  test('R45: a bucket under another name is not moved in', async () => {
    await world.put('a');
    const bucket = { bucketId: BUCKET, name: 'other' as typeof BUCKET_NAME, cfgVersion: 1 };
    const reply = await world.shards.execute({ shard: 0, bucket }, 'move-key', moved('a', 'b'));
    expect(reply.kind).toBe('stale-bucket');
  });
});

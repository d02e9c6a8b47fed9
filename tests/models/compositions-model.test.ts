// PUT, append, compose, copy, copy onto itself and delete by chance, in an unversioned, a versioned and a suspended bucket of
// several shards, with folding behind them: contents always equal the model, and fsck finds nothing, neither on the way nor
// when all is deleted.
import { expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import type { BucketTarget } from '../../src/objects/object-store.ts';
import { AppError } from '../../src/types/errors.ts';
import type { ObjectKey } from '../../src/types/names.ts';
import { countOriginals } from '../../src/types/originals.ts';
import { type FsckWorld, openFsckWorld } from '../support/fsck/fsck-world.ts';
import { OWNER } from '../support/metadata/metadata-shards.ts';
import { INLINE_BYTES_MAX, sourceOf } from '../support/objects/object-world.ts';
import { createSeededRandom } from '../support/run/simulated.ts';

const KEYS = ['a', 'b'];
const STEPS = 400;
const SIZES = [0, 1, 100, 1000, INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1, 600_000];
const VERSIONING = [undefined, 'enabled', 'suspended'] as const;

class Model {
  readonly #world: FsckWorld;
  readonly #buckets: BucketTarget[];
  readonly #contents = new Map<string, Buffer>();
  readonly #random: ReturnType<typeof createSeededRandom>;

  constructor(world: FsckWorld, buckets: BucketTarget[], seed: number) {
    this.#world = world;
    this.#buckets = buckets;
    this.#random = createSeededRandom(seed);
  }

  #pick<T>(all: readonly T[]): T {
    return must(all[(this.#random.bytes(1)[0] ?? 0) % all.length], 'one of them');
  }

  #body(): Buffer {
    const sizeBytes = this.#pick(SIZES);
    return Buffer.alloc(sizeBytes, Buffer.from(this.#random.bytes(7)));
  }

  async step(): Promise<void> {
    const bucket = this.#pick(this.#buckets);
    const key = this.#pick(KEYS);
    const appends = Array<'append'>(40).fill('append');
    const kinds = ['put', ...appends, 'compose', 'copy', 'recommit', 'delete'] as const;
    switch (this.#pick(kinds)) {
      case 'put':
        return this.#put(bucket, key);
      case 'append':
        return this.#append(bucket, key);
      case 'compose':
        return this.#compose(bucket, key);
      case 'copy':
        return this.#copy(bucket, key, { from: this.#pick(this.#buckets), source: this.#pick(KEYS) });
      case 'recommit':
        return this.#copy(bucket, key, { from: bucket, source: key });
      case 'delete':
        return this.#delete(bucket, key);
    }
  }

  async #put(bucket: BucketTarget, key: string): Promise<void> {
    const body = this.#body();
    await this.#world.put(key, body, { bucket });
    this.#contents.set(idOf(bucket, key), body);
  }

  async #append(bucket: BucketTarget, key: string): Promise<void> {
    const { calls, store } = this.#world;
    const before = this.#contents.get(idOf(bucket, key));
    const body = this.#body();
    const { signal } = new AbortController();
    const input = { calls, bucket, key: key as ObjectKey, body: sourceOf(body), signal };
    const written = await store.appendObject(input).catch(unlessAbsent);
    expect(written === undefined, 'NoSuchKey').toBe(before === undefined);
    if (before !== undefined) this.#contents.set(idOf(bucket, key), Buffer.concat([before, body]));
  }

  async #compose(bucket: BucketTarget, key: string): Promise<void> {
    const names = [this.#pick(KEYS), this.#pick(KEYS), key].filter((name) =>
      this.#contents.has(idOf(bucket, name)),
    );
    if (names.length === 0) return;
    const components = await Promise.all(
      names.map(async (name) => ({
        bucket,
        key: name as ObjectKey,
        found: await this.#world.find(name, { bucket }),
      })),
    );
    const { calls, store } = this.#world;
    const input = { calls, components, bucket, key: key as ObjectKey, owner: OWNER };
    const originals = components
      .map(({ found }) => countOriginals(found.version.originals))
      .reduce((sum, count) => sum + count, 0);
    const written = await store.composeObject(input).catch((error) => {
      if (originals > 32 && error instanceof AppError && error.code === 'InvalidRequest') return undefined;
      throw error;
    });
    if (written === undefined) return;
    const bodies = names.map((name) => must(this.#contents.get(idOf(bucket, name)), 'it is there'));
    this.#contents.set(idOf(bucket, key), Buffer.concat(bodies));
  }

  async #copy(
    bucket: BucketTarget,
    key: string,
    { from, source }: { from: BucketTarget; source: string },
  ): Promise<void> {
    const body = this.#contents.get(idOf(from, source));
    if (body === undefined) return;
    await this.#world.copy(source, key, { fromBucket: from, bucket });
    this.#contents.set(idOf(bucket, key), body);
  }

  async #delete(bucket: BucketTarget, key: string): Promise<void> {
    const { bucketId } = bucket.believed;
    const items = [{ key: key as ObjectKey }];
    await this.#world.metadata.execute(
      'delete-versions',
      { bucketId, owner: OWNER, items },
      bucket.homeShard,
    );
    this.#contents.delete(idOf(bucket, key));
  }

  /** Contents, and all that is stored. */
  async check(when: string): Promise<void> {
    for (const bucket of this.#buckets) {
      for (const key of KEYS) {
        const expected = this.#contents.get(idOf(bucket, key));
        if (expected === undefined) continue;
        const got = await this.#world.get(key, { bucket });
        expect(got.equals(expected), `${idOf(bucket, key)} ${when}`).toBe(true);
      }
    }
    await this.#world.store.compactionIdle();
    for (const { homeShard } of this.#buckets) await this.#world.metadata.markUnlinked(homeShard);
    expect((await this.#world.fsck()).findings, when).toEqual([]);
  }

  /** Every version of every key. */
  async deleteAll(): Promise<void> {
    const { metadata } = this.#world;
    for (const { believed, homeShard } of this.#buckets) {
      const { bucketId } = believed;
      const asked = { bucketId, prefix: '', max: 1000 };
      const { versions } = await metadata.query('list-versions', asked, homeShard);
      const items = versions.map(({ key, versionId }) => ({ key, versionId }));
      await metadata.execute('delete-versions', { bucketId, owner: OWNER, items }, homeShard);
    }
    this.#contents.clear();
  }
}

function idOf({ believed }: BucketTarget, key: string): string {
  return `${believed.name}/${key}`;
}

function unlessAbsent(error: unknown): undefined {
  if (error instanceof AppError && error.code === 'NoSuchKey') return undefined;
  throw error;
}

test.each([1, 2, 3])('seed %i', { timeout: 60_000 }, async (seed) => {
  const world = await openFsckWorld({ isEmpty: true });
  const buckets: BucketTarget[] = [];
  for (const [shard, versioning] of VERSIONING.entries()) {
    const bucket = world.bucket(shard);
    const { bucketId } = bucket.believed;
    if (versioning === undefined) buckets.push(bucket);
    else {
      const outcome = await world.metadata.execute(
        'set-bucket-config',
        { bucketId, kind: 'versioning', document: { status: versioning } },
        shard,
      );
      if (outcome.kind !== 'changed') throw new Error(outcome.kind);
      const { cfgVersion } = outcome.bucket;
      buckets.push({ ...bucket, believed: { ...bucket.believed, cfgVersion } });
    }
  }
  const model = new Model(world, buckets, seed);
  for (let step = 1; step <= STEPS; step++) {
    await model.step();
    if (step % 50 === 0) await model.check(`after step ${step}`);
  }
  await model.deleteAll();
  for (let round = 0; round < 2; round++) await model.check('when all is deleted');
});

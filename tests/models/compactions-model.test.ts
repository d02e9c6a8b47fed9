// Objects that grow by many appends, one right behind the other, while what they consist of is folded; read, copied, composed
// and deleted in between, in each versioning state: how much data is at rest in the end has a bound, whatever the order was, and
// contents are the model's.
import { expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import type { BucketTarget } from '../../src/objects/object-store.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { NULL_VERSION, type ObjectKey, type VersionId } from '../../src/types/names.ts';
import { type FsckWorld, openFsckWorld } from '../support/fsck/fsck-world.ts';
import { OWNER } from '../support/metadata/metadata-shards.ts';
import { append } from '../support/objects/appends.ts';
import { dataAtRest } from '../support/objects/data-at-rest.ts';
import { INLINE_BYTES_MAX, readAll } from '../support/objects/object-world.ts';
import { amountOf } from '../support/run/long-form.ts';
import { createSeededRandom } from '../support/run/simulated.ts';

/** In each state of versioning. */
const SEED_COUNT = amountOf({ short: 1, long: 10 });
const KEYS = ['a', 'b'];
const STEPS = 16;
const BURST_MAX = 70;
/** Some come into a blob of several pieces, others have one of their own. */
const SIZES = [10, 700, INLINE_BYTES_MAX + 1];
/** How often a byte is written again at most, of as few and as small pieces: tier by tier, and now and then for a reader. */
const COMPACTIONS_MAX = 2;
/** Of the versions that appends make so many are kept in mind, to be read in the end. */
const SAMPLED = 7;
/** Each looks at so many links that have ended. */
const MARK_ROUNDS = 60;

/** An object, from where it was put, copied or composed on: all of its versions have data in common. */
interface Grown {
  bytes: Buffer;
}

interface Sample {
  key: string;
  versionId: VersionId;
  grown: Grown;
  sizeBytes: number;
}

class Model {
  readonly #world: FsckWorld;
  readonly #random: ReturnType<typeof createSeededRandom>;
  readonly #current = new Map<string, Grown>();
  readonly #all: Grown[] = [];
  readonly #samples: Sample[] = [];
  #bucket: BucketTarget;

  constructor(world: FsckWorld, seed: number) {
    this.#world = world;
    this.#bucket = world.bucket();
    this.#random = createSeededRandom(seed);
  }

  async setVersioning(versioning: 'enabled' | 'suspended'): Promise<void> {
    const { bucketId } = this.#bucket.believed;
    const outcome = await this.#world.metadata.execute('set-bucket-config', {
      bucketId,
      kind: 'versioning',
      document: { status: versioning },
    });
    if (outcome.kind !== 'changed') throw new Error(outcome.kind);
    const { cfgVersion } = outcome.bucket;
    this.#bucket = { ...this.#bucket, believed: { ...this.#bucket.believed, cfgVersion } };
  }

  async step(): Promise<void> {
    const [key, other] = [this.#pick(KEYS), this.#pick(KEYS)];
    const drawn = this.#below(100);
    if (!this.#current.has(key) || drawn < 6) await this.#put(key);
    else if (drawn < 60) await this.#appendMany(key);
    else if (drawn < 75) await this.#compare(key);
    else if (drawn < 85) await this.#copy(other, key);
    else if (drawn < 93) await this.#compose(key, other);
    else await this.#deleteOne(key);
  }

  /** The current objects, and what is left of older versions. */
  async compareAll(): Promise<void> {
    for (const key of this.#current.keys()) await this.#compare(key);
    const { calls, store } = this.#world;
    const bucket = this.#bucket;
    for (const { key, versionId, grown, sizeBytes } of this.#samples) {
      const found = await this.#world.find(key, { bucket, versionId }).catch(() => undefined);
      if (found === undefined) continue;
      const opened = await store.openObject({
        calls,
        bucket,
        key: key as ObjectKey,
        found,
        signal: new AbortController().signal,
        range: { offsetBytes: 0, sizeBytes },
      });
      const bytes = opened.kind === 'bytes' ? opened.bytes : await readAll(opened.stream);
      expect(bytes.equals(grown.bytes.subarray(0, sizeBytes)), `${key} ${versionId}`).toBe(true);
    }
  }

  /** Of what there is now, and of all that there ever was. */
  sizes(): { currentBytes: number; everBytes: number } {
    const sum = (all: Iterable<Grown>) => [...all].reduce((bytes, one) => bytes + one.bytes.length, 0);
    return { currentBytes: sum(this.#current.values()), everBytes: sum(this.#all) };
  }

  async #put(key: string): Promise<void> {
    const bytes = this.#body();
    await this.#world.put(key, bytes, { bucket: this.#bucket });
    this.#begin(key, bytes);
  }

  async #appendMany(key: string): Promise<void> {
    const grown = must(this.#current.get(key), 'it was put');
    const pieces: Buffer[] = [];
    const sizes = this.#below(3) === 0 ? SIZES : [this.#pick(SIZES)];
    for (let left = this.#below(BURST_MAX); left >= 0; left--) {
      const piece = Buffer.from(this.#random.bytes(this.#pick(sizes)));
      const { versionId, sizeBytes } = await append(this.#world, key, piece, { bucket: this.#bucket });
      pieces.push(piece);
      if (versionId !== NULL_VERSION && pieces.length % SAMPLED === 0)
        this.#samples.push({ key, versionId, grown, sizeBytes });
    }
    grown.bytes = Buffer.concat([grown.bytes, ...pieces]);
  }

  async #copy(from: string, to: string): Promise<void> {
    const bytes = this.#current.get(from)?.bytes;
    if (bytes === undefined) return;
    const bucket = this.#bucket;
    await this.#world.copy(from, to, { fromBucket: bucket, bucket });
    // Onto itself it goes on with the same data.
    if (from !== to) this.#begin(to, bytes);
  }

  async #compose(key: string, other: string): Promise<void> {
    const bodies = [key, other].map((name) => this.#current.get(name)?.bytes);
    if (bodies.includes(undefined)) return;
    const bucket = this.#bucket;
    const components = [];
    for (const name of [key, other])
      components.push({ bucket, key: name as ObjectKey, found: await this.#world.find(name, { bucket }) });
    const { store, calls } = this.#world;
    const target = { bucket, key: key as ObjectKey, owner: OWNER };
    // Of more originals than may be, as most are: then nothing is changed.
    const isDone = await store.composeObject({ calls, ...target, components }).then(
      () => true,
      (error) => {
        if (error.code === 'InvalidRequest') return false;
        throw error;
      },
    );
    if (isDone) this.#begin(key, Buffer.concat(bodies as Buffer[]));
  }

  /** One of the older versions, where there are some. */
  async #deleteOne(key: string): Promise<void> {
    const { bucketId } = this.#bucket.believed;
    const { versions } = await this.#world.metadata.query('list-versions', {
      bucketId,
      prefix: key,
      max: 1000,
    });
    const older = versions.filter(({ isLatest }) => !isLatest);
    if (older.length === 0) return;
    const { versionId } = this.#pick(older);
    const items = [{ key: key as ObjectKey, versionId }];
    await this.#world.metadata.execute('delete-versions', { bucketId, owner: OWNER, items });
  }

  async #compare(key: string): Promise<void> {
    const got = await this.#world.get(key, { bucket: this.#bucket });
    expect(got.equals(this.#current.get(key)?.bytes ?? Buffer.alloc(0)), key).toBe(true);
  }

  #begin(key: string, bytes: Buffer): void {
    const grown = { bytes };
    this.#current.set(key, grown);
    this.#all.push(grown);
  }

  #body(): Buffer {
    return Buffer.from(this.#random.bytes(this.#pick(SIZES)));
  }

  #pick<T>(all: readonly T[]): T {
    return all[this.#below(all.length)] as T;
  }

  #below(end: number): number {
    return Buffer.from(this.#random.bytes(4)).readUInt32BE() % end;
  }
}

const CASES = (['unversioned', 'enabled', 'suspended'] as const).flatMap((versioning) =>
  Array.from({ length: SEED_COUNT }, (_, at) => ({ versioning, seed: at + 1 })),
);

test.each(CASES)('$versioning, seed $seed', { timeout: 60_000 }, async ({ versioning, seed }) => {
  const world = await openFsckWorld({ isEmpty: true });
  const model = new Model(world, seed);
  const isVersioned = versioning !== 'unversioned';
  if (isVersioned) await model.setVersioning('enabled');
  for (let step = 0; step < STEPS; step++) {
    if (step === STEPS / 2 && versioning === 'suspended') await model.setVersioning('suspended');
    await model.step();
  }
  await model.compareAll();
  await world.store.compactionIdle();
  for (let round = 0; round < MARK_ROUNDS; round++) await world.metadata.markUnlinked();
  const { sizeBytes } = await dataAtRest(world.metadata);
  const { currentBytes, everBytes } = model.sizes();
  // Of a blob of pieces a copy may have the beginning alone.
  const spareBytes = KEYS.length * LIMITS.grownBlobBytesMax;
  if (isVersioned) expect(sizeBytes).toBeLessThan((1 + COMPACTIONS_MAX) * everBytes);
  else expect(sizeBytes).toBeLessThanOrEqual(currentBytes + spareBytes);
  await model.compareAll();
  expect((await world.fsck()).findings).toEqual([]);
});

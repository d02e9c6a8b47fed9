// Small objects of two shards that are put, appended to, copied and composed by chance, with folding and condemning in between:
// each has the bytes that a model of it has, and fsck, which reads all, finds nothing.
import { expect, test } from 'vitest';
import type { ObjectKey } from '../../src/types/names.ts';
import { type FsckWorld, openFsckWorld } from '../support/fsck/fsck-world.ts';
import { OWNER } from '../support/metadata/metadata-shards.ts';
import { append } from '../support/objects/appends.ts';
import { codeOf } from '../support/objects/object-world.ts';
import { createSeededRandom } from '../support/run/simulated.ts';

const STEPS = 220;
const NAMES = [0, 1].flatMap((shard) => ['a', 'b', 'c', 'd', 'e'].map((key) => ({ shard, key })));

type Name = (typeof NAMES)[number];

class Model {
  readonly #world: FsckWorld;
  readonly #random: ReturnType<typeof createSeededRandom>;
  readonly #bytes = new Map<Name, Buffer>();

  constructor(world: FsckWorld, seed: number) {
    this.#world = world;
    this.#random = createSeededRandom(seed);
  }

  async step(): Promise<void> {
    const [name, other] = [this.#pick(), this.#pick()];
    const drawn = this.#below(100);
    if (!this.#bytes.has(name) || drawn < 5) await this.#put(name);
    else if (drawn < 60) await this.#append(name);
    else if (drawn < 75) await this.#copy(other, name);
    else if (drawn < 90) await this.#compose(name, other);
    else if (drawn < 95) await this.#compare(name);
    else await this.markUnlinked();
  }

  async markUnlinked(): Promise<void> {
    for (const shard of [0, 1, 2]) await this.#world.metadata.markUnlinked(shard);
  }

  async compareAll(): Promise<void> {
    for (const name of this.#bytes.keys()) await this.#compare(name);
  }

  async #put(name: Name): Promise<void> {
    const body = this.#body(20);
    await this.#world.put(name.key, body, { bucket: this.#bucket(name) });
    this.#bytes.set(name, body);
  }

  async #append(name: Name): Promise<void> {
    const drawn = this.#below(24);
    // Now and then one that is large enough for a blob of its own, or fills one that grows.
    const body = this.#body(drawn < 2 ? 18_000 : drawn < 4 ? 9000 : 40);
    await append(this.#world, name.key, body, { bucket: this.#bucket(name) });
    this.#bytes.set(name, Buffer.concat([this.#bytes.get(name) ?? body, body]));
  }

  async #copy(from: Name, to: Name): Promise<void> {
    const bytes = this.#bytes.get(from);
    if (bytes === undefined) return;
    await this.#world.copy(from.key, to.key, { bucket: this.#bucket(to), fromBucket: this.#bucket(from) });
    this.#bytes.set(to, bytes);
  }

  async #compose(name: Name, other: Name): Promise<void> {
    const bodies = [name, other].map((one) => this.#bytes.get(one));
    const [first, second] = bodies;
    if (first === undefined || second === undefined) return;
    const components = [];
    for (const one of [name, other]) {
      const bucket = this.#bucket(one);
      components.push({
        bucket,
        key: one.key as ObjectKey,
        found: await this.#world.find(one.key, { bucket }),
      });
    }
    const target = { bucket: this.#bucket(name), key: name.key as ObjectKey, owner: OWNER };
    const { store, calls } = this.#world;
    const code = await codeOf(store.composeObject({ calls, ...target, components }));
    // Of more originals than may be.
    if (code === 'InvalidRequest') return;
    expect(code).toBe('no error');
    this.#bytes.set(name, Buffer.concat([first, second]));
  }

  async #compare(name: Name): Promise<void> {
    const got = await this.#world.get(name.key, { bucket: this.#bucket(name) });
    expect(got.equals(this.#bytes.get(name) ?? Buffer.alloc(0)), `${name.shard}/${name.key}`).toBe(true);
  }

  #bucket({ shard }: Name) {
    return this.#world.bucket(shard);
  }

  #pick(): Name {
    return NAMES[this.#below(NAMES.length)] as Name;
  }

  #body(sizeBytesMax: number): Buffer {
    return Buffer.from(this.#random.bytes(1 + this.#below(sizeBytesMax)));
  }

  #below(end: number): number {
    return Buffer.from(this.#random.bytes(4)).readUInt32BE() % end;
  }
}

test.each([1, 2, 3, 4, 5, 6])('objects that grow from each other (%i)', async (seed) => {
  const world = await openFsckWorld({ isEmpty: true });
  const model = new Model(world, seed);
  for (let step = 0; step < STEPS; step++) await model.step();
  await world.store.compactionIdle();
  await model.markUnlinked();
  await model.compareAll();
  const { findings } = await world.fsck({ readData: true });
  expect(findings).toEqual([]);
});

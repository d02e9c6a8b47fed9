// The buckets of the links part, one in each shard. The seed says which of them keep versions, and which of those stop
// doing so, and perhaps begin again, while clients are at work.

import type { BucketTarget } from '../../src/objects/object-store.ts';
import type { BelievedBucket } from '../../src/ports/metadata/port.ts';
import { AppError } from '../../src/types/errors.ts';
import type { AccountId, BucketId, BucketName } from '../../src/types/names.ts';
import type { BucketRecord } from '../../src/types/records/rows.ts';
import type { Chance } from './chance.ts';
import type { Counts } from './counts.ts';
import { type Attempted, GatewayPool, type PartWorld } from './part.ts';
import type { ProductGateway } from './product-gateway.ts';

export const LINK_OWNER = '000000000004' as AccountId;

/** Where they are kept data stays, and what becomes of data that goes is seen less often. */
const VERSIONED_SHARE = 0.35;
const SUSPENDED_SHARE = 0.65;
const ENABLED_AGAIN_SHARE = 0.85;
const CHANGED_FROM_MS = 2000;
const CHANGED_TO_MS = 14_000;
const TRY_AGAIN_MS = 500;

const BRANCHES = {
  versioned: 'links: bucket keeps versions',
  suspended: 'links: versioning suspended',
  enabledAgain: 'links: versioning enabled again',
  stale: 'links: versioning changed under a request',
};

export const BUCKET_BRANCHES: readonly string[] = Object.values(BRANCHES);

type SetVersioning = 'enabled' | 'suspended';

interface LinkBucket {
  bucketId: BucketId;
  name: BucketName;
  keepsVersions: boolean;
  /** What its versioning becomes later on, one after the other, and when: ms from the beginning of the workload. */
  changes: { to: SetVersioning; atMs: number }[];
}

export class LinkBuckets {
  readonly #world: PartWorld;
  readonly #counts: Counts;
  readonly #pool: GatewayPool;
  readonly #buckets: readonly LinkBucket[];
  /** As gateways have them cached: a request that names an older one is refused with the newer one (R45). */
  readonly #claims: BelievedBucket[];

  constructor(world: PartWorld, chance: Chance) {
    this.#world = world;
    this.#counts = world.ground.counts;
    this.#pool = new GatewayPool(world, chance.fork('gateways'));
    this.#buckets = Array.from({ length: world.shardCount }, (_, shard) => draw(shard, chance));
    this.#claims = this.#buckets.map(({ bucketId, name }) => ({ bucketId, name, cfgVersion: 1 }));
  }

  keepsVersions(shard: number): boolean {
    return this.#of(shard).keepsVersions;
  }

  /** Some of its versions may be null versions. */
  isEverSuspended(shard: number): boolean {
    return this.#of(shard).changes.length > 0;
  }

  bucketId(shard: number): BucketId {
    return this.#of(shard).bucketId;
  }

  target(shard: number): BucketTarget {
    const believed = this.#claims[shard];
    if (believed === undefined) throw new Error(`no bucket of shard ${shard}`);
    return { homeShard: shard, believed };
  }

  /** A request has asked with settings that are not the bucket's any more: the shard's row says what they are now. */
  reauthorise(believed: BelievedBucket, row: BucketRecord | null): BelievedBucket {
    if (row === null) throw new AppError('NoSuchBucket');
    this.#counts.add(BRANCHES.stale);
    return { ...believed, cfgVersion: row.cfgVersion };
  }

  /** In a world without faults. */
  async create(): Promise<void> {
    for (const [shard, { bucketId, name, keepsVersions }] of this.#buckets.entries()) {
      const command = { bucketId, name, owner: LINK_OWNER };
      await this.#untilDone('makes a bucket', async ({ metadata }) => {
        const reply = await metadata.execute({ shard }, 'create-bucket', command);
        return reply.kind === 'done';
      });
      if (!keepsVersions) continue;
      await this.#setVersioning(shard, 'enabled');
      this.#counts.add(BRANCHES.versioned);
    }
  }

  /** While clients are at work. */
  async run(): Promise<void> {
    await Promise.all(this.#buckets.map((bucket, shard) => this.#change(bucket, shard)));
  }

  async #change({ changes }: LinkBucket, shard: number): Promise<void> {
    const { scheduler } = this.#world.ground;
    const begunMs = scheduler.nowMs;
    for (const { to, atMs } of changes) {
      await scheduler.sleep(Math.max(0, begunMs + atMs - scheduler.nowMs), 'versioning changes');
      await this.#setVersioning(shard, to);
      this.#counts.add(to === 'suspended' ? BRANCHES.suspended : BRANCHES.enabledAgain);
    }
  }

  async #setVersioning(shard: number, versioning: SetVersioning): Promise<void> {
    const { bucketId } = this.#of(shard);
    await this.#untilDone(`makes versioning ${versioning}`, async ({ metadata }) => {
      const reply = await metadata.execute({ shard }, 'set-bucket-config', {
        bucketId,
        kind: 'versioning',
        document: { status: versioning },
      });
      if (reply.kind !== 'done' || reply.value.kind !== 'changed') return false;
      const { cfgVersion } = reply.value.bucket;
      this.#claims[shard] = { ...this.target(shard).believed, cfgVersion };
      return true;
    });
  }

  async #untilDone(name: string, act: (gateway: ProductGateway) => Promise<boolean>): Promise<void> {
    for (;;) {
      const attempt: Attempted<boolean> = await this.#pool.run(await this.#pool.pick(), name, act);
      if (attempt.kind === 'done' && attempt.value) return;
      await this.#world.ground.scheduler.sleep(TRY_AGAIN_MS, `${name} again`);
    }
  }

  #of(shard: number): LinkBucket {
    const bucket = this.#buckets[shard];
    if (bucket === undefined) throw new Error(`no bucket of shard ${shard}`);
    return bucket;
  }
}

function draw(shard: number, chance: Chance): LinkBucket {
  const bucketId = `d${String(shard).padStart(15, '0')}` as BucketId;
  const changes: LinkBucket['changes'] = [];
  const keepsVersions = chance.happens(VERSIONED_SHARE);
  if (keepsVersions && chance.happens(SUSPENDED_SHARE)) {
    const atMs = chance.between(CHANGED_FROM_MS, CHANGED_TO_MS);
    changes.push({ to: 'suspended', atMs });
    if (chance.happens(ENABLED_AGAIN_SHARE))
      changes.push({ to: 'enabled', atMs: chance.between(atMs, CHANGED_TO_MS) });
  }
  return { bucketId, name: `links-${shard}` as BucketName, keepsVersions, changes };
}

// Names of buckets: gateways race to create, delete and rename few buckets of two accounts, and go away between any two
// steps; others read, by what they have cached. Checked: every answer was so at one moment (I7), a name never leads to
// two buckets (I13), and at rest nothing is under way.

import type { OperationContext, ResolvedBucket } from '../../src/gateway/s3/context.ts';
import { createBucket } from '../../src/gateway/s3/operations/bucket/create-bucket.ts';
import { deleteBucket } from '../../src/gateway/s3/operations/bucket/delete-bucket.ts';
import { presentBucket } from '../../src/gateway/s3/present-bucket.ts';
import { AppError } from '../../src/model/errors.ts';
import type { AccountId, BucketId, BucketName } from '../../src/model/names.ts';
import type { AccountRecord } from '../../src/model/records/rows.ts';
import type { MetadataCalls } from '../../src/objects/object-store.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../../src/ports/metadata.ts';
import type { Chance } from './chance.ts';
import { NameHistory, type NameMoment } from './name-history.ts';
import { GatewayPool, type Part, type PartWorld } from './part.ts';
import type { ProductGateway } from './product-gateway.ts';
import type { ReplicaWatch } from './replica-watch.ts';
import { SimulationFailure } from './scheduler.ts';

const CLIENT_COUNT = 4;
const OPERATIONS_OF_CLIENT = 16;
const PAUSE_MAX_MS = 4000;
const NAMES = ['red', 'green', 'blue', 'grey'] as BucketName[];
const OWNERS = ['000000000011', '000000000012'] as AccountId[];
const BUCKETS_MAX = 2;
/** Of what changes names: its client goes away between two of its steps, and it ends there, or stands still for a while. */
const LEFT_SHARE = 0.25;
const LEFT_AFTER_MAX = 3;
/** A rename that has begun, above all. */
const RENAME_LEFT_SHARE = 0.5;
const ENDS_SHARE = 0.3;
const STANDS_MIN_MS = 3000;
const STANDS_MAX_MS = 12_000;
/** Of renames that stand still: somebody else takes it back meanwhile, once it is finished. */
const BACK_SHARE = 0.7;
const BACK_MIN_MS = 1500;
const BACK_MAX_MS = 5000;
const REST_MAX_MS = 120_000;
const LOOK_EVERY_MS = 500;

const BRANCHES = {
  created: 'names: created',
  deleted: 'names: deleted',
  renamed: 'names: renamed',
  undone: 'names: rename undone',
  taken: 'names: taken',
  underWay: 'names: change under way',
  tooMany: 'names: too many buckets',
  left: 'names: left between two steps',
  stale: 'names: bucket looked up again',
};

export const NAME_BRANCHES: readonly string[] = Object.values(BRANCHES);

type Change =
  | { kind: 'create' | 'delete' | 'read'; name: BucketName }
  | { kind: 'rename'; name: BucketName; to: BucketName };

type Answer =
  | { kind: 'led'; name: BucketName; bucketId: BucketId | undefined }
  | { kind: 'created' | 'taken' | 'under-way' | 'too-many' }
  | { kind: 'deleted'; bucketId: BucketId }
  | { kind: 'renamed'; bucketId: BucketId }
  /** Says nothing about names. */
  | { kind: 'nothing' };

export class NamePart implements Part {
  readonly #world: PartWorld;
  readonly #chance: Chance;
  readonly #pool: GatewayPool;
  readonly #names = new NameHistory(OWNERS);
  readonly #seenSeq = new Map<number, number>();
  readonly #served = new Map<number, readonly ReplicaWatch[]>();
  /** As clients were told. */
  readonly #deleted = new Set<BucketId>();
  /** What somebody does beside the clients. */
  readonly #beside: Promise<void>[] = [];

  constructor(world: PartWorld) {
    this.#world = world;
    this.#chance = world.ground.chance.fork('names');
    this.#pool = new GatewayPool(world, this.#chance.fork('gateways'));
  }

  async prepare(): Promise<void> {
    for (const [index, accountId] of OWNERS.entries()) {
      for (let isDone = false; !isDone; ) {
        const gateway = await this.#pool.pick();
        const attempt = await this.#pool.run(gateway, 'makes an account', ({ metadata, keyring }) =>
          metadata.execute({ shard: SYSTEM_SHARD }, 'create-account', {
            account: { ...accountOf(index), accountId },
            accessKey: { accessKey: `AKNAMES${index}`, sealedSecret: keyring.wrap(Buffer.alloc(32, index)) },
          }),
        );
        isDone = attempt.kind === 'done' && attempt.value.kind === 'done';
      }
    }
  }

  async run(): Promise<void> {
    await Promise.all(Array.from({ length: CLIENT_COUNT }, (_, id) => this.#runClient(id)));
    while (this.#beside.length > 0) await Promise.all(this.#beside.splice(0));
  }

  check(): void {
    const { scheduler } = this.#world.ground;
    for (let shard = 0; shard < this.#world.shardCount; shard++) {
      const history = this.#world.history(shard);
      const seen = this.#seenSeq.get(shard) ?? 0;
      const visible = this.#visibleSeq(shard);
      if (visible <= seen) continue;
      for (let seq = seen + 1; seq <= visible; seq++) {
        const entry = history.entry(seq);
        if (entry !== undefined) this.#names.apply(shard, entry, scheduler.stepCount);
      }
      this.#seenSeq.set(shard, visible);
    }
  }

  /** The last entry that reads of the shard have shown. Who hands over applies and tells what it had begun. */
  #visibleSeq(shard: number): number {
    return Math.max(0, ...this.#servedBy(shard).map((watch) => watch.appliedSeq(shard)));
  }

  /** Those that serve it, or did last. */
  #servedBy(shard: number): readonly ReplicaWatch[] {
    const serving = this.#world.watched.filter(({ node }) => node?.openEpoch(shard) !== undefined);
    const watches = serving.map(({ watch }) => watch);
    if (watches.length > 0) this.#served.set(shard, watches);
    return this.#served.get(shard) ?? [];
  }

  /** What gateways left half done is finished by the outboxes. */
  async rest(): Promise<void> {
    const { scheduler } = this.#world.ground;
    const endMs = scheduler.nowMs + REST_MAX_MS;
    while (!(await this.#areOutboxesEmpty()) && scheduler.nowMs < endMs)
      await scheduler.sleep(LOOK_EVERY_MS, 'outboxes are emptied');
    if (scheduler.nowMs >= endMs) throw new SimulationFailure('I16: an outbox is not emptied');
    this.#names.checkRest();
    for (const bucketId of this.#deleted)
      if (this.#names.bucket(bucketId)?.state !== 'deleted')
        throw new SimulationFailure(`I7: bucket ${bucketId} is there, and was told to be deleted`);
  }

  async #areOutboxesEmpty(): Promise<boolean> {
    for (let shard = 0; shard < this.#world.shardCount; shard++) {
      const gateway = await this.#pool.pick();
      const attempt = await this.#pool.run(gateway, 'looks into an outbox', ({ router }) =>
        router.query({ shard }, 'list-outbox', { limit: 1 }),
      );
      const reply = attempt.kind === 'done' ? attempt.value : undefined;
      if (reply?.kind !== 'done' || reply.value.items.length > 0) return false;
    }
    return true;
  }

  async #runClient(id: number): Promise<void> {
    const { scheduler } = this.#world.ground;
    const chance = this.#chance.fork(`client ${id}`);
    for (let count = 0; count < OPERATIONS_OF_CLIENT; count++) {
      await scheduler.sleep(chance.between(0, PAUSE_MAX_MS), `client of names ${id} begins`);
      await this.#do(drawChange(chance), chance.pick(OWNERS), chance);
    }
  }

  async #do(change: Change, owner: AccountId, chance: Chance): Promise<void> {
    const { scheduler, counts } = this.#world.ground;
    const from = scheduler.stepCount;
    const gateway = await this.#pool.pick();
    const name = `names: ${JSON.stringify(change)} by ${owner}`;
    const leftAfter = drawLeftAfter(change, chance);
    const left = Promise.withResolvers<{ kind: 'cut-off' }>();
    const metadata = standingAfter(gateway.metadata, leftAfter, () => {
      counts.add(BRANCHES.left);
      if (change.kind === 'rename' && chance.happens(BACK_SHARE))
        this.#beside.push(this.#takeBack(change, owner, chance));
      scheduler.after(1, { name: `${name}: left`, run: () => left.resolve({ kind: 'cut-off' }) });
      if (chance.happens(ENDS_SHARE)) return new Promise(() => undefined);
      return gateway.process.clock.sleep(chance.between(STANDS_MIN_MS, STANDS_MAX_MS));
    });
    const attempt = await Promise.race([
      this.#pool.run(gateway, name, () => perform(gateway, metadata, { change, owner })),
      left.promise,
    ]);
    if (attempt.kind === 'done') this.#judge(attempt.value, { change, owner, from });
    else if (attempt.kind === 'failed' && !(attempt.error instanceof AppError)) throw attempt.error;
  }

  async #takeBack(
    { name, to }: Change & { kind: 'rename' },
    owner: AccountId,
    chance: Chance,
  ): Promise<void> {
    await this.#world.ground.scheduler.sleep(
      chance.between(BACK_MIN_MS, BACK_MAX_MS),
      'a name is taken back',
    );
    await this.#do({ kind: 'rename', name: to, to: name }, owner, chance);
  }

  /** Whether the answer was so at one moment between question and answer. */
  #judge(answer: Answer, { change, owner, from }: { change: Change; owner: AccountId; from: number }): void {
    const { scheduler } = this.#world.ground;
    const span = { from, to: scheduler.stepCount };
    const moments = (name: BucketName) => this.#names.moments(name, span);
    const someMoment = (name: BucketName, isSo: (moment: NameMoment) => boolean) => moments(name).some(isSo);
    const { name } = change;
    let isSo = true;
    switch (answer.kind) {
      case 'led':
        isSo = someMoment(answer.name, ({ leads }) => leads === answer.bucketId);
        break;
      case 'created':
        isSo = someMoment(name, ({ leads, record }) => leads !== undefined && record?.owner === owner);
        break;
      case 'taken':
        isSo = someMoment('to' in change ? change.to : name, ({ record }) => record !== undefined);
        break;
      case 'under-way':
        isSo = [name, 'to' in change ? change.to : name].some((one) =>
          someMoment(one, ({ record }) => record !== undefined),
        );
        break;
      case 'too-many':
        isSo = this.#names.counts(owner, span).some((count) => count >= BUCKETS_MAX);
        break;
      case 'deleted':
        isSo =
          someMoment(name, ({ leads }) => leads === answer.bucketId) &&
          moments(name).at(-1)?.record?.bucketId !== answer.bucketId;
        // A primary that ends has told of an entry that nobody has applied yet: it is looked at when all is at rest.
        this.#deleted.add(answer.bucketId);
        break;
      case 'renamed':
        // One that was asked for again, and had been done, may find its bucket deleted.
        isSo =
          this.#names.bucket(answer.bucketId)?.state === 'deleted' ||
          (change.kind === 'rename' && someMoment(change.to, ({ leads }) => leads === answer.bucketId));
        break;
    }
    this.#count(answer, change);
    if (!isSo)
      throw new SimulationFailure(
        `I7: at no moment was ${JSON.stringify(answer)} the answer to ${JSON.stringify(change)} of ${owner}; ` +
          `moments of ${name}: ${JSON.stringify(moments(name))}`,
      );
  }

  #count(answer: Answer, change: Change): void {
    const { counts } = this.#world.ground;
    if (answer.kind === 'created') counts.add(BRANCHES.created);
    if (answer.kind === 'deleted') counts.add(BRANCHES.deleted);
    if (answer.kind === 'renamed') counts.add(BRANCHES.renamed);
    if (answer.kind === 'nothing' && change.kind === 'rename') counts.add(BRANCHES.undone);
    if (answer.kind === 'taken') counts.add(BRANCHES.taken);
    if (answer.kind === 'under-way') counts.add(BRANCHES.underWay);
    if (answer.kind === 'too-many') counts.add(BRANCHES.tooMany);
  }
}

function accountOf(index: number): Omit<AccountRecord, 'accountId' | 'bucketCount' | 'createdAtMs'> {
  const name = `names-${index}`;
  const ids = { name, email: `${name}@example.com`, canonicalId: name.padEnd(64, '0') };
  return { ...ids, state: 'paid', bucketsMax: BUCKETS_MAX, isRoot: false };
}

function drawLeftAfter({ kind }: Change, chance: Chance): number {
  if (kind === 'rename' && chance.happens(RENAME_LEFT_SHARE)) return 1;
  return chance.happens(LEFT_SHARE) ? chance.int(1, LEFT_AFTER_MAX) : Number.POSITIVE_INFINITY;
}

function drawChange(chance: Chance): Change {
  const drawn = chance.float();
  const [name, to] = chance.shuffled(NAMES) as [BucketName, BucketName];
  if (drawn < 0.22) return { kind: 'create', name };
  if (drawn < 0.57) return { kind: 'rename', name, to };
  if (drawn < 0.69) return { kind: 'delete', name };
  return { kind: 'read', name };
}

/** The port of a gateway that stands still with the answer of its nth command. */
function standingAfter(metadata: MetadataPort, count: number, stand: () => Promise<void>): MetadataPort {
  let left = count;
  return {
    shardCount: metadata.shardCount,
    query: (envelope, name, query) => metadata.query(envelope, name, query),
    async execute(envelope, name, command) {
      const reply = await metadata.execute(envelope, name, command);
      if (--left === 0) await stand();
      return reply;
    },
  };
}

async function perform(
  gateway: ProductGateway,
  metadata: MetadataPort,
  { change, owner }: { change: Change; owner: AccountId },
): Promise<Answer> {
  const calls = gateway.calls(metadata);
  try {
    switch (change.kind) {
      case 'create':
        await createBucket.run(contextOf(gateway, calls, { owner }), targetOf(change.name), NO_DOCUMENT);
        return { kind: 'created' };
      case 'delete':
        return await remove(gateway, calls, { name: change.name, owner });
      case 'rename':
        return await rename(gateway, calls, change);
      case 'read':
        return await read(gateway, calls, change.name);
    }
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    if (error.code === 'BucketAlreadyExists') return { kind: 'taken' };
    if (error.code === 'TooManyBuckets') return { kind: 'too-many' };
    if (error.code === 'OperationAborted' && change.kind === 'create') return { kind: 'under-way' };
    if (error.code === 'NoSuchBucket') return { kind: 'led', name: change.name, bucketId: undefined };
    throw error;
  }
}

async function remove(
  gateway: ProductGateway,
  calls: MetadataCalls,
  { name, owner }: { name: BucketName; owner: AccountId },
): Promise<Answer> {
  const found = await gateway.buckets.find(name);
  if (found === undefined) return { kind: 'led', name, bucketId: undefined };
  const context = contextOf(gateway, calls, { owner, bucket: found.bucket });
  await deleteBucket.run(context, targetOf(name), NO_DOCUMENT);
  return { kind: 'deleted', bucketId: found.bucket.record.bucketId };
}

/** R43, by the row that the gateway has, which may be of an earlier rename. */
async function rename(
  gateway: ProductGateway,
  calls: MetadataCalls,
  { name: from, to }: Change & { kind: 'rename' },
): Promise<Answer> {
  const found = await gateway.buckets.find(from);
  if (found === undefined) return { kind: 'led', name: from, bucketId: undefined };
  const { record, homeShard } = found.bucket;
  const { bucketId, nameEpoch } = record;
  const names = { bucketId, from, to };
  const system = { shard: SYSTEM_SHARD };
  const { value: begun } = await calls.execute(system, 'begin-rename', { ...names, nameEpoch });
  if (begun.kind === 'taken' || begun.kind === 'owned-already') return { kind: 'taken' };
  if (begun.kind === 'in-progress') return { kind: 'under-way' };
  if (begun.kind !== 'begun') {
    gateway.buckets.forget(from);
    return { kind: 'nothing' };
  }
  const { itemId } = begun;
  const command = { ...names, nameEpoch: begun.nameEpoch };
  const { value: decided } = await calls.execute({ shard: homeShard }, 'rename-bucket', command);
  const verdict = decided.kind;
  await calls.execute(system, 'end-rename', { ...names, itemId, verdict });
  gateway.buckets.forget(from);
  return verdict === 'renamed' ? { kind: 'renamed', bucketId } : { kind: 'nothing' };
}

/** As HeadBucket does: by the cache, and asked of the home, which says when it is out of date (R45). */
async function read(gateway: ProductGateway, calls: MetadataCalls, name: BucketName): Promise<Answer> {
  const found = await gateway.buckets.find(name);
  if (found === undefined) return { kind: 'led', name, bucketId: undefined };
  const owner = found.bucket.record.owner;
  const { bucketId } = await presentBucket(contextOf(gateway, calls, { owner, bucket: found.bucket }));
  return { kind: 'led', name, bucketId };
}

/** What the operations parse from a request is sealed within them. */
function targetOf(name: BucketName): never {
  return { name, resource: `arn:aws:s3:::${name}` } as never;
}

const NO_DOCUMENT = undefined as never;

/** Of an operation, what these use. */
function contextOf(
  gateway: ProductGateway,
  calls: MetadataCalls,
  { owner, bucket }: { owner: AccountId; bucket?: ResolvedBucket },
): OperationContext {
  return {
    metadata: calls,
    account: () => ({ accountId: owner }) as AccountRecord,
    bucket: () => bucket as ResolvedBucket,
    forgetBucket: (name: string) => gateway.buckets.forget(name),
  } as unknown as OperationContext;
}

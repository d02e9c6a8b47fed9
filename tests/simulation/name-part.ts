// Names of buckets: gateways race to create, delete and rename few buckets of two accounts, also by force, and go away between
// any two steps; others read, by what they have cached. Checked: every answer was so at one moment (I7), a name never leads to
// two buckets (I13), and at rest nothing is under way.

import { toHex } from '../../src/base/bytes/bytes.ts';
import { keyOfRow } from '../../src/metadata/engine/row-keys.ts';
import { TABLES } from '../../src/metadata/schema/keyspace.ts';
import type { KvPut } from '../../src/ports/kv.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../../src/ports/metadata/port.ts';
import { AppError } from '../../src/types/errors.ts';
import type { AccountId, BucketId, BucketName } from '../../src/types/names.ts';
import type { AccountRecord } from '../../src/types/records/rows.ts';
import type { Chance } from './chance.ts';
import { type Answer, type Change, fill, perform } from './name-changes.ts';
import { NameHistory, type NameMoment } from './name-history.ts';
import { GatewayPool, type Part, type PartWorld } from './part.ts';
import type { ReplicaWatch } from './replica-watch.ts';
import { SimulationFailure } from './scheduler.ts';
import { CLOSING_DRIVEN_ON } from './shard-work.ts';

const CLIENT_COUNT = 4;
const OPERATIONS_OF_CLIENT = 16;
const PAUSE_MAX_MS = 4000;
const NAMES = ['red', 'green', 'blue', 'grey'] as BucketName[];
const OWNERS = ['000000000011', '000000000012'] as AccountId[];
const BUCKETS_MAX = 2;
/** Of what changes names: its client goes away between two of its steps, and it ends there, or stands still for a while. */
const LEFT_SHARE = 0.25;
const LEFT_AFTER_MAX = 3;
/** A rename or a forced deletion that has begun, above all. */
const RENAME_LEFT_SHARE = 0.5;
const ENDS_SHARE = 0.3;
const STANDS_MIN_MS = 3000;
const STANDS_MAX_MS = 12_000;
/** Of deletions. */
const FORCED_SHARE = 0.6;
/** Of buckets that are made: something is put into them. */
const FILLED_SHARE = 0.5;
/** Of renames that stand still: somebody else takes it back meanwhile, once it is finished. */
const BACK_SHARE = 0.7;
const BACK_MIN_MS = 1500;
const BACK_MAX_MS = 5000;
const REST_MAX_MS = 120_000;
const LOOK_EVERY_MS = 500;
const BUCKET_ID_BYTES = 8;

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
  forced: 'names: deleted by force',
  drivenOn: CLOSING_DRIVEN_ON,
  filled: 'names: bucket filled',
};

export const NAME_BRANCHES: readonly string[] = Object.values(BRANCHES);

export class NamePart implements Part {
  readonly #world: PartWorld;
  readonly #chance: Chance;
  readonly #pool: GatewayPool;
  readonly #names = new NameHistory(OWNERS);
  readonly #seenSeq = new Map<number, number>();
  readonly #served = new Map<number, readonly ReplicaWatch[]>();
  /** As clients were answered. */
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
    while (!(await this.#isNothingUnderWay()) && scheduler.nowMs < endMs)
      await scheduler.sleep(LOOK_EVERY_MS, 'outboxes are emptied, and deleted buckets');
    if (scheduler.nowMs >= endMs)
      throw new SimulationFailure('I16: an outbox or a deleted bucket is not emptied');
    this.#names.checkRest();
    this.#checkEmptied();
    for (const bucketId of this.#deleted)
      if (this.#names.bucket(bucketId)?.state !== 'deleted')
        throw new SimulationFailure(`I7: bucket ${bucketId} is there, and was told to be deleted`);
  }

  async #isNothingUnderWay(): Promise<boolean> {
    for (let shard = 0; shard < this.#world.shardCount; shard++) {
      const gateway = await this.#pool.pick();
      const attempt = await this.#pool.run(gateway, 'looks for what is under way', async ({ router }) => {
        const outbox = await router.query({ shard }, 'list-outbox', { limit: 1 });
        const open = { kind: 'empty-bucket', limit: 1 } as const;
        const jobs = await router.query({ shard }, 'list-open-jobs', open);
        return outbox.kind === 'done' && jobs.kind === 'done'
          ? outbox.value.items.length + jobs.value.jobs.length
          : undefined;
      });
      if (attempt.kind !== 'done' || attempt.value !== 0) return false;
    }
    return true;
  }

  /** What was in buckets that are deleted has gone with them. */
  #checkEmptied(): void {
    for (let shard = 0; shard < this.#world.shardCount; shard++) {
      const history = this.#world.history(shard);
      for (const bucketId of bucketsWithObjects(history.changes(0, history.lastSeq)))
        if (this.#names.bucket(bucketId)?.state === 'deleted')
          throw new SimulationFailure(`I16: bucket ${bucketId} is deleted, and there are objects of it`);
    }
  }

  async #runClient(id: number): Promise<void> {
    const { scheduler } = this.#world.ground;
    const chance = this.#chance.fork(`client ${id}`);
    const forced = this.#chance.fork(`forced by ${id}`);
    for (let count = 0; count < OPERATIONS_OF_CLIENT; count++) {
      await scheduler.sleep(chance.between(0, PAUSE_MAX_MS), `client of names ${id} begins`);
      const change = drawChange(chance);
      const isForced = change.kind === 'delete' && forced.happens(FORCED_SHARE);
      const owner = chance.pick(OWNERS);
      await this.#do(isForced ? { ...change, kind: 'force-delete' } : change, owner, chance);
      if (change.kind === 'create' && forced.happens(FILLED_SHARE)) await this.#fill(change.name, owner);
    }
  }

  async #fill(name: BucketName, owner: AccountId): Promise<void> {
    const { ground } = this.#world;
    const gateway = await this.#pool.pick();
    const attempt = await this.#pool.run(gateway, `fills ${name}`, () =>
      fill(gateway, { name, owner, ground }),
    );
    if (attempt.kind === 'failed' && !(attempt.error instanceof AppError)) throw attempt.error;
    if (attempt.kind === 'done') ground.counts.add(BRANCHES.filled);
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
        // A primary that ends has answered with an entry that nobody has applied yet: it is looked at when all is at rest.
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
    if (answer.kind === 'deleted')
      counts.add(change.kind === 'force-delete' ? BRANCHES.forced : BRANCHES.deleted);
    if (answer.kind === 'renamed') counts.add(BRANCHES.renamed);
    if (answer.kind === 'nothing' && change.kind === 'rename') counts.add(BRANCHES.undone);
    if (answer.kind === 'taken') counts.add(BRANCHES.taken);
    if (answer.kind === 'under-way') counts.add(BRANCHES.underWay);
    if (answer.kind === 'too-many') counts.add(BRANCHES.tooMany);
  }
}

function* bucketsWithObjects(rows: ReadonlyMap<string, KvPut>): Generator<BucketId> {
  for (const { column, key, value } of rows.values())
    if (column === 'rows' && key[2] === TABLES.objects.id && value !== null)
      yield toHex(keyOfRow(key).subarray(1, 1 + BUCKET_ID_BYTES)) as BucketId;
}

function accountOf(index: number): Omit<AccountRecord, 'accountId' | 'bucketCount' | 'createdAtMs'> {
  const name = `names-${index}`;
  const ids = { name, email: `${name}@example.com`, canonicalId: name.padEnd(64, '0') };
  return { ...ids, state: 'paid', bucketsMax: BUCKETS_MAX, isRoot: false };
}

function drawLeftAfter({ kind }: Change, chance: Chance): number {
  if ((kind === 'rename' || kind === 'force-delete') && chance.happens(RENAME_LEFT_SHARE)) return 1;
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

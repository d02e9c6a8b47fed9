// Names what is damaged or missing in the words of its owner, for alarms and the log: versions and parts of uploads that use
// data which is known to be so. Nothing is read while nothing is damaged. Else a page of rows at a time, with rests between
// them, until so many are named as one report has; what was named is looked at again from time to time, as objects are
// renamed and deleted. Kept in memory: after a restart, or where another node leads the shard, it is looked for again.
import type { ClockPort } from '../../ports/clock.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { Worker } from '../../ports/worker.ts';
import {
  DAMAGE_NAMED_MAX,
  type DamagedObject,
  joinDamage,
  type NamedDamage,
  type UnnamedDamage,
} from '../../types/named-damage.ts';
import type { BlobId } from '../../types/names.ts';
import { createShardWorker, doneValue, resting } from '../workers/shard-worker.ts';
import { SilentShard } from './ask-shard.ts';
import { type FoundUser, findAgain, UserSearch } from './search-users.ts';

const IDLE_MS = 5000;
/** After each page, in lengths of it: clients come first. */
const REST_SHARE = 4;
/** What was named is looked at again, and what was not found is looked for again, so often. */
const CONFIRM_EVERY_MS = 10 * 60_000;
const SEARCH_AGAIN_MS = 3600_000;
/** Of a shard: more than are named, as some may be used by nobody. */
const LOST_READ_MAX = 100;

export interface DamageNamerDeps {
  metadata: Pick<MetadataPort, 'query'>;
  clock: ClockPort;
  log: Logger;
  /** Those whose open primary is here. */
  shards(): readonly number[];
  damage: KnownDamage;
}

/** What is known to be damaged or missing of the shards that are led here, and what is known of whose it is. */
export interface KnownDamage {
  /** The first ones of a shard. */
  lostBlobs(shard: number): Promise<readonly BlobId[]>;
  names: DamageNames;
}

/** Written by the worker, read by reports. */
export class DamageNames {
  readonly #byShard = new Map<number, NamedDamage>();

  set(shard: number, damage: NamedDamage): void {
    this.#byShard.set(shard, damage);
  }

  /** Another node leads the others. */
  keepOnly(shards: readonly number[]): void {
    const led = new Set(shards);
    for (const shard of this.#byShard.keys()) if (!led.has(shard)) this.#byShard.delete(shard);
  }

  /** undefined: nothing is known to be damaged, or it was not looked at yet. */
  of(shard: number): NamedDamage | undefined {
    const damage = this.#byShard.get(shard);
    return damage?.blobCount === 0 ? undefined : damage;
  }

  /** `blobCount`: all of the shards. */
  all(blobCount: number): NamedDamage {
    return joinDamage([...this.#byShard.values()], blobCount);
  }
}

/** Of one shard. */
class ShardNames {
  readonly found: FoundUser[] = [];
  /** Blobs whose users were looked for and not found, with the time. */
  readonly unused = new Map<BlobId, number>();
  search: UserSearch | undefined;
  isSilent = false;
  confirmedAtMs: number;

  constructor(nowMs: number) {
    this.confirmedAtMs = nowMs;
  }

  isFull(): boolean {
    return this.found.length >= DAMAGE_NAMED_MAX;
  }

  open(lost: readonly BlobId[]): BlobId[] {
    const named = new Set(this.found.map(({ blobId }) => blobId));
    return lost.filter((blobId) => !named.has(blobId) && !this.unused.has(blobId));
  }

  /** What is whole again, or gone, is no damage. */
  keepOnly(lost: readonly BlobId[]): void {
    const present = new Set(lost);
    for (const blobId of this.unused.keys()) if (!present.has(blobId)) this.unused.delete(blobId);
    const kept = this.found.filter(({ blobId }) => present.has(blobId));
    if (kept.length < this.found.length) this.found.splice(0, this.found.length, ...kept);
  }

  describe(lost: readonly BlobId[]): NamedDamage {
    const objects: DamagedObject[] = this.found.map(({ blobId: blob, place }) => ({ ...place, blob }));
    const named = new Set(this.found.map(({ blobId }) => blobId));
    const unnamed: UnnamedDamage[] = lost
      .filter((blobId) => !named.has(blobId))
      .map((blob) => ({ blob, why: this.#whyUnnamed(blob) }));
    return joinDamage([{ objects, unnamed, blobCount: lost.length }]);
  }

  #whyUnnamed(blob: BlobId): UnnamedDamage['why'] {
    if (this.unused.has(blob)) return 'not-used';
    return this.isSilent ? 'shard-silent' : 'looked-for';
  }
}

export function createDamageNamer(deps: DamageNamerDeps): Worker {
  const { clock, damage } = deps;
  const all = new Map<number, ShardNames>();
  const worker = createShardWorker({
    name: 'name-damage',
    shards: deps.shards,
    idleMs: IDLE_MS,
    async unit(shard) {
      const lost = await damage.lostBlobs(shard);
      const names = all.get(shard) ?? new ShardNames(clock.monotonicMs());
      if (lost.length === 0) all.delete(shard);
      else all.set(shard, names);
      names.keepOnly(lost);
      const hasMore = lost.length > 0 && (await advance(deps, names, { shard, lost }));
      damage.names.set(shard, names.describe(lost));
      return hasMore;
    },
  });
  return resting(
    {
      name: worker.name,
      async work(signal) {
        const led = new Set(deps.shards());
        damage.names.keepOnly([...led]);
        for (const shard of all.keys()) if (!led.has(shard)) all.delete(shard);
        return worker.work(signal);
      },
    },
    { clock, restShare: REST_SHARE },
  );
}

/** True: there is more to look at now. */
async function advance(
  deps: DamageNamerDeps,
  names: ShardNames,
  { shard, lost }: { shard: number; lost: readonly BlobId[] },
): Promise<boolean> {
  const { metadata, clock } = deps;
  if (names.search === undefined) {
    await confirm(deps, names);
    const open = names.open(lost);
    if (open.length === 0 || names.isFull()) return false;
    names.search = new UserSearch(metadata, { shard, blobIds: open });
  }
  const step = await names.search.step();
  names.isSilent = step.kind === 'silent';
  if (step.kind === 'silent') return false;
  if (step.kind === 'found')
    addFound(
      deps,
      names,
      step.users.filter(({ blobId }) => lost.includes(blobId)),
    );
  if (step.kind === 'found' && !names.isFull()) return true;
  names.search = undefined;
  if (!names.isFull()) for (const blobId of names.open(lost)) names.unused.set(blobId, clock.monotonicMs());
  return false;
}

function addFound({ log }: DamageNamerDeps, names: ShardNames, users: readonly FoundUser[]): void {
  for (const user of users) {
    if (names.isFull()) return;
    const { blobId, place } = user;
    names.found.push(user);
    log.error({ ...place, blobId }, 'object-damaged');
  }
}

async function confirm({ metadata, clock }: DamageNamerDeps, names: ShardNames): Promise<void> {
  const nowMs = clock.monotonicMs();
  if (nowMs - names.confirmedAtMs < CONFIRM_EVERY_MS) return;
  names.confirmedAtMs = nowMs;
  for (const [blobId, atMs] of names.unused) if (nowMs - atMs >= SEARCH_AGAIN_MS) names.unused.delete(blobId);
  const kept: FoundUser[] = [];
  for (const user of names.found) {
    try {
      const place = await findAgain(metadata, user);
      if (place !== undefined) kept.push({ ...user, place });
    } catch (error) {
      if (!(error instanceof SilentShard)) throw error;
      kept.push(user);
    }
  }
  names.found.splice(0, names.found.length, ...kept);
}

/** Of a cluster: blobs with a chunk that no disk has intact, the first ones. */
export async function listLostBlobs(
  metadata: Pick<MetadataPort, 'query'>,
  shard: number,
): Promise<readonly BlobId[]> {
  const { debts } = doneValue(await metadata.query({ shard }, 'list-debts', { limit: LOST_READ_MAX }));
  return debts.flatMap(({ blobId, debt }) => (debt.copies === 0 ? [blobId] : []));
}

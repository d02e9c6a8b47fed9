// Delivers the outbox items of shards (R21): each item until it is done, in any order, each safe to repeat. Requests that
// wrote an item usually deliver it themselves; this is for those that could not. A shard that does not answer delays its
// own items only.
import {
  type CommandOf,
  type MetadataPort,
  type OutcomeOf,
  type ResultOf,
  SYSTEM_SHARD,
} from '../../ports/metadata/port.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { Worker } from '../../ports/worker.ts';
import type { OutboxId } from '../../types/names.ts';
import type { OutboxRecord } from '../../types/records/rows.ts';
import { type LinkName, linkText } from '../blobs/links.ts';
import { defineCommand } from '../schema/define-command.ts';
import { outboxRow, remove } from '../schema/keyspace.ts';
import { createLateItems } from '../workers/late-items.ts';
import { type AskingWorkDeps, createOtherShards, ofOwn } from '../workers/other-shards.ts';
import { createShardWorker, doneValue } from '../workers/shard-worker.ts';

const BATCH = 250;
const IDLE_MS = 1000;

type Item = ResultOf<'list-outbox'>['items'][number];
type ReleaseLink = Extract<OutboxRecord, { kind: 'release-link' }>;
type Release = Item & { record: ReleaseLink };
type RenameBucket = Extract<OutboxRecord, { kind: 'rename-bucket' }>;

/** How far the outbox of a shard has been gone through. Kept in memory: after a restart it is gone through anew. */
interface Progress {
  /** Everything before is done (B11). */
  doneBeforeMs: number;
  /** Everything before has had its turn: what is left of it waits for one of `waitedFor`. */
  seenBeforeMs: number;
  waitedFor: Set<number>;
}

export function createOutboxDelivery(deps: AskingWorkDeps): Worker {
  const { metadata, shards, clock } = deps;
  const others = createOtherShards(clock);
  const progress = new Map<number, Progress>();
  const late = createLateItems<Release>(({ id }) => id);

  /** Gives those that are not done. What comes late of the others ends by itself. */
  async function deliver(shard: number, items: readonly Item[], signal: AbortSignal): Promise<Item[]> {
    const left = new Set(items);
    await others.askEach(Map.groupBy(items, targetOf), async (target, its) => {
      const { done, busy, failure } = await carryOut(deps, target, its, signal);
      late.begin(shard, busy, (item) => finishLate(shard, item));
      const ids = done.map(({ id }) => id);
      if (ids.length > 0) await ofOwn(metadata.execute({ shard }, 'finish-outbox', { ids }).then(doneValue));
      for (const item of done) left.delete(item);
      // A shard that has done some of it is there: one item that fails is no ground to leave out those of others.
      if (failure !== undefined && done.length === 0) throw failure.error;
    });
    return [...left];
  }

  /** Of a blob that others held: its home is there, and the item is found again until this has been done. */
  async function finishLate(shard: number, { id, record }: Release): Promise<void> {
    await releaseLinks(metadata, record.homeShard, { links: [record] });
    doneValue(await metadata.execute({ shard }, 'finish-outbox', { ids: [id] }));
  }

  return createShardWorker({
    name: 'deliver-outbox',
    shards,
    idleMs: IDLE_MS,
    async unit(shard, signal) {
      const walk = new Walk(progress.get(shard), others.isAway);
      for (let page = walk.nextPage(); page !== undefined; page = walk.nextPage()) {
        signal.throwIfAborted();
        const query = { ...page, limit: BATCH };
        const { items } = doneValue(await metadata.query({ shard }, 'list-outbox', query));
        walk.passed(items, await deliver(shard, items, signal));
      }
      progress.set(shard, walk.progress());
      return false;
    },
  });
}

/** One way through an outbox: what waits for shards that are away is not gone through again before one of them is back. */
class Walk {
  readonly #before: Progress;
  readonly #isAway: (shard: number) => boolean;
  readonly #waitedFor = new Set<number>();
  #page: { fromMs: number; after?: OutboxId } | undefined;
  #oldestLeftMs: number | undefined;
  #lastMs: number;

  constructor(before: Progress | undefined, isAway: (shard: number) => boolean) {
    this.#before = before ?? { doneBeforeMs: 0, seenBeforeMs: 0, waitedFor: new Set() };
    this.#isAway = isAway;
    this.#lastMs = this.#before.doneBeforeMs;
    this.#page = { fromMs: this.#lastMs };
  }

  /** undefined: that was the last. */
  nextPage(): { fromMs: number; after?: OutboxId } | undefined {
    const { seenBeforeMs, waitedFor } = this.#before;
    if (this.#page === undefined || this.#lastMs >= seenBeforeMs) return this.#page;
    if (![...waitedFor].every(this.#isAway)) return this.#page;
    // Up to there nothing else is left.
    for (const shard of waitedFor) this.#waitedFor.add(shard);
    this.#oldestLeftMs ??= this.#lastMs;
    this.#lastMs = seenBeforeMs;
    this.#page = { fromMs: seenBeforeMs };
    return this.#page;
  }

  passed(items: readonly Item[], left: readonly Item[]): void {
    for (const item of left) this.#waitedFor.add(targetOf(item));
    this.#oldestLeftMs ??= left[0]?.createdAtMs;
    const last = items.at(-1);
    if (last !== undefined) this.#lastMs = last.createdAtMs;
    if (last === undefined || items.length < BATCH) {
      this.#page = undefined;
      return;
    }
    // As in createQueueWalks: where nothing is left, items of the last ms that came meanwhile are seen.
    this.#page = { fromMs: this.#lastMs, ...(this.#oldestLeftMs !== undefined && { after: last.id }) };
  }

  progress(): Progress {
    return {
      doneBeforeMs: this.#oldestLeftMs ?? this.#lastMs,
      seenBeforeMs: this.#lastMs,
      waitedFor: this.#waitedFor,
    };
  }
}

/** Who must answer for it to be done. */
function targetOf({ record }: Item): number {
  return record.kind === 'forget-name' ? SYSTEM_SHARD : record.homeShard;
}

/** Each item is tried, whatever becomes of the others. `failure`: the first one. Never rejects. */
async function carryOut(
  { metadata, log }: { metadata: MetadataPort; log: Logger },
  target: number,
  items: readonly Item[],
  signal: AbortSignal,
): Promise<{ done: Item[]; busy: Release[]; failure: { error: unknown } | undefined }> {
  const done: Item[] = [];
  let busy: Release[] = [];
  let failure: { error: unknown } | undefined;
  /** `act` gives those that are done. */
  const attempt = async (some: readonly Item[], act: () => Promise<readonly Item[]>) => {
    try {
      done.push(...(await act()));
    } catch (error) {
      failure ??= { error };
      const fields = { err: error, shard: target, kind: some[0]?.record.kind, count: some.length };
      if (!signal.aborted) log.warn(fields, 'outbox-delivery-failed');
    }
  };
  const releases = items.filter(isRelease);
  if (releases.length > 0) {
    const links = releases.map(({ record }) => record);
    await attempt(releases, async () => {
      const left = await releaseLinks(metadata, target, { links, leavesBusy: true });
      const names = new Set(left.map(linkText));
      busy = releases.filter(({ record }) => names.has(linkText(record)));
      return releases.filter(({ record }) => !names.has(linkText(record)));
    });
  }
  for (const item of items) {
    const { id, record } = item;
    // One that fails keeps none behind it from its turn.
    if (record.kind === 'release-link') continue;
    await attempt([item], () => finishName(metadata, id, record).then(() => [item]));
  }
  return { done, busy, failure };
}

function isRelease(item: Item): item is Release {
  return item.record.kind === 'release-link';
}

/** Gives those that were left out, as others held their blobs. */
async function releaseLinks(
  metadata: MetadataPort,
  shard: number,
  { links, ...how }: { links: readonly ReleaseLink[]; leavesBusy?: true },
): Promise<readonly LinkName[]> {
  const names = links.map(({ blobId, linkId }) => ({ blobId, linkId }));
  const reply = await metadata.execute({ shard }, 'release-links', { links: names, ...how });
  return doneValue(reply).left ?? [];
}

/** R41 to R43: a bucket that was to be created or renamed is; the name of a deleted one is free. */
async function finishName(
  metadata: MetadataPort,
  id: OutboxId,
  record: Exclude<OutboxRecord, ReleaseLink>,
): Promise<void> {
  if (record.kind === 'rename-bucket') return finishRename(metadata, id, record);
  const { name, bucketId, owner } = record;
  const system = { shard: SYSTEM_SHARD };
  if (record.kind === 'create-bucket') {
    const home = { shard: record.homeShard };
    const { settings } = record;
    const command = { bucketId, name, owner, ...(settings && { settings }) };
    const bucket = doneValue(await metadata.execute(home, 'create-bucket', command));
    if (bucket.kind === 'created') {
      doneValue(await metadata.execute(system, 'activate-name', { name, bucketId }));
      return;
    }
  }
  doneValue(await metadata.execute(system, 'forget-name', { name, bucketId, owner }));
}

async function finishRename(metadata: MetadataPort, itemId: OutboxId, record: RenameBucket): Promise<void> {
  const { homeShard, kind: _, nameEpoch, ...names } = record;
  const home = { shard: homeShard };
  const { kind: verdict } = doneValue(await metadata.execute(home, 'rename-bucket', { ...names, nameEpoch }));
  const end = { ...names, itemId, verdict };
  doneValue(await metadata.execute({ shard: SYSTEM_SHARD }, 'end-rename', end));
}

// Takes delivered items out of the outbox (R21). Those that are out already are done.

export const finishOutbox = defineCommand<CommandOf<'finish-outbox'>, OutcomeOf<'finish-outbox'>>({
  locks: () => [],
  decide: ({ ids }) => ({
    outcome: { kind: 'finished' },
    puts: ids.map((id) => remove(outboxRow(id))),
  }),
});

// Carries out what shards owe one another (R21): each item until it is done, in any order, each safe to repeat. Requests
// that wrote an item usually finish it themselves; this is for those that could not.
import type { OutboxId } from '../../model/names.ts';
import type { OutboxRecord } from '../../model/records/rows.ts';
import { type MetadataPort, type ResultOf, SYSTEM_SHARD } from '../../ports/metadata.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { Worker } from '../../ports/worker.ts';
import { createQueueCursors, createShardWorker, doneValue } from './shard-worker.ts';

const BATCH = 250;
const IDLE_MS = 1000;

type Item = ResultOf<'list-outbox'>['items'][number];
type ReleaseLink = Extract<OutboxRecord, { kind: 'release-link' }>;
type RenameBucket = Extract<OutboxRecord, { kind: 'rename-bucket' }>;

export function createOutboxDelivery(deps: {
  metadata: MetadataPort;
  shards(): readonly number[];
  log: Logger;
}): Worker {
  const { metadata, shards, log } = deps;
  const cursors = createQueueCursors();

  /** The ids of those items that are done now. */
  async function deliver(items: readonly Item[]): Promise<Set<OutboxId>> {
    const done = new Set<OutboxId>();
    const attempt = async (some: readonly Item[], act: () => Promise<void>) => {
      try {
        await act();
        for (const { id } of some) done.add(id);
      } catch (error) {
        log.warn({ err: error, kind: some[0]?.record.kind, count: some.length }, 'outbox-delivery-failed');
      }
    };
    const isRelease = (item: Item): item is Item & { record: ReleaseLink } =>
      item.record.kind === 'release-link';
    for (const [shard, some] of Map.groupBy(items.filter(isRelease), ({ record }) => record.homeShard)) {
      await attempt(some, () =>
        releaseLinks(
          metadata,
          shard,
          some.map(({ record }) => record),
        ),
      );
    }
    for (const item of items) {
      const { id, record } = item;
      if (record.kind !== 'release-link') await attempt([item], () => finishName(metadata, id, record));
    }
    return done;
  }

  return createShardWorker({
    name: 'deliver-outbox',
    shards,
    idleMs: IDLE_MS,
    async unit(shard, signal) {
      let oldestLeftMs: number | undefined;
      let last: Item | undefined;
      let isWhole = false;
      while (!isWhole) {
        signal.throwIfAborted();
        const query = { ...cursors.from(shard), ...(last && { after: last.id }), limit: BATCH };
        const { items } = doneValue(await metadata.query({ shard }, 'list-outbox', query));
        const done = await deliver(items);
        const ids = [...done];
        if (ids.length > 0) doneValue(await metadata.execute({ shard }, 'finish-outbox', { ids }));
        oldestLeftMs ??= items.find(({ id }) => !done.has(id))?.createdAtMs;
        last = items.at(-1) ?? last;
        isWhole = items.length < BATCH;
      }
      const nextFromMs = oldestLeftMs ?? last?.createdAtMs;
      if (nextFromMs !== undefined) cursors.advance(shard, nextFromMs);
      return false;
    },
  });
}

async function releaseLinks(metadata: MetadataPort, shard: number, links: ReleaseLink[]): Promise<void> {
  const names = links.map(({ blobId, linkId }) => ({ blobId, linkId }));
  doneValue(await metadata.execute({ shard }, 'release-links', { links: names }));
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
    const bucket = doneValue(await metadata.execute(home, 'create-bucket', { bucketId, name, owner }));
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

// Blobs against the bytes that they say there are: small bodies in their shard, chunks in the chunk store. All of them
// come in the order of blob ids, so streams are merged, a page of each in memory. They are read at different moments:
// what does not agree is looked at again, in the order in which work on its way would explain it.
import { sealedBytes } from '../base/crypto/seal.ts';
import type { ChunkId } from '../ports/chunks.ts';
import type { BlobFact } from '../ports/metadata/checks.ts';
import { LIMITS } from '../types/limits.ts';
import { type BlobId, homeShardOf, idTimeMs } from '../types/names.ts';
import { isLiveBlob } from '../types/records/rows.ts';
import { type BlobLayout, chunkCount } from '../types/version.ts';
import { compareBodies } from './compare-bodies.ts';
import { createBatch, type FsckRun } from './run.ts';

const CHUNK_PAGE = 500;

interface StoredChunk {
  id: ChunkId;
  sizeBytes: number;
  receivedAtMs: number;
}

/** All shards' blobs, their bodies, and all chunks. */
export async function compareData(run: FsckRun): Promise<void> {
  const orphans = createBatch<StoredChunk>((some) => inspectOrphans(run, some));
  const missing = createBatch<ChunkId>((some) => lookAtMissing(run, some));
  const stored = readChunks(run);
  const take = async (): Promise<StoredChunk | undefined> => (await stored.next()).value ?? undefined;
  let chunk = await take();
  for await (const { blobId, blob } of mergeBlobs(run)) {
    for (; chunk !== undefined && chunk.id.blobId < blobId; chunk = await take()) await orphans.add(chunk);
    // Some chunks of a blob that is marked for deletion may be erased already (R31).
    const isGoing = blob.condemnedAtMs !== undefined;
    const count = chunkCount(blob);
    let expected = 0;
    for (; chunk?.id.blobId === blobId; chunk = await take()) {
      const { index } = chunk.id;
      for (; !isGoing && expected < Math.min(index, count); expected++)
        await missing.add({ blobId, index: expected });
      if (index >= count) await orphans.add(chunk);
      else if (!isGoing) await lookAtChunk(run, chunk, blob);
      expected = index + 1;
    }
    for (; !isGoing && expected < count; expected++) await missing.add({ blobId, index: expected });
  }
  for (; chunk !== undefined; chunk = await take()) await orphans.add(chunk);
  await orphans.end();
  await missing.end();
  await compareTotals(run);
}

/** Status and metrics show them. */
async function compareTotals(run: FsckRun): Promise<void> {
  const { counted, kept } = await run.paced(() => run.deps.chunks.recount());
  if (kept.chunkCount === counted.chunkCount && kept.liveBytes === counted.liveBytes) return;
  const note = `${kept.chunkCount} chunks of ${kept.liveBytes} bytes, is ${counted.chunkCount} of ${counted.liveBytes}`;
  run.found('counter-wrong', { note });
}

async function* readChunks(run: FsckRun): AsyncGenerator<StoredChunk> {
  for (let after: ChunkId | undefined; ; ) {
    const page = await run.paced(() => run.deps.chunks.list({ limit: CHUNK_PAGE, ...(after && { after }) }));
    run.progress.chunkCount += page.length;
    yield* page;
    after = page.at(-1)?.id;
    if (page.length < CHUNK_PAGE) return;
  }
}

/** Blobs with chunks, of all shards, in the order of their ids. */
async function* mergeBlobs(run: FsckRun): AsyncGenerator<BlobFact> {
  const streams = run.shards.map((shard) => compareBodies(run, shard));
  const heads: (BlobFact | undefined)[] = [];
  for (const stream of streams) heads.push((await stream.next()).value ?? undefined);
  for (;;) {
    let least: number | undefined;
    for (const [at, head] of heads.entries()) {
      const best = least === undefined ? undefined : heads[least];
      if (head !== undefined && (best === undefined || head.blobId < best.blobId)) least = at;
    }
    const head = least === undefined ? undefined : heads[least];
    if (least === undefined || head === undefined) return;
    yield head;
    heads[least] = (await streams[least]?.next())?.value ?? undefined;
  }
}

async function lookAtChunk(run: FsckRun, { id, sizeBytes }: StoredChunk, layout: BlobLayout): Promise<void> {
  const startBytes = id.index * layout.chunkSizeBytes;
  const plainBytes = Math.min(layout.chunkSizeBytes, layout.sizeBytes - startBytes);
  const wanted = sealedBytes({ sizeBytes: plainBytes, blockBytes: LIMITS.sealBlockBytes });
  if (sizeBytes !== wanted)
    run.found('chunk-size', { ...placeOf(id), note: `${wanted} bytes, is ${sizeBytes}` });
  if (!run.options.readData) return;
  const read = await run.paced(() => run.deps.chunks.get(id));
  run.progress.readBytes += sizeBytes;
  if (read.kind === 'found') return;
  await lookAtLost(run, id, read.kind);
}

/** It may have gone with its blob in between. */
async function lookAtLost(run: FsckRun, id: ChunkId, kind: 'missing' | 'damaged'): Promise<void> {
  const { blobs } = await run.ask(homeShardOf(id.blobId), 'get-blobs', { blobIds: [id.blobId] });
  if (!isLiveBlob(blobs[0])) return;
  run.found(`chunk-${kind}`, placeOf(id));
  run.deps.noteLost?.(id, kind);
}

/**
 * Chunks are stored before their blob, and erased after it is marked for deletion: one that a live blob lacks now will not
 * come.
 */
async function lookAtMissing(run: FsckRun, ids: readonly ChunkId[]): Promise<void> {
  for (const id of ids) {
    const read = await run.paced(() => run.deps.chunks.get(id));
    if (read.kind === 'found') continue;
    await lookAtLost(run, id, read.kind);
  }
}

/** Of a blob that its home does not know, or behind the blob's end. A young one may belong to a request under way. */
async function inspectOrphans(run: FsckRun, chunks: readonly StoredChunk[]): Promise<void> {
  const { clock, chunks: store } = run.deps;
  for (const [home, some] of Map.groupBy(chunks, ({ id }) => homeShardOf(id.blobId))) {
    if (home >= run.deps.metadata.shardCount) {
      for (const { id } of some) run.found('chunk-orphaned', { ...placeOf(id), note: `no shard ${home}` });
      continue;
    }
    const blobIds = [...new Set(some.map(({ id }) => id.blobId))];
    const { value, timeMs } = await run.askReply(home, 'get-blobs', { blobIds });
    const blobs = new Map(blobIds.map((blobId, at) => [blobId, value.blobs[at]]));
    for (const { id, receivedAtMs } of some) {
      const blob = blobs.get(id.blobId);
      if (blob != null && id.index < chunkCount(blob)) continue;
      const mintedAtMs = idTimeMs(id.blobId);
      const isOld =
        timeMs - mintedAtMs > LIMITS.orphanAfterMs && clock.wallMs() - receivedAtMs > LIMITS.orphanAfterMs;
      const read = await run.paced(() => store.get(id));
      if (read.kind === 'missing') continue;
      if (isOld || blob != null) run.found('chunk-orphaned', placeOf(id));
      else run.addPending({ kind: 'unlinked-chunk', count: 1, oldestAtMs: mintedAtMs });
    }
  }
}

function placeOf({ blobId, index }: ChunkId): { shard: number; blob: BlobId; chunk: number } {
  return { shard: homeShardOf(blobId), blob: blobId, chunk: index };
}

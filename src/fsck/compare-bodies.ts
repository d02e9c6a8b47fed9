// A shard's blobs in order: small ones against their bodies, which lie in a column of their own; those with chunks are
// handed on.
import { sealedBytes } from '../base/crypto/seal.ts';
import type { BlobFact } from '../ports/metadata/checks.ts';
import { LIMITS } from '../types/limits.ts';
import type { BlobId } from '../types/names.ts';
import { comparePieces } from './compare-pieces.ts';
import { createBatch, type FsckRun } from './run.ts';

/** Keys alone are small; bodies are not. */
const PAGE_KEYS = 500;
const PAGE_BODIES = 50;

interface Body {
  blobId: BlobId;
  sizeBytes?: number;
}

/** Compares the small ones, and gives the others. */
export async function* compareBodies(run: FsckRun, shard: number): AsyncGenerator<BlobFact> {
  const bodies = readBodies(run, shard);
  const missing = createBatch<BlobId>((some) => lookAtMissing(run, shard, some));
  const orphans = createBatch<BlobId>((some) => inspectOrphans(run, shard, some));
  const unlinked = createBatch<BlobId>((some) => run.checkUnlinked(shard, some));
  const pieces = comparePieces(run, shard);
  const take = async (): Promise<Body | undefined> => (await bodies.next()).value ?? undefined;
  let body = await take();
  for await (const { facts, findings } of run.pages(shard, 'blobs')) {
    run.foundAll(findings);
    for (const blobId of facts.unlinked) await unlinked.add(blobId);
    for (const fact of facts.blobs) {
      const { blobId, blob } = fact;
      if (blob.kind === 'manifest') continue;
      if (blob.storage === 'chunks') {
        yield fact;
        continue;
      }
      if (blob.storage === 'pieces') {
        await pieces.add(fact);
        continue;
      }
      for (; body !== undefined && body.blobId < blobId; body = await take()) await orphans.add(body.blobId);
      if (body?.blobId !== blobId) {
        await missing.add(blobId);
        continue;
      }
      const wanted = sealedBytes({ sizeBytes: blob.sizeBytes, blockBytes: LIMITS.sealBlockBytes });
      if (body.sizeBytes !== undefined && body.sizeBytes !== wanted) {
        run.found('body-size', { shard, blob: blobId, note: `${wanted} bytes, is ${body.sizeBytes}` });
      }
      body = await take();
    }
  }
  for (; body !== undefined; body = await take()) await orphans.add(body.blobId);
  for (const batch of [missing, orphans, unlinked, pieces]) await batch.end();
}

async function* readBodies(run: FsckRun, shard: number): AsyncGenerator<Body> {
  const withSizes = run.options.readData;
  const limit = withSizes ? PAGE_BODIES : PAGE_KEYS;
  for (let after: BlobId | undefined; ; ) {
    const { bodies } = await run.ask(shard, 'list-bodies', { ...(after && { after }), limit, withSizes });
    run.progress.bodyCount += bodies.length;
    yield* bodies;
    after = bodies.at(-1)?.blobId;
    if (bodies.length < limit) return;
  }
}

/** A body comes and goes in one entry with its blob's row: one that is missing while the row is there is lost. */
async function lookAtMissing(run: FsckRun, shard: number, blobIds: BlobId[]): Promise<void> {
  const { bodies } = await run.ask(shard, 'get-bodies', { blobIds });
  const absent = blobIds.filter((_, at) => (bodies[at] ?? null) === null);
  if (absent.length === 0) return;
  const { blobs } = await run.ask(shard, 'get-blobs', { blobIds: absent });
  for (const [at, blob] of absent.entries()) {
    if ((blobs[at] ?? null) !== null) run.found('body-missing', { shard, blob });
  }
}

async function inspectOrphans(run: FsckRun, shard: number, blobIds: BlobId[]): Promise<void> {
  const { blobs } = await run.ask(shard, 'get-blobs', { blobIds });
  const unknown = blobIds.filter((_, at) => (blobs[at] ?? null) === null);
  if (unknown.length === 0) return;
  const { bodies } = await run.ask(shard, 'get-bodies', { blobIds: unknown });
  for (const [at, blob] of unknown.entries()) {
    if ((bodies[at] ?? null) !== null) run.found('body-orphaned', { shard, blob });
  }
}

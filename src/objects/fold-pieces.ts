// Small pieces of objects that are appended to become larger ones, one object after the other and never before an answer:
// read, written as one blob under the same key, and put in their place by the shard. Whatever fails is left as it is: the
// next append or read meets it again, and what was written for nothing the sweep finds (R32).
import { must } from '../base/assert.ts';
import { BoundedMap } from '../base/bounded-map.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { FoldedSegment } from '../ports/compose-calls.ts';
import { isCrc } from '../types/checksums.ts';
import { LIMITS } from '../types/limits.ts';
import type { ObjectKey } from '../types/names.ts';
import { type FoldPiece, type FoldRule, piecesOf, planFold } from '../types/plan-fold.ts';
import { INTERNAL_TENANT } from '../types/tenant.ts';
import { mayBeFolded, ownBody, type VersionRecord, type WrappedKek } from '../types/version.ts';
import type { DataPath } from './data-path.ts';
import type { BucketTarget, MetadataCalls } from './object-store.ts';
import { readPieces } from './read-body.ts';
import { type WrittenBody, writeBody } from './write-body.ts';
import { sendCommit } from './write-object.ts';

export interface FoldTarget {
  calls: MetadataCalls;
  bucket: BucketTarget;
  key: ObjectKey;
  /** Which pieces are worth it. */
  rule: FoldRule;
}

export interface FoldPieces {
  /** Sooner or later, unless too many wait. */
  schedule(target: FoldTarget): void;
  /** Resolves when nothing waits, and nothing is under way. */
  settled(): Promise<void>;
  /** Nothing is folded any more; resolves when what is under way has ended. */
  stop(): Promise<void>;
}

interface Waiting extends FoldTarget {
  id: string;
}

export function createFoldPieces(path: DataPath): FoldPieces {
  const waiting = new Map<string, Waiting>();
  const stopping = new AbortController();
  const rests = createRests(path.clock);
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    for (;;) {
      const [next] = waiting.values();
      if (next === undefined || stopping.signal.aborted) break;
      waiting.delete(next.id);
      try {
        let outcome: FoldOutcome = 'more';
        while (!stopping.signal.aborted && outcome === 'more') {
          outcome = await foldOnce(path, next, stopping.signal);
          if (outcome !== 'nothing') rests.onFolded();
        }
      } catch (err) {
        if (stopping.signal.aborted) break;
        path.log.warn({ err }, 'pieces-not-folded');
        rests.onFailed(next.id);
        // It may have been asked for again meanwhile.
        waiting.delete(next.id);
        if (rests.areAll()) waiting.clear();
      }
    }
    running = undefined;
  }

  return {
    schedule(target) {
      const id = `${target.bucket.claim.bucketId}/${target.key}`;
      if (stopping.signal.aborted || rests.areAll() || rests.has(id)) return;
      if (waiting.has(id) || waiting.size >= LIMITS.foldsWaitingMax) return;
      waiting.set(id, { ...target, id });
      running ??= run();
    },
    async settled() {
      while (running !== undefined) await running;
    },
    async stop() {
      stopping.abort();
      waiting.clear();
      await running;
    },
  };
}

/**
 * What is written for nothing must not pile up: an object whose fold has failed rests, and where several fail one after the
 * other, which is not for what they hold, all do.
 */
function createRests(clock: ClockPort) {
  const untilMs = new BoundedMap<string, number>(LIMITS.foldsRestingMax);
  let allUntilMs = Number.NEGATIVE_INFINITY;
  let failuresInARow = 0;
  return {
    onFolded(): void {
      failuresInARow = 0;
    },
    onFailed(id: string): void {
      const restsUntilMs = clock.monotonicMs() + LIMITS.foldRestMs;
      untilMs.set(id, restsUntilMs);
      if (++failuresInARow < LIMITS.foldFailuresInARowMax) return;
      allUntilMs = restsUntilMs;
      // Else one that fails again would be enough from then on.
      failuresInARow = 0;
    },
    has: (id: string): boolean => clock.monotonicMs() < (untilMs.get(id) ?? Number.NEGATIVE_INFINITY),
    areAll: (): boolean => clock.monotonicMs() < allUntilMs,
  };
}

/** `more`: a run was folded, and there is another one. */
type FoldOutcome = 'nothing' | 'done' | 'more';

/** Folds one run of the current version's pieces. */
async function foldOnce(path: DataPath, target: FoldTarget, signal: AbortSignal): Promise<FoldOutcome> {
  const { calls, bucket, key, rule } = target;
  const shard = bucket.homeShard;
  const { bucketId } = bucket.claim;
  // Without the claim of the request that asked for it: what the bucket is called by now does not matter (R45).
  const { value } = await calls.query({ shard }, 'get-version', { bucketId, key, includeBody: false });
  const pieces = value.kind === 'found' ? piecesToFold(value.version, rule) : undefined;
  if (value.kind !== 'found' || pieces === undefined) return 'nothing';
  const { version } = value;
  const written = await writeFolded(path, target, { version, range: pieces.range, signal });
  const [birth] = written.births;
  const outcome = await sendCommit(written, () =>
    calls.execute({ shard }, 'fold-version', {
      ...{ bucketId, key, kek: pieces.kek },
      ...{ run: pieces.run, birth: must(birth, 'pieces have bytes') },
    }),
  );
  if (outcome.value.kind === 'folded') return planFold(pieces.after, rule) === undefined ? 'done' : 'more';
  if (outcome.value.kind !== 'exists') await written.abandon();
  // Something else was quicker, and sees to what it has left to be folded; or the bucket is being deleted.
  return 'nothing';
}

interface PiecesToFold {
  run: FoldedSegment[];
  /** Where they lie in the object. */
  range: { offsetBytes: number; sizeBytes: number };
  /** What the version consists of behind the fold. */
  after: FoldPiece[];
  kek: WrappedKek;
}

/** The pieces of a version that are worth folding. */
function piecesToFold(version: VersionRecord, rule: FoldRule): PiecesToFold | undefined {
  const { manifest, kek } = version;
  const body = ownBody(manifest);
  const pieces = piecesOf(body, version.appendCount);
  const plan = planFold(pieces, rule);
  if (body === undefined || plan === undefined || kek?.by !== 'master') return undefined;
  // What has come in the place of one that was appended to stays as it was written.
  if (!mayBeFolded(version)) return undefined;
  const sizeOf = (segments: readonly { sizeBytes: number }[]) =>
    segments.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const folded = body.segments.slice(plan.from, plan.to);
  const startBytes = manifest.kind === 'paged' ? (manifest.tail?.startBytes ?? 0) : 0;
  return {
    run: folded.map(({ use, offsetBytes, sizeBytes }) => {
      const { blobId, grown } = must(body.uses[use], 'a segment names a use of its manifest');
      return { blobId, offsetBytes, sizeBytes, ...(grown && { lastPieceId: grown.lastPieceId }) };
    }),
    range: {
      offsetBytes: startBytes + sizeOf(body.segments.slice(0, plan.from)),
      sizeBytes: sizeOf(folded),
    },
    after: pieces.toSpliced(plan.from, folded.length, { sizeBytes: sizeOf(folded) }),
    kek,
  };
}

async function writeFolded(
  path: DataPath,
  { calls, bucket }: FoldTarget,
  of: { version: VersionRecord; range: { offsetBytes: number; sizeBytes: number }; signal: AbortSignal },
): Promise<WrittenBody> {
  const { version, range, signal } = of;
  const { manifest, checksum } = version;
  const shard = bucket.homeShard;
  const kek = path.keys.openKek(version.kek);
  const reading = new AbortController();
  const stream = readPieces(path, {
    ...{ tenant: INTERNAL_TENANT, calls, kek, manifest, range },
    reread: async () => manifest,
    onEvicted: (error) => reading.abort(error),
  });
  const crcs = checksum !== undefined && isCrc(checksum.algorithm) ? [checksum.algorithm] : [];
  return writeBody(path, {
    ...{ tenant: INTERNAL_TENANT, stream, sizeBytes: range.sizeBytes, shard, kek },
    // Of the version, for ranges of it that are copied.
    wanted: { hashes: [], crcs: [...new Set(['CRC32' as const, ...crcs])] },
    timeMs: await path.times.timeMs(calls, shard),
    signal: AbortSignal.any([signal, reading.signal]),
  });
}

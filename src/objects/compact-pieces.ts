// Compacts the small pieces of appended objects, one object after the other and never before an answer: reads them, writes
// them as one blob under the same key, and has the shard replace them. A failed compaction is left alone: the next append
// or read schedules it again, and the sweep finds what was written in vain (R32).
import { must } from '../base/assert.ts';
import { BoundedMap } from '../base/bounded-map.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { CompactedSegment } from '../ports/metadata/versions.ts';
import { isCrc } from '../types/checksums.ts';
import { LIMITS } from '../types/limits.ts';
import type { ObjectKey } from '../types/names.ts';
import {
  type CompactionPiece,
  type CompactionRule,
  piecesOf,
  planCompaction,
} from '../types/plan-compaction.ts';
import { INTERNAL_TENANT } from '../types/tenant.ts';
import { mayBeCompacted, ownBody, type VersionRecord, type WrappedKek } from '../types/version.ts';
import type { DataPath } from './data-path.ts';
import type { BucketTarget, MetadataCalls } from './object-store.ts';
import { readPlaintext } from './read-body.ts';
import { type WrittenBody, writeBody } from './write-body.ts';
import { sendCommit } from './write-object.ts';

export interface CompactionTarget {
  calls: MetadataCalls;
  bucket: BucketTarget;
  key: ObjectKey;
  /** Decides which pieces are worth it. */
  rule: CompactionRule;
}

export interface PieceCompactor {
  /** Compacts it later, unless too many objects wait. */
  schedule(target: CompactionTarget): void;
  /** Resolves when no object waits, and none is being compacted. */
  settled(): Promise<void>;
  /** Starts nothing more; resolves when the current compaction has ended. */
  stop(): Promise<void>;
}

interface Waiting extends CompactionTarget {
  id: string;
}

export function createPieceCompactor(path: DataPath): PieceCompactor {
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
        let outcome: CompactionOutcome = 'more';
        while (!stopping.signal.aborted && outcome === 'more') {
          outcome = await compactOnce(path, next, stopping.signal);
          if (outcome !== 'nothing') rests.onCompacted();
        }
      } catch (err) {
        if (stopping.signal.aborted) break;
        path.log.warn({ err }, 'pieces-not-compacted');
        rests.onFailed(next.id);
        // It may have been scheduled again meanwhile.
        waiting.delete(next.id);
        if (rests.areAll()) waiting.clear();
      }
    }
    running = undefined;
  }

  return {
    schedule(target) {
      const id = `${target.bucket.believed.bucketId}/${target.key}`;
      if (stopping.signal.aborted || rests.areAll() || rests.has(id)) return;
      if (waiting.has(id) || waiting.size >= LIMITS.compactionsWaitingMax) return;
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
 * Data written in vain must not pile up: an object whose compaction failed is left alone for a while, and after several
 * failures in a row, which are not the objects' fault, all are.
 */
function createRests(clock: ClockPort) {
  const untilMs = new BoundedMap<string, number>(LIMITS.compactionsPausedMax);
  let allUntilMs = Number.NEGATIVE_INFINITY;
  let failuresInARow = 0;
  return {
    onCompacted(): void {
      failuresInARow = 0;
    },
    onFailed(id: string): void {
      const restsUntilMs = clock.monotonicMs() + LIMITS.compactionPauseMs;
      untilMs.set(id, restsUntilMs);
      if (++failuresInARow < LIMITS.compactionFailuresInARowMax) return;
      allUntilMs = restsUntilMs;
      // Otherwise a single further failure would be enough from then on.
      failuresInARow = 0;
    },
    has: (id: string): boolean => clock.monotonicMs() < (untilMs.get(id) ?? Number.NEGATIVE_INFINITY),
    areAll: (): boolean => clock.monotonicMs() < allUntilMs,
  };
}

/** `more`: a run was compacted, and there is another one. */
type CompactionOutcome = 'nothing' | 'done' | 'more';

/** Compacts one run of the current version's pieces. */
async function compactOnce(
  path: DataPath,
  target: CompactionTarget,
  signal: AbortSignal,
): Promise<CompactionOutcome> {
  const { calls, bucket, key, rule } = target;
  const shard = bucket.homeShard;
  const { bucketId } = bucket.believed;
  // Without the belief of the request that scheduled it: the bucket may have another name by now (R45).
  const { value } = await calls.query({ shard }, 'get-version', { bucketId, key, includeBody: false });
  const pieces = value.kind === 'found' ? piecesToCompact(value.version, rule) : undefined;
  if (value.kind !== 'found' || pieces === undefined) return 'nothing';
  const { version } = value;
  return writeCompacted(path, target, { version, range: pieces.range, signal }, async (written) => {
    const [newBlob] = written.births;
    const outcome = await sendCommit(written, () =>
      calls.execute({ shard }, 'fold-version', {
        bucketId,
        key,
        kek: pieces.kek,
        run: pieces.run,
        birth: must(newBlob, 'pieces have bytes'),
      }),
    );
    if (outcome.value.kind === 'folded')
      return planCompaction(pieces.after, rule) === undefined ? 'done' : 'more';
    if (outcome.value.kind !== 'exists') await written.abandon();
    // Another writer was faster, and schedules what is left; or the bucket is being deleted.
    return 'nothing';
  });
}

interface PiecesToCompact {
  run: CompactedSegment[];
  /** Their place in the object. */
  range: { offsetBytes: number; sizeBytes: number };
  /** The pieces of the version afterwards. */
  after: CompactionPiece[];
  kek: WrappedKek;
}

/** The pieces of a version that are worth compacting. */
function piecesToCompact(version: VersionRecord, rule: CompactionRule): PiecesToCompact | undefined {
  const { manifest, kek } = version;
  const body = ownBody(manifest);
  const pieces = piecesOf(body, version.appendCount);
  const plan = planCompaction(pieces, rule);
  if (body === undefined || plan === undefined || kek?.by !== 'master') return undefined;
  // An object that replaced an appended one stays as it was written.
  if (!mayBeCompacted(version)) return undefined;
  const sizeOf = (segments: readonly { sizeBytes: number }[]) =>
    segments.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const compacted = body.segments.slice(plan.from, plan.to);
  const startBytes = manifest.kind === 'paged' ? (manifest.tail?.startBytes ?? 0) : 0;
  return {
    run: compacted.map(({ use, offsetBytes, sizeBytes }) => {
      const { blobId, grown } = must(body.uses[use], 'a segment names a use of its manifest');
      return { blobId, offsetBytes, sizeBytes, ...(grown && { lastPieceId: grown.lastPieceId }) };
    }),
    range: {
      offsetBytes: startBytes + sizeOf(body.segments.slice(0, plan.from)),
      sizeBytes: sizeOf(compacted),
    },
    after: pieces.toSpliced(plan.from, compacted.length, { sizeBytes: sizeOf(compacted) }),
    kek,
  };
}

async function writeCompacted<T>(
  path: DataPath,
  { calls, bucket }: CompactionTarget,
  of: { version: VersionRecord; range: { offsetBytes: number; sizeBytes: number }; signal: AbortSignal },
  use: (written: WrittenBody) => Promise<T>,
): Promise<T> {
  const { version, range, signal } = of;
  const { manifest, checksum } = version;
  const shard = bucket.homeShard;
  const kek = path.keys.openKek(version.kek);
  const reading = new AbortController();
  const stream = readPlaintext(path, {
    tenant: INTERNAL_TENANT,
    isWithin: true,
    calls,
    kek,
    manifest,
    range,
    reread: async () => manifest,
    onEvicted: (error) => reading.abort(error),
  });
  const crcs = checksum !== undefined && isCrc(checksum.algorithm) ? [checksum.algorithm] : [];
  const body = {
    tenant: INTERNAL_TENANT,
    stream,
    sizeBytes: range.sizeBytes,
    shard,
    kek,
    // For ranges of the version that are copied.
    wanted: { hashes: [], crcs: [...new Set(['CRC32' as const, ...crcs])] },
    timeMs: await path.times.timeMs(calls, shard),
    signal: AbortSignal.any([signal, reading.signal]),
  };
  return writeBody(path, body, use);
}

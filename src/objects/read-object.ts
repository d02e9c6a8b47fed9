// THE GET STORY: open the key, locate and fetch the first piece, so that damage is an honest error and not a cut
// connection; then stream the rest behind it (read-body.ts), looking now and then whether the version is still there.
import { Readable } from 'node:stream';
import { LIMITS } from '../model/limits.ts';
import { dataLinkId, type VersionRecord } from '../model/version.ts';
import type { DataPath } from './data-path.ts';
import { fetchPage } from './locate-runs.ts';
import type { ByteRange, ObjectStore, OpenObject } from './object-store.ts';
import { openWholeInline, readPieces } from './read-body.ts';

type OpenInput = Parameters<ObjectStore['openObject']>[0];

/** Throws AppError InternalError or ServiceUnavailable when the first piece cannot be had. */
export async function openObject(path: DataPath, input: OpenInput): Promise<OpenObject> {
  const { found, range } = input;
  if (range.sizeBytes === 0) return { kind: 'bytes', bytes: Buffer.alloc(0) };
  const kek = path.keys.openKek(found.version.kek, input.customerKey);
  const { manifest } = found.version;
  if (found.inlineBody !== undefined && found.version.sizeBytes <= LIMITS.sealPieceBytes) {
    const bytes = openWholeInline(path, { kek, manifest, range, inlineBody: found.inlineBody });
    return { kind: 'bytes', bytes };
  }
  let stream: PieceStream | undefined;
  const pieces = readPieces(path, {
    calls: input.calls,
    kek,
    manifest,
    range,
    ...(found.inlineBody && { inlineBody: found.inlineBody }),
    isStillThere: () => isStillThere(input),
    onEvicted: (error) => stream?.destroy(error),
  });
  const first = await pieces.next();
  stream = new PieceStream(first.done === true ? [] : [first.value], pieces);
  return { kind: 'stream', stream, sizeBytes: range.sizeBytes };
}

/** Whether the version that was found still stands for the same data (R33). */
export async function isStillThere(
  input: Pick<OpenInput, 'calls' | 'bucket' | 'key' | 'found'>,
): Promise<boolean> {
  const { calls, bucket, key, found } = input;
  const { value } = await calls.query({ shard: bucket.homeShard, bucket: bucket.claim }, 'get-version', {
    bucketId: bucket.claim.bucketId,
    key,
    versionId: found.version.versionId,
    includeBody: false,
  });
  return value.kind === 'found' && dataLinkId(value.version.manifest) === dataLinkId(found.version.manifest);
}

/** Pieces as a stream: some at once, then those of `rest`, each asked for when the consumer has room. */
class PieceStream extends Readable {
  readonly #ready: Buffer[];
  readonly #rest: AsyncGenerator<Buffer>;

  constructor(ready: Buffer[], rest: AsyncGenerator<Buffer>) {
    super({ highWaterMark: LIMITS.sealPieceBytes });
    this.#ready = ready;
    this.#rest = rest;
  }

  override _read(): void {
    const ready = this.#ready.shift();
    if (ready !== undefined) {
      this.push(ready);
      return;
    }
    this.#rest.next().then(
      (next) => this.push(next.done === true ? null : next.value),
      (error) => this.destroy(error),
    );
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    // Not awaited: a fetch that is under way may take its time; what it holds is given back when it ends.
    this.#rest.return(undefined).catch(() => {});
    callback(error);
  }
}

/** Where a part lies (GET with partNumber): by its place in the list of parts, as they were completed. */
export async function partRange(
  input: Parameters<ObjectStore['partRange']>[0],
): ReturnType<ObjectStore['partRange']> {
  const { calls, version, partNumber } = input;
  const { manifest, sizeBytes } = version;
  const whole = { offsetBytes: 0, sizeBytes };
  if (manifest.kind === 'direct') {
    if (manifest.parts.length === 0) return partNumber === 1 ? { range: whole, partCount: 1 } : undefined;
    return partAt(manifest.parts, { partNumber, partStart: 0, startBytes: 0 }, manifest.parts.length);
  }
  const page = manifest.pages.findLastIndex(({ partStart }) => partStart < partNumber);
  const bounds = manifest.pages[page];
  if (partNumber > manifest.partCount || bounds === undefined) return undefined;
  const { parts } = await fetchPage(calls, manifest, page);
  return partAt(parts, { partNumber, ...bounds }, manifest.partCount);
}

function partAt(
  parts: Extract<VersionRecord['manifest'], { kind: 'direct' }>['parts'],
  at: { partNumber: number; partStart: number; startBytes: number },
  partCount: number,
): { range: ByteRange; partCount: number; checksum?: string } | undefined {
  const index = at.partNumber - 1 - at.partStart;
  const part = parts[index];
  if (part === undefined) return undefined;
  const offsetBytes = parts
    .slice(0, index)
    .reduce((total, { sizeBytes }) => total + sizeBytes, at.startBytes);
  const range = { offsetBytes, sizeBytes: part.sizeBytes };
  return { range, partCount, ...(part.checksum !== undefined && { checksum: part.checksum }) };
}

// The body of an upload as handlers see it: decoded from aws-chunked framing, its signatures checked as it flows, with
// what the client said of its digests. Reading it is bounded by back-pressure; nothing here buffers.
import type { SignedPieces } from '../../../objects/object-store.ts';
import type { ChecksumAlgorithm } from '../../../types/checksums.ts';
import { AppError } from '../../../types/errors.ts';

export interface RequestBody {
  /** Decoded payload. Ends early by throwing AppError: IncompleteBody, SignatureDoesNotMatch (chunk), and so on. */
  readonly stream: AsyncIterable<Buffer>;
  /**
   * Bytes of decoded payload: Content-Length, or x-amz-decoded-content-length for aws-chunked; undefined with
   * Transfer-Encoding: chunked alone, where only the end shows it.
   */
  readonly sizeBytes: number | undefined;
  /** The client waits to be asked for it (100-continue): until then a refusal spares it the sending. */
  readonly awaitsContinue: boolean;
  /** Content-MD5, hex. */
  readonly contentMd5?: string;
  /** x-amz-content-sha256 when it is a digest, hex; the writer must verify it. */
  readonly contentSha256?: string;
  /** x-amz-checksum-<algorithm>, base64, from the headers. */
  readonly checksum?: { algorithm: ChecksumAlgorithm; value: string };
  /** The algorithm that x-amz-trailer announces. */
  readonly trailerAlgorithm?: ChecksumAlgorithm;
  /** After the stream has ended: the trailer's checksum. */
  trailerChecksum(): string | undefined;
  /**
   * Of a body whose chunks are signed: a stream to be read in place of `stream`, which checks no signature of a chunk with bytes.
   * Whoever reads it does.
   */
  deferSignatures?(): { stream: AsyncIterable<Buffer>; deferred: SignedPieces };
}

/** The body, of `bytesMax` at most. Throws EntityTooLarge before a byte is read; of unknown size its stream does. */
export function boundBody(bytesMax: number, body: RequestBody): RequestBody {
  const { sizeBytes, stream } = body;
  if (sizeBytes === undefined) return { ...body, stream: boundStream(bytesMax, stream) };
  if (sizeBytes > bytesMax) throw tooLarge(sizeBytes, bytesMax);
  return body;
}

async function* boundStream(bytesMax: number, stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let sizeBytes = 0;
  for await (const buffer of stream) {
    sizeBytes += buffer.length;
    if (sizeBytes > bytesMax) throw tooLarge(sizeBytes, bytesMax);
    yield buffer;
  }
}

function tooLarge(sizeBytes: number, bytesMax: number): AppError {
  return new AppError('EntityTooLarge', { fields: { ProposedSize: sizeBytes, MaxSizeAllowed: bytesMax } });
}

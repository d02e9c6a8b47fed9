// The body of an upload as handlers see it: decoded from aws-chunked framing, its signatures checked as it flows, with
// what the client said of its digests. Reading it is bounded by back-pressure; nothing here buffers.
import type { ChecksumAlgorithm } from '../../model/checksums.ts';
import { AppError } from '../../model/errors.ts';

export interface RequestBody {
  /** Decoded payload. Ends early by throwing AppError: IncompleteBody, SignatureDoesNotMatch (chunk), and so on. */
  readonly stream: AsyncIterable<Buffer>;
  /** Bytes of decoded payload: Content-Length, or x-amz-decoded-content-length for aws-chunked. */
  readonly sizeBytes: number;
  /** The client waits to be asked for it (100-continue): until then a refusal spares it the sending. */
  readonly isUnasked: boolean;
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
}

/** Throws EntityTooLarge before the first byte of it is read. */
export function refuseLargerThan(bytesMax: number, { sizeBytes }: RequestBody): void {
  if (sizeBytes <= bytesMax) return;
  throw new AppError('EntityTooLarge', { fields: { ProposedSize: sizeBytes, MaxSizeAllowed: bytesMax } });
}

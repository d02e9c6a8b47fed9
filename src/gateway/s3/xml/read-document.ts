// Reads the whole body of an operation that takes a document, within its limit, and checks every digest that came with
// it before anybody looks at the text (pipeline, step 8).
import { createHash } from 'node:crypto';
import type { Patience } from '../../../base/async/patience.ts';
import { crcOf } from '../../../base/crypto/crc.ts';
import type { ObjectStore } from '../../../objects/object-store.ts';
import { type ChecksumAlgorithm, isCrc } from '../../../types/checksums.ts';
import { AppError } from '../../../types/errors.ts';
import type { Tenant } from '../../../types/tenant.ts';
import type { RequestBody } from '../request/request-body.ts';

/**
 * What `use` gives for what `understand` has made of it; the document's memory counts until then. Throws what they throw,
 * NotImplemented (of unknown size), MaxMessageLengthExceeded, BadDigest, XAmzContentSHA256Mismatch, SlowDown, and what the
 * body's stream throws.
 */
export async function readDocument<Understood, T>(
  objects: Pick<ObjectStore, 'collectBody'>,
  body: RequestBody,
  options: {
    bytesMax: number;
    tenant: Tenant;
    patience?: Patience;
    /** Awaited before anything is done with the whole. */
    turn(sizeBytes: number): Promise<void>;
    understand(document: Buffer): Promise<Understood>;
    use(understood: Understood): Promise<T>;
  },
): Promise<T> {
  const { bytesMax, tenant, patience, turn, understand, use } = options;
  const { stream, sizeBytes } = body;
  if (sizeBytes === undefined) {
    throw new AppError('NotImplemented', { fields: { Header: 'Transfer-Encoding' } });
  }
  if (sizeBytes > bytesMax) {
    throw new AppError('MaxMessageLengthExceeded', { fields: { MaxMessageLengthBytes: bytesMax } });
  }
  /** In a function of its own: the bytes are not kept while what they say is used. */
  function understood(buffers: Buffer[]): Promise<Understood> {
    const document = buffers.length === 1 ? (buffers[0] as Buffer) : Buffer.concat(buffers);
    buffers.length = 0;
    checkDigests(body, document);
    return understand(document);
  }
  return await objects.collectBody(
    { stream, sizeBytes, ...(patience && { patience }) },
    tenant,
    async (buffers) => {
      await turn(sizeBytes);
      return await use(await understood(buffers));
    },
  );
}

function checkDigests(body: RequestBody, document: Buffer): void {
  const { contentSha256, contentMd5, checksum, trailerAlgorithm } = body;
  if (contentSha256 !== undefined && digestOf('sha256', document).toString('hex') !== contentSha256) {
    throw new AppError('XAmzContentSHA256Mismatch');
  }
  if (contentMd5 !== undefined && digestOf('md5', document).toString('hex') !== contentMd5) {
    throw new AppError('BadDigest');
  }
  if (checksum !== undefined) checkChecksum(checksum.algorithm, document, checksum.value);
  if (trailerAlgorithm !== undefined) checkChecksum(trailerAlgorithm, document, body.trailerChecksum());
}

function checkChecksum(algorithm: ChecksumAlgorithm, document: Buffer, value: string | undefined): void {
  const digest = isCrc(algorithm) ? crcOf(algorithm, document) : digestOf(algorithm.toLowerCase(), document);
  if (Buffer.from(digest).toString('base64') !== value) throw new AppError('BadDigest');
}

function digestOf(algorithm: string, document: Buffer): Buffer {
  return createHash(algorithm).update(document).digest();
}

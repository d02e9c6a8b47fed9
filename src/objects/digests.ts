// The digests of a body, computed while it is written, and their comparison with what the client sent. The algorithms are
// in src/base/crypto; nothing is committed before `verifyDigests` has passed.

import { toBase64, toHex } from '../base/bytes/bytes.ts';
import type { BodyHashes, HashAlgorithm } from '../base/crypto/body-sealer.ts';
import type { CrcAlgorithm } from '../base/crypto/crc.ts';
import { type ChecksumAlgorithm, isCrc } from '../types/checksums.ts';
import { AppError } from '../types/errors.ts';
import type { BodySource } from './object-store.ts';

/** Raw digests of a whole body. */
export interface BodyDigests {
  hashes: BodyHashes;
  crcs: Partial<Record<CrcAlgorithm, Uint8Array>>;
}

export interface WantedDigests {
  hashes: HashAlgorithm[];
  crcs: CrcAlgorithm[];
}

/** `storedAlgorithm`: an algorithm whose checksum is stored even if the client sent none. */
export function wantedDigests(
  body: BodySource,
  storedAlgorithm: ChecksumAlgorithm | undefined,
): WantedDigests {
  // MD5 is the ETag; CRC32 is stored per chunk, so that checksums of ranges can be combined.
  const wanted: WantedDigests = { hashes: ['MD5'], crcs: ['CRC32'] };
  if (body.contentSha256 !== undefined) wanted.hashes.push('SHA256');
  for (const algorithm of [storedAlgorithm, declaredAlgorithm(body)]) {
    if (algorithm === undefined) continue;
    if (isCrc(algorithm)) {
      if (!wanted.crcs.includes(algorithm)) wanted.crcs.push(algorithm);
    } else if (!wanted.hashes.includes(algorithm)) wanted.hashes.push(algorithm);
  }
  return wanted;
}

/** The algorithm of x-amz-checksum-..., in the headers or in the trailer. */
export function declaredAlgorithm(body: BodySource): ChecksumAlgorithm | undefined {
  return body.checksum?.algorithm ?? body.trailerAlgorithm;
}

export function md5Hex({ hashes }: BodyDigests): string {
  return toHex(present(hashes.MD5));
}

/** undefined where the request gave none to check, so that it was not computed. */
export function sha256Hex({ hashes }: BodyDigests): string | undefined {
  return hashes.SHA256 && toHex(hashes.SHA256);
}

/** base64, as S3 shows it. */
export function checksumOf({ hashes, crcs }: BodyDigests, algorithm: ChecksumAlgorithm): string {
  return toBase64(present(isCrc(algorithm) ? crcs[algorithm] : hashes[algorithm]));
}

/** Throws AppError BadDigest or XAmzContentSHA256Mismatch. Call it after the stream has ended, because of trailers. */
export function verifyDigests(body: BodySource, digests: BodyDigests): void {
  if (body.contentMd5 !== undefined && body.contentMd5.toLowerCase() !== md5Hex(digests))
    throw new AppError('BadDigest', {
      message: 'The Content-MD5 you specified did not match what we received.',
    });
  if (body.contentSha256 !== undefined && body.contentSha256 !== toHex(present(digests.hashes.SHA256)))
    throw new AppError('XAmzContentSHA256Mismatch', {
      fields: {
        ClientComputedContentSHA256: body.contentSha256,
        S3ComputedContentSHA256: toHex(present(digests.hashes.SHA256)),
      },
    });
  if (body.checksum !== undefined)
    verifyChecksum(
      body.checksum.algorithm,
      body.checksum.value,
      checksumOf(digests, body.checksum.algorithm),
    );
  if (body.trailerAlgorithm !== undefined)
    verifyChecksum(body.trailerAlgorithm, body.trailerChecksum(), checksumOf(digests, body.trailerAlgorithm));
}

function verifyChecksum(algorithm: ChecksumAlgorithm, declared: string | undefined, computed: string): void {
  if (declared !== computed)
    throw new AppError('BadDigest', {
      message: `The ${algorithm} you specified did not match the calculated checksum.`,
    });
}

function present(digest: Uint8Array | undefined): Uint8Array {
  if (digest === undefined) throw new AppError('InternalError', { cause: new Error('a digest is missing') });
  return digest;
}

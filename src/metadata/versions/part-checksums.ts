// The checksum of an object of parts, from those of the parts (AWS "Checking object integrity": composite and full
// object). No byte of the parts is read.
import { createHash } from 'node:crypto';
import { must } from '../../base/assert.ts';
import type { Steps } from '../../base/async/steps.ts';
import { concatBytes, fromBase64, toBase64 } from '../../base/bytes/bytes.ts';
import { crcCombine, crcOf } from '../../base/crypto/crc.ts';
import { type ChecksumAlgorithm, type ChecksumType, isCrc } from '../../types/checksums.ts';
import type { PartRecord } from '../../types/records/rows.ts';

/** To combine the CRCs of so many parts takes 2 to 10 ms, by how many bits their sizes have. */
const COMBINED_IN_STEP = 512;

/**
 * base64, for COMPOSITE with "-N". undefined where a part has no checksum of this algorithm, or where the algorithm
 * cannot do without the bytes (SHA of the full object).
 */
export function* wholeChecksum(options: {
  algorithm: ChecksumAlgorithm;
  type: ChecksumType;
  parts: readonly PartRecord[];
}): Steps<string | undefined> {
  const { algorithm, type, parts } = options;
  const digests = parts.flatMap(({ checksum }) =>
    checksum?.algorithm === algorithm ? [fromBase64(checksum.value)] : [],
  );
  if (digests.length < parts.length) return undefined;
  if (type === 'COMPOSITE')
    return `${toBase64(digestOf(algorithm, concatBytes(...digests)))}-${parts.length}`;
  return isCrc(algorithm) ? toBase64(yield* combine(algorithm, digests, parts)) : undefined;
}

function digestOf(algorithm: ChecksumAlgorithm, bytes: Uint8Array): Uint8Array {
  return isCrc(algorithm) ? crcOf(algorithm, bytes) : createHash(algorithm).update(bytes).digest();
}

function* combine(
  algorithm: 'CRC32' | 'CRC32C' | 'CRC64NVME',
  digests: readonly Uint8Array[],
  parts: readonly PartRecord[],
): Steps<Uint8Array> {
  let whole = must(digests[0], 'one part at least');
  for (let index = 1; index < digests.length; index++) {
    const digest = must(digests[index], 'within them');
    whole = crcCombine(algorithm, whole, digest, must(parts[index], 'a digest per part').sizeBytes);
    if (index % COMBINED_IN_STEP === 0) yield;
  }
  return whole;
}

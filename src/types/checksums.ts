// The checksum words of S3 (AWS "Checking object integrity"). Computing them is in lib/ (crc) and node:crypto.

export const CHECKSUM_ALGORITHMS = ['CRC32', 'CRC32C', 'CRC64NVME', 'SHA1', 'SHA256'] as const;
export type ChecksumAlgorithm = (typeof CHECKSUM_ALGORITHMS)[number];

/** FULL_OBJECT: over all bytes. COMPOSITE: over the parts' checksums, written with "-N". */
export type ChecksumType = 'FULL_OBJECT' | 'COMPOSITE';

/** A stored checksum; `value` is base64, for COMPOSITE with the "-N" suffix. */
export interface Checksum {
  algorithm: ChecksumAlgorithm;
  type: ChecksumType;
  value: string;
}

/** Bytes of a digest by algorithm. */
export const CHECKSUM_BYTES = {
  CRC32: 4,
  CRC32C: 4,
  CRC64NVME: 8,
  SHA1: 20,
  SHA256: 32,
} as const satisfies Record<ChecksumAlgorithm, number>;

/** "x-amz-checksum-crc32" and so on. */
export function checksumHeader(algorithm: ChecksumAlgorithm): string {
  return `x-amz-checksum-${algorithm.toLowerCase()}`;
}

export function isCrc(algorithm: ChecksumAlgorithm): algorithm is 'CRC32' | 'CRC32C' | 'CRC64NVME' {
  return algorithm.startsWith('CRC');
}

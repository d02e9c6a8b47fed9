// What of RocksDB's errors means that bytes of a table are lost. Its other errors of reading (too many open files, say)
// may go away, and say nothing about the disk.
import { Corruption } from '../../base/corruption.ts';

/**
 * How messages of RocksDB end, which have no number of the error; the words are those of the C library (glibc, or another).
 * A read that ends so has met bytes that are gone: asked again, the medium or its checksums say the same.
 */
const LOST_BYTES = [
  // EIO: the medium does not give a sector back; btrfs and ZFS say so of a checksum that is wrong.
  ...['Input/output error', 'I/O error'],
  // EUCLEAN: XFS and ext4, of their own structures that lead to the bytes.
  'Structure needs cleaning',
  // EBADMSG: XFS and ext4, of a checksum of such a structure.
  ...['Bad message', 'Not a data message'],
  // ENODATA: the block layer, of a sector that the medium has lost.
  'No data available',
  // EILSEQ: dm-integrity and protected drives, of a sector whose checksum is wrong.
  ...['Invalid or incomplete multibyte or wide character', 'Illegal byte sequence'],
];

export function isCorruption(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (code === 'LEVEL_CORRUPTION') return true;
  return code === 'LEVEL_IO_ERROR' && LOST_BYTES.some((words) => String(message).includes(`: ${words}`));
}

/** The error as KvPort defines it. */
export function toReadError(error: unknown): unknown {
  if (!isCorruption(error)) return error;
  return new Corruption(error instanceof Error ? error.message : String(error), { cause: error });
}

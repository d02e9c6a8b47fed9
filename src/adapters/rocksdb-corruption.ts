// What of RocksDB's errors means that bytes of a table are lost. Its other errors of reading (too many open files, say)
// may go away, and say nothing about the disk.
import { Corruption } from '../lib/corruption.ts';

export function isCorruption(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (code === 'LEVEL_CORRUPTION') return true;
  // EIO: the medium itself does not give a sector back.
  return code === 'LEVEL_IO_ERROR' && String(message).includes('Input/output error');
}

/** The error as KvPort tells it. */
export function toReadError(error: unknown): unknown {
  if (!isCorruption(error)) return error;
  return new Corruption(error instanceof Error ? error.message : String(error), { cause: error });
}

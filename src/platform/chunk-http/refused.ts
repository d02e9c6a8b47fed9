// Why a request gets no 2xx, as wire.ts says it to the other end.
import { ChunkUnread, OldFence, OtherBytes, OwnedHere, StaleMap } from '../../types/chunk-refusals.ts';
import { AppError } from '../../types/errors.ts';
import type { RefusalCode } from './wire.ts';

/** Ends the request; the rest of its body is read and dropped, so that the connection can go on. */
export class Refused extends Error {
  readonly code: RefusalCode;

  constructor(code: RefusalCode, cause?: unknown) {
    super(code, { cause });
    this.code = code;
  }
}

export function codeOf(error: unknown): RefusalCode {
  if (error instanceof Refused) return error.code;
  if (error instanceof StaleMap) return 'stale-map';
  if (error instanceof OldFence) return 'old-fence';
  if (error instanceof OwnedHere) return 'owned-here';
  if (error instanceof OtherBytes) return 'other-bytes';
  if (error instanceof ChunkUnread) return 'unread';
  if (!(error instanceof AppError)) return 'failed';
  if (error.code === 'InsufficientStorage') return 'full';
  return error.code === 'SlowDown' ? 'busy' : 'failed';
}

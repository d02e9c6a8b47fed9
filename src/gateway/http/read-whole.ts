// Reads the whole body of a request that is small: bounded in bytes and in time.
import type { ClockPort } from '../../ports/clock.ts';
import { AppError } from '../../types/errors.ts';
import type { Exchange } from './exchange.ts';

/** `bodyMaxMs`: until its last byte. Throws MaxMessageLengthExceeded, RequestTimeout, and what the body's reader throws. */
export async function readWhole(
  exchange: Exchange,
  {
    bodyBytesMax,
    bodyMaxMs,
    clock,
  }: { bodyBytesMax: number; bodyMaxMs: number; clock: Pick<ClockPort, 'sleep'> },
): Promise<Buffer> {
  const { body } = exchange;
  if (body.isAtEnd) return Buffer.alloc(0);
  const isDone = new AbortController();
  void clock.sleep(bodyMaxMs, isDone.signal).then(() => {
    if (!isDone.signal.aborted) body.fail(new AppError('RequestTimeout'));
  });
  try {
    const buffers: Buffer[] = [];
    let sizeBytes = 0;
    for (;;) {
      const buffer = await body.read();
      if (buffer === undefined) return Buffer.concat(buffers);
      sizeBytes += buffer.length;
      if (sizeBytes > bodyBytesMax) throw new AppError('MaxMessageLengthExceeded');
      buffers.push(buffer);
    }
  } finally {
    isDone.abort();
  }
}

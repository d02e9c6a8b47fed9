// Reads the whole body of a request that is small: bounded in bytes and in time, and where it is known who asks, by what the
// tenant's requests hold together.
import type { ClockPort } from '../../ports/clock.ts';
import { AppError } from '../../types/errors.ts';
import type { Exchange } from './exchange.ts';
import type { ServiceDependencies } from './service-route.ts';
import { takeBodyShare } from './shedding.ts';

interface BodyBounds {
  readonly bodyBytesMax: number;
  /** Until its last byte. */
  readonly bodyMaxMs: number;
}

/** Of one who has proved who asks. Throws as readWhole, and SlowDown where the tenant's bodies have used up its share. */
export async function readProved(
  deps: Pick<ServiceDependencies, 'clock' | 'provedBodies' | 'shedding'>,
  exchange: Exchange,
  bounds: BodyBounds,
): Promise<Buffer> {
  const units = bodyBytesOf(exchange, bounds.bodyBytesMax);
  takeBodyShare(deps.shedding, deps.provedBodies, { exchange, units, until: exchange.closed });
  return readWhole(exchange, { ...bounds, clock: deps.clock });
}

/** What a body may have at most, by the head. Throws MaxMessageLengthExceeded. */
export function bodyBytesOf({ body }: Exchange, bodyBytesMax: number): number {
  const { declaredBytes = bodyBytesMax } = body;
  if (declaredBytes > bodyBytesMax) throw new AppError('MaxMessageLengthExceeded');
  return body.isAtEnd ? 0 : declaredBytes;
}

/** Throws MaxMessageLengthExceeded, RequestTimeout, and what the body's reader throws. */
export async function readWhole(
  exchange: Exchange,
  { bodyBytesMax, bodyMaxMs, clock }: BodyBounds & { clock: Pick<ClockPort, 'sleep'> },
): Promise<Buffer> {
  const { body } = exchange;
  if (body.isAtEnd) return Buffer.alloc(0);
  const sentByClient = exchange.patience.begin('client');
  const isDone = new AbortController();
  void clock.sleep(bodyMaxMs, isDone.signal).then(() => {
    if (!isDone.signal.aborted) body.fail(new AppError('RequestTimeout'));
  });
  try {
    const buffers: Buffer[] = [];
    let sizeBytes = 0;
    for (;;) {
      const buffer = await body.read();
      if (buffer === undefined) {
        await body.documentTurn(sizeBytes);
        return Buffer.concat(buffers);
      }
      sizeBytes += buffer.length;
      if (sizeBytes > bodyBytesMax) throw new AppError('MaxMessageLengthExceeded');
      buffers.push(buffer);
    }
  } finally {
    isDone.abort();
    sentByClient();
  }
}

// Places in which the present of accounts is read. It asks all shards of each account, so lists of many accounts wait here, and
// not for thousands of answers. Everybody who pays has places of his own: where a shard does not answer, each of them is held
// for seconds, and only his own lists wait for it. Nobody waits longer than for a shard, nor for a client that has gone.
import { type ByteGate, createByteGate } from '../base/async/byte-gate.ts';
import { CANCELLED } from '../base/async/cancelled.ts';
import type { ClockPort } from '../ports/clock.ts';
import { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';

/** Who asks. */
export interface Asker {
  /** Whom it counts against: a partner, or all operators together. */
  readonly payer: string;
  /** Aborts when the client has gone. */
  gone?(): AbortSignal;
}

export const OPERATORS: Asker = { payer: 'operator' };

export interface PresentPlaces {
  /** Does the work in one of the asker's places. Rejects as it does, or with ServiceUnavailable where no place came free. */
  within<T>(asker: Asker, work: () => Promise<T>): Promise<T>;
}

/** Accounts of one payer whose present is read at once. */
const AT_ONCE = 4;

export function createPresentPlaces(clock: Pick<ClockPort, 'sleep'>): PresentPlaces {
  const payers = new Map<string, { gate: ByteGate; count: number }>();

  async function enter(gate: ByteGate, { gone }: Asker): Promise<void> {
    const entered = new AbortController();
    const late = new AbortController();
    const deadline = () => {
      const over = clock.sleep(LIMITS.metadataAnswerMaxMs, entered.signal);
      void over.then(() => late.abort(CANCELLED));
      return gone === undefined ? late.signal : AbortSignal.any([late.signal, gone()]);
    };
    try {
      gone?.().throwIfAborted();
      await gate.enter(1, deadline);
    } catch (cause) {
      throw new AppError('ServiceUnavailable', { cause });
    } finally {
      entered.abort(CANCELLED);
    }
  }

  return {
    async within(asker, work) {
      const places = payers.get(asker.payer) ?? { gate: createByteGate(AT_ONCE), count: 0 };
      payers.set(asker.payer, places);
      places.count++;
      try {
        await enter(places.gate, asker);
        try {
          return await work();
        } finally {
          places.gate.leave(1);
        }
      } finally {
        if (--places.count === 0) payers.delete(asker.payer);
      }
    },
  };
}

/** Throws ServiceUnavailable for a client that has gone: nobody waits for the rest. */
export function requireHere({ gone }: Asker): void {
  if (gone?.().aborted === true) throw new AppError('ServiceUnavailable');
}

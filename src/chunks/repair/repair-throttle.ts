// Bounds the repair of a node: transfers at once, and bytes per second, so that clients keep most of the machines (R39).
import type { ClockPort } from '../../ports/clock.ts';

export interface RepairThrottle {
  /** Runs `pull` when it is its turn. Rejects without running it when `signal` aborts before. */
  run<T>(sizeBytes: number, signal: AbortSignal, pull: () => Promise<T>): Promise<T>;
}

export function createRepairThrottle(options: {
  clock: ClockPort;
  inFlightMax: number;
  /** 0: unlimited. */
  bytesPerSecond: number;
}): RepairThrottle {
  const { clock, inFlightMax, bytesPerSecond } = options;
  const waiting: (() => void)[] = [];
  let inFlight = 0;
  /** When the admitted bytes are paid for. */
  let paidAtMs = clock.monotonicMs();

  async function pay(sizeBytes: number, signal: AbortSignal): Promise<void> {
    if (bytesPerSecond === 0) return;
    const nowMs = clock.monotonicMs();
    const startMs = Math.max(paidAtMs, nowMs);
    paidAtMs = startMs + (sizeBytes / bytesPerSecond) * 1000;
    if (startMs > nowMs) await clock.sleep(startMs - nowMs, signal);
  }

  return {
    async run(sizeBytes, signal, pull) {
      if (inFlight >= inFlightMax) await new Promise<void>((resolve) => waiting.push(resolve));
      else inFlight++;
      try {
        signal.throwIfAborted();
        await pay(sizeBytes, signal);
        signal.throwIfAborted();
        return await pull();
      } finally {
        // The place goes to the one that has waited longest.
        const next = waiting.shift();
        if (next === undefined) inFlight--;
        else next();
      }
    },
  };
}

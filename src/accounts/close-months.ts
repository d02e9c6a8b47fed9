// The worker that writes invoices: each month once all of its days are over and counted, one after the other, also those that
// came while nothing ran. It works where the system shard is led.
import { SYSTEM_SHARD } from '../ports/metadata/port.ts';
import type { Logger } from '../ports/telemetry.ts';
import type { Worker } from '../ports/worker.ts';
import type { Invoices } from './invoices.ts';

/** From one look to the next: invoices may wait that long behind the last record of a month. */
const LOOK_EVERY_MS = 5 * 60_000;

export function createMonthCloser(deps: {
  invoices: Pick<Invoices, 'closeNext'>;
  /** Those whose open primary is here. */
  shards(): readonly number[];
  log: Pick<Logger, 'info'>;
}): Worker {
  const { invoices, shards, log } = deps;
  return {
    name: 'close-months',
    async work() {
      const idle = { state: 'idle' as const, idleMs: LOOK_EVERY_MS };
      if (!shards().includes(SYSTEM_SHARD)) return idle;
      const month = await invoices.closeNext();
      if (month === undefined) return idle;
      log.info({ month }, 'month-closed');
      return { state: 'busy' };
    },
  };
}

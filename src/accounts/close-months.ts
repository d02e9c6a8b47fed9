// The worker that writes invoices: each month once all of its days are over and counted, one after the other, also those that
// came while nothing ran. It works where the system shard is led, and not while a jump of its clock waits for the operator's word:
// what is closed stays so.
import type { ClockPort } from '../ports/clock.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../ports/metadata/port.ts';
import type { Logger } from '../ports/telemetry.ts';
import type { TimeJumps } from '../ports/time-jumps.ts';
import type { Worker } from '../ports/worker.ts';
import { createBilledCustomers } from './billed-customers.ts';
import { createInvoices, type Invoices } from './invoices.ts';
import { createTenancyDirectory } from './tenancy-directory.ts';
import { TenancyTree } from './tenancy-tree.ts';
import { createUsages } from './usages.ts';

/** From one look to the next: invoices may wait that long behind the last record of a month. */
const LOOK_EVERY_MS = 5 * 60_000;

export function createMonthCloser(deps: {
  invoices: Pick<Invoices, 'closeNext'>;
  /** Those whose open primary is here. */
  shards(): readonly number[];
  timeJumps: Pick<TimeJumps, 'mayRemoveByAge'>;
  log: Pick<Logger, 'info'>;
}): Worker {
  const { invoices, shards, timeJumps, log } = deps;
  return {
    name: 'close-months',
    async work() {
      const idle = { state: 'idle' as const, idleMs: LOOK_EVERY_MS };
      if (!shards().includes(SYSTEM_SHARD) || !timeJumps.mayRemoveByAge(SYSTEM_SHARD)) return idle;
      const month = await invoices.closeNext();
      if (month === undefined) return idle;
      log.info({ month }, 'month-closed');
      return { state: 'busy' };
    },
  };
}

/** The worker where shards are led: it has invoices of its own. */
export function createMonthWorker({
  metadata,
  clock,
  ...deps
}: Omit<Parameters<typeof createMonthCloser>[0], 'invoices'> & {
  metadata: MetadataPort;
  clock: Pick<ClockPort, 'wallMs' | 'sleep'>;
}): Worker {
  const customers = createBilledCustomers(new TenancyTree(metadata, createTenancyDirectory(metadata)));
  const invoices = createInvoices({ metadata, usages: createUsages(metadata, clock), customers, clock });
  return createMonthCloser({ ...deps, invoices });
}

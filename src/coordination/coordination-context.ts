// What all ports of coordination share.
import type { ClockPort } from '../ports/clock.ts';
import type { Logger } from '../ports/telemetry.ts';
import type { CoordinationStore } from './store.ts';

export interface CoordinationContext {
  store: CoordinationStore;
  clock: ClockPort;
  log: Logger;
  /** Prefix of all keys of this cluster; ends in a slash. */
  prefix: string;
  /** This process, as locks and their waiters are shown. */
  holder: string;
  memberLeaseMs: number;
  jobLeaseMs: number;
}

// What every part of a server is given when it is wired.
import type { PromTelemetry } from '../src/adapters/prom-telemetry.ts';
import type { RecentErrors } from '../src/adapters/recent-errors.ts';
import type { Config } from '../src/config/schema.ts';
import type { ClockPort, RandomPort } from '../src/ports/clock.ts';

export interface Surroundings {
  config: Config;
  log: RecentErrors;
  telemetry: PromTelemetry;
  clock: ClockPort;
  random: RandomPort;
  /** Takes over what closes the parts; they close in the reverse order of their opening. */
  closing: AsyncDisposableStack;
}

// What every part of a server is given when it is wired.
import type { LoopWatch } from '../src/adapters/loop-watch.ts';
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
  /** How late the event loop of this process has been. */
  loop: LoopWatch;
  /** Takes over what closes the parts; they close in the reverse order of their opening. */
  closing: AsyncDisposableStack;
}

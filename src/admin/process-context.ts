// What every part of a server gets when it is wired.

import type { Config } from '../config/schema.ts';
import type { LoopWatch } from '../platform/telemetry/loop-watch.ts';
import type { PromTelemetry } from '../platform/telemetry/prom-telemetry.ts';
import type { RecentErrors } from '../platform/telemetry/recent-errors.ts';
import type { ClockPort, RandomPort } from '../ports/clock.ts';

export interface ProcessContext {
  config: Config;
  log: RecentErrors;
  telemetry: PromTelemetry;
  clock: ClockPort;
  random: RandomPort;
  /** The delay of this process's event loop. */
  loop: LoopWatch;
  /** Closes the parts, in the reverse order of their opening. */
  closing: AsyncDisposableStack;
}

/** A role of a cluster that has started. */
export interface RunningRole {
  /** Where it is reached. */
  readonly address: string;
  readonly nodeId: string;
  readonly clusterId: string;
  /** Resolves with the error when a store has failed for good (R20): the process must end. */
  readonly failed: Promise<Error>;
  /** Whether it can do its work now. */
  isReady(): boolean;
  /** Reads certificates again. */
  reload?(): Promise<void>;
}

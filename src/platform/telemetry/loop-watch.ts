// Watches how late the event loop is, for as long as the process runs: gauges of the last looks, a line in the log when it
// stood still, and for the operator the longest of the last minutes. Two measurements overlap, so that no moment is left out.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { ClockPort, LoopDelayPort } from '../../ports/clock.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import { LIMITS } from '../../types/limits.ts';

const METRIC = 'holdfast_event_loop_delay_seconds';
/** The monitor is a timer of so long, and counts its whole time: what is beyond it is the delay. */
const RESOLUTION_MS = 20;
const NS_PER_MS = 1e6;
/** Of one delay two measurements tell, which overlap. */
const LOOKS_HELD_MIN = 3;

export interface LoopWatch {
  /**
   * The longest delay of LIMITS.loopHeldMs or more within LIMITS.loopHeldShownMs, where there were several; 0 otherwise:
   * one alone may be a pause of the machine.
   */
  heldMs(): number;
}

/** Of the thread that asks, by Node itself. */
export const systemLoopDelay: LoopDelayPort = {
  measure() {
    const monitor = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    monitor.enable();
    const delayOf = (ns: number) => Math.max(0, ns / NS_PER_MS - RESOLUTION_MS);
    return {
      end() {
        monitor.disable();
        const isEmpty = monitor.count === 0;
        return {
          maxMs: isEmpty ? 0 : delayOf(monitor.max),
          p99Ms: isEmpty ? 0 : delayOf(monitor.percentile(99)),
        };
      },
    };
  },
};

/** Looks every LIMITS.loopLookMs until `signal` aborts. */
export function watchLoop(
  deps: { clock: ClockPort; telemetry: TelemetryPort; log: Logger; delay: LoopDelayPort },
  signal: AbortSignal,
): LoopWatch {
  const { clock, telemetry, log, delay } = deps;
  let held: { atMs: number; delayMs: number }[] = [];
  const forget = () => {
    const sinceMs = clock.monotonicMs() - LIMITS.loopHeldShownMs;
    held = held.filter(({ atMs }) => atMs >= sinceMs);
  };

  function look({ maxMs, p99Ms }: { maxMs: number; p99Ms: number }): void {
    telemetry.gauge(METRIC, maxMs / 1000, { statistic: 'max' });
    telemetry.gauge(METRIC, p99Ms / 1000, { statistic: 'p99' });
    forget();
    if (maxMs < LIMITS.loopHeldMs) return;
    const atMs = clock.monotonicMs();
    const last = held.at(-1);
    held.push({ atMs, delayMs: maxMs });
    // Measurements overlap: the one before has reported it.
    if (last !== undefined && atMs - last.atMs <= LIMITS.loopLookMs + last.delayMs) return;
    log.warn({ delayMs: Math.round(maxMs) }, 'event-loop-held');
  }

  async function run(): Promise<void> {
    let older = delay.measure();
    let newer = delay.measure();
    while (!signal.aborted) {
      await clock.sleep(LIMITS.loopLookMs, signal);
      look(older.end());
      older = newer;
      newer = delay.measure();
    }
    older.end();
    newer.end();
  }
  void run();

  return {
    heldMs() {
      forget();
      if (held.length < LOOKS_HELD_MIN) return 0;
      return Math.max(...held.map(({ delayMs }) => delayMs));
    },
  };
}

/** Of this thread, until `closing` is closed. */
export function startLoopWatch(deps: {
  clock: ClockPort;
  telemetry: TelemetryPort;
  log: Logger;
  closing: AsyncDisposableStack;
}): LoopWatch {
  const stopping = new AbortController();
  deps.closing.defer(() => stopping.abort());
  return watchLoop({ ...deps, delay: systemLoopDelay }, stopping.signal);
}

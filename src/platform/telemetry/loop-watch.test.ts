import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { countedTelemetry } from '../../../tests/support/run/counted-telemetry.ts';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import type { LoopDelay } from '../../ports/clock.ts';
import { LIMITS } from '../../types/limits.ts';
import { systemLoopDelay, watchLoop } from './loop-watch.ts';

const METRIC = 'holdfast_event_loop_delay_seconds';
const CALM: LoopDelay = { maxMs: 2, p99Ms: 1 };

/** A watch whose measurements give what is set. */
function watched() {
  const clock = createManualClock(0);
  const stopping = new AbortController();
  const lines: [object, string][] = [];
  const warn = (fields: object, event: string) => void lines.push([fields, event]);
  const log = { debug() {}, info() {}, warn, error: warn };
  const { telemetry, linesOf } = countedTelemetry();
  const now = { delay: CALM, open: 0 };
  const measure = () => {
    now.open++;
    return {
      end() {
        now.open--;
        return now.delay;
      },
    };
  };
  const watch = watchLoop({ clock, telemetry, log, delay: { measure } }, stopping.signal);
  const look = async (delay: LoopDelay) => {
    now.delay = delay;
    clock.advance(LIMITS.loopLookMs);
    await setImmediate();
  };
  return { watch, look, lines, linesOf, clock, now, stopping };
}

test('metrics have the delays of the last looks', async () => {
  const { watch, look, linesOf, lines } = watched();
  await look({ maxMs: 30, p99Ms: 12 });
  expect(await linesOf(METRIC)).toEqual(['{statistic="max"} 0.03', '{statistic="p99"} 0.012']);
  await look(CALM);
  expect(await linesOf(METRIC)).toEqual(['{statistic="max"} 0.002', '{statistic="p99"} 0.001']);
  expect([watch.heldMs(), lines]).toEqual([0, []]);
});

test('a loop that stood still is logged; a second time it is an alarm for some minutes', async () => {
  const { watch, look, lines, clock } = watched();
  await look({ maxMs: 2100, p99Ms: 3 });
  // The measurement that overlaps has seen it, too.
  await look({ maxMs: 2101, p99Ms: 3 });
  await look(CALM);
  expect(lines).toEqual([[{ delayMs: 2100 }, 'event-loop-held']]);
  expect(watch.heldMs(), 'once is no alarm').toBe(0);
  await look({ maxMs: 1200, p99Ms: 3 });
  expect(watch.heldMs()).toBe(2101);
  clock.advance(LIMITS.loopHeldShownMs + 1);
  expect(watch.heldMs()).toBe(0);
});

test('measurements overlap, and all end with the watch', async () => {
  const { look, now, stopping } = watched();
  await look(CALM);
  expect(now.open).toBe(2);
  stopping.abort();
  await setImmediate();
  expect(now.open).toBe(0);
});

test('Node sees a blocked thread', async () => {
  const measured = systemLoopDelay.measure();
  await new Promise((resolve) => setTimeout(resolve, 100));
  const until = performance.now() + 300;
  while (performance.now() < until);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(measured.end().maxMs).toBeGreaterThan(200);
});

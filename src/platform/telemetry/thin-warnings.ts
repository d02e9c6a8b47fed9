// A log in which a warning that says the same again and again stands once, and then once a minute with how often it came.
import { BoundedMap } from '../../base/bounded-map.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { Logger } from '../../ports/telemetry.ts';

const REPEAT_AFTER_MS = 60_000;
const KINDS_MAX = 1000;

/** Passes on all but warnings that repeat one of the last minute. */
export function thinWarnings<L extends Logger>(log: L, clock: Pick<ClockPort, 'monotonicMs'>): L {
  const kinds = new BoundedMap<string, { loggedMs: number; heldCount: number }>(KINDS_MAX);
  return {
    ...log,
    warn(fields: object, event: string) {
      const kind = `${event} ${textOf(fields)}`;
      const known = kinds.get(kind);
      const nowMs = clock.monotonicMs();
      if (known !== undefined && nowMs - known.loggedMs < REPEAT_AFTER_MS) {
        known.heldCount++;
        return;
      }
      const repeats = known === undefined || known.heldCount === 0 ? {} : { repeats: known.heldCount };
      kinds.set(kind, { loggedMs: nowMs, heldCount: 0 });
      log.warn({ ...fields, ...repeats }, event);
    },
  };
}

/** Errors by what they say: the stack of one failure differs from that of the next. */
function textOf(fields: object): string {
  return JSON.stringify(fields, (_, value) =>
    value instanceof Error ? value.message : typeof value === 'bigint' ? String(value) : value,
  );
}

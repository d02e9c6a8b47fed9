// Remembers the last errors that went to the log, so that the operator sees them without reading it. In memory only. What
// is logged again and again is kept once, or a client that repeats a request would push out all others.
import type { ClockPort } from '../../ports/clock.ts';
import type { Logger } from '../../ports/telemetry.ts';

const ERRORS_MAX = 20;

export interface RecentError {
  /** ISO 8601. */
  at: string;
  event: string;
  message: string;
  /** How often it has been logged since it was first kept; `at` is the last time. */
  count: number;
}

export interface RecentErrors extends Logger {
  /** Remembers an error that another log has written. */
  note(event: string, message: string): void;
  /** Newest first. */
  recent(): readonly RecentError[];
}

/** A log that passes everything on to `log`. */
export function rememberErrors(log: Logger, clock: Pick<ClockPort, 'wallMs'>): RecentErrors {
  const errors: RecentError[] = [];
  function note(event: string, message: string): void {
    const same = errors.findIndex((known) => known.event === event && known.message === message);
    const before = same === -1 ? [] : errors.splice(same, 1);
    const count = 1 + (before[0]?.count ?? 0);
    errors.unshift({ at: new Date(clock.wallMs()).toISOString(), event, message, count });
    errors.length = Math.min(errors.length, ERRORS_MAX);
  }
  return {
    note,
    debug: (fields, event) => log.debug(fields, event),
    info: (fields, event) => log.info(fields, event),
    warn: (fields, event) => log.warn(fields, event),
    error(fields, event) {
      note(event, messageOf(fields));
      log.error(fields, event);
    },
    recent: () => [...errors],
  };
}

/** What an error of the log says. */
export function messageOf(fields: object): string {
  const { err } = fields as { err?: unknown };
  return err instanceof Error ? err.message : JSON.stringify(fields);
}

// The log of a thread: lines are made here, where there is time, and written by the main thread, so that each is whole. The lines
// of a turn of the event loop go together. Each says by `thread` which one it is of.
import type { ClockPort } from '../../ports/clock.ts';
import { createJsonLog, type JsonLogOptions } from '../telemetry/json-log.ts';
import { messageOf, type RecentErrors } from '../telemetry/recent-errors.ts';
import { thinWarnings } from '../telemetry/thin-warnings.ts';
import type { ThreadLine } from './thread-line.ts';

export interface ThreadLog extends RecentErrors {
  /** Sends what waits. */
  flush(): void;
}

/** The main thread serves `writeLog` and `noteError`, and remembers the errors of all threads. */
export function createThreadLog(
  line: ThreadLine,
  options: Pick<JsonLogOptions, 'level'> & { thread: number | string; clock: Pick<ClockPort, 'monotonicMs'> },
): ThreadLog {
  const { level, thread, clock } = options;
  let lines = '';
  let isScheduled = false;
  function send(): void {
    isScheduled = false;
    if (lines !== '') line.tell('writeLog', lines);
    lines = '';
  }
  const destination = {
    write(text: string) {
      lines += text;
      if (isScheduled) return;
      isScheduled = true;
      setImmediate(send);
    },
  };
  const log = thinWarnings(createJsonLog({ level, destination, fields: { thread } }), clock);
  const note = (event: string, message: string) => line.tell('noteError', { event, message });
  return {
    debug: (fields, event) => log.debug(fields, event),
    info: (fields, event) => log.info(fields, event),
    warn: (fields, event) => log.warn(fields, event),
    error(fields, event) {
      note(event, messageOf(fields));
      log.error(fields, event);
    },
    note,
    recent: () => [],
    flush() {
      send();
      line.flush();
    },
  };
}

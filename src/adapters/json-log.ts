// The log: one JSON line each on standard output, with time, level, event and fields, written by pino.
// Which events there are is decided where they happen; requests are logged by the gateway's access record.
import { type DestinationStream, destination, pino, stdTimeFunctions } from 'pino';
import type { Logger } from '../ports/telemetry.ts';

export interface JsonLogOptions {
  /** Least severe level to write. */
  readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** Default: standard output, written from the event loop without blocking it. */
  readonly destination?: DestinationStream;
}

export interface JsonLog extends Logger {
  /** Writes out what is still in memory; for the moment before the process ends. */
  flush(): void;
}

/** Fields that would hold a secret if a caller forgot himself. Of the line itself only: deeper ones cost 9 us a line. */
const SECRET_FIELDS = ['secretKey', 'authorization', 'password', 'masterKey'];

export function createJsonLog(options: JsonLogOptions): JsonLog {
  const stdout = options.destination ?? destination({ dest: 1, sync: false });
  const log = pino(
    {
      level: options.level,
      messageKey: 'event',
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
      redact: { paths: SECRET_FIELDS, censor: '(secret)' },
    },
    stdout,
  );
  return {
    debug: (fields, event) => log.debug(fields, event),
    info: (fields, event) => log.info(fields, event),
    warn: (fields, event) => log.warn(fields, event),
    error: (fields, event) => log.error(fields, event),
    flush: () => {
      if ('flushSync' in stdout && typeof stdout.flushSync === 'function') stdout.flushSync();
    },
  };
}

// The log: one JSON line each on standard output, with time, level, event and fields, written by pino.
// Which events there are is decided where they happen; requests are logged by the gateway's access record.
import { type DestinationStream, destination, pino, stdSerializers, stdTimeFunctions } from 'pino';
import { Refusal } from '../../base/refusal.ts';
import type { Logger } from '../../ports/telemetry.ts';

interface Destination extends DestinationStream {
  on?(event: 'drop' | 'drain', listener: (text?: string) => void): unknown;
  flush?(whenDone: () => void): void;
  flushSync?(): void;
}

export interface JsonLogOptions {
  /** Least severe level to write. */
  readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** Of every line. */
  readonly fields?: Readonly<Record<string, string | number>>;
  /** Default: standard output, written from the event loop without blocking it. */
  readonly destination?: Destination;
}

export interface JsonLog extends Logger {
  /** Writes lines as they are, each with its end: those of the log of another thread. */
  writeLines(lines: string): void;
  /** Resolves when all lines are written out, in their order; for the end of a process. */
  flush(): Promise<void>;
  /** Writes out at once what waits in memory, past a line that is on its way: for a process that must not wait. */
  flushNow(): void;
}

/** Fields that would hold a secret if a caller forgot himself. Of the line itself only: deeper ones cost 9 us a line. */
const SECRET_FIELDS = ['secretKey', 'authorization', 'password', 'masterKey'];

/** Of lines that nobody has taken yet: whoever reads the log may have stopped, and requests go on. */
const WAITING_BYTES_MAX = 32 * 1024 * 1024;

/** Less than any line, so that none waits for more; without a length the stream would not tell when it has written all. */
const LINE_BYTES_MIN = 1;

export function createJsonLog(options: JsonLogOptions): JsonLog {
  const stdout: Destination =
    options.destination ??
    destination({ dest: 1, sync: false, minLength: LINE_BYTES_MIN, maxLength: WAITING_BYTES_MAX });
  const log = pino(
    {
      level: options.level,
      messageKey: 'event',
      base: options.fields ?? null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
      serializers: { err: describeError },
      redact: { paths: SECRET_FIELDS, censor: '(secret)' },
      hooks: { streamWrite: spellOut },
    },
    stdout,
  );
  let lostLines = 0;
  // Of gateway threads several lines come at once.
  stdout.on?.('drop', (text = '\n') => {
    lostLines += text.split('\n').length - 1;
  });
  stdout.on?.('drain', () => {
    if (lostLines === 0) return;
    const lines = lostLines;
    lostLines = 0;
    log.warn({ lines }, 'log-lines-lost');
  });
  return {
    debug: (fields, event) => log.debug(fields, event),
    info: (fields, event) => log.info(fields, event),
    warn: (fields, event) => log.warn(fields, event),
    error: (fields, event) => log.error(fields, event),
    writeLines: (lines) => void stdout.write(lines),
    flush: () =>
      new Promise((resolve) => {
        // A closed pipe does not keep the process from ending: there is nobody to tell.
        if (stdout.flush === undefined) resolve();
        else stdout.flush(() => resolve());
      }),
    flushNow: () => stdout.flushSync?.(),
  };
}

/**
 * Control characters beyond those of JSON, and ends of lines beyond those of POSIX: a terminal would obey the ones, and readers of
 * lines (readline of Node, splitlines of Python) take the others for the end of one. Keys and user agents may have them.
 */
const UNSPELT = /[\u007f-\u009f\u2028\u2029]/g;

/** The line with these as JSON spells them, which means the same: they stand in its strings alone. */
function spellOut(line: string): string {
  return line.replace(UNSPELT, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** A Refusal is about the request: where in the program it was found means nothing to the reader. */
function describeError(error: unknown): unknown {
  if (error instanceof Refusal) return { type: 'Refusal', message: error.message };
  return stdSerializers.err(error as Error);
}

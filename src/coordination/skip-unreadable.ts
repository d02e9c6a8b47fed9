// Skips rows of the coordinator that cannot be read.
import type { Logger } from '../ports/telemetry.ts';
import { UnreadableRecord } from './records.ts';

/** A row that was written wrongly by hand must not hide the others; a read of that row alone is refused. */
export function skipUnreadable(log: Logger, read: () => void): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof UnreadableRecord)) throw error;
    log.error({ err: error }, 'coordinator-record-unreadable');
  }
}

// Rows of the coordinator that a watch tells of.
import type { Logger } from '../ports/telemetry.ts';
import { UnreadableRecord } from './records.ts';

/** One that was written by hand and wrong must not hide the others; who reads it by itself is refused. */
export function tellReadable(log: Logger, tell: () => void): void {
  try {
    tell();
  } catch (error) {
    if (!(error instanceof UnreadableRecord)) throw error;
    log.error({ err: error }, 'coordinator-record-unreadable');
  }
}

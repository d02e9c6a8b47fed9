// How far a scan has come: work that looks at everything there is, again and again, a page at a time. The record outlives
// the process and the primary, so that a long pass goes on where it was.
import { defineRecord, type Plain } from '../../base/record-codec.ts';

/** Times are shard time. */
export interface ScanRecord {
  /** Of the pass under way, or of the last one. */
  beganAtMs: number;
  /** Behind which item the pass goes on; absent: at the first. */
  after?: Plain;
  isUnderWay: boolean;
  /** The last pass that came to its end. */
  ended?: { beganAtMs: number; endedAtMs: number };
}

export const scanCodec = defineRecord<ScanRecord>({ name: 'scan', version: 1 });

/** `beganAtMs`: of the pass that the caller is in, as the record said when it began or was read. */
export type ScanStep =
  | { step: 'begin' }
  | { step: 'reach'; beganAtMs: number; after: Plain }
  | { step: 'end'; beganAtMs: number };

/** The record behind a step; undefined: the pass that the caller is in has ended, or another one has begun since. */
export function nextScan(
  command: ScanStep,
  before: ScanRecord | undefined,
  nowMs: number,
): ScanRecord | undefined {
  const ended = before?.ended && { ended: before.ended };
  if (command.step === 'begin') return { beganAtMs: nowMs, isUnderWay: true, ...ended };
  const { beganAtMs } = command;
  if (before?.beganAtMs !== beganAtMs || !before.isUnderWay) return undefined;
  if (command.step === 'reach') return { beganAtMs, isUnderWay: true, after: command.after, ...ended };
  return { beganAtMs, isUnderWay: false, ended: { beganAtMs, endedAtMs: nowMs } };
}

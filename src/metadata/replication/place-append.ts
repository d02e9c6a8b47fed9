// Where the entries of an append go in a log (R4): which are there already, behind what the others belong, and whether
// the two logs contradict each other where neither may change any more (R17). Pure.
import type { AppendMessage, LogPosition } from '../../ports/replication.ts';
import { isEntrySound, readEntryHead } from '../engine/entry-codec.ts';
import type { LogStore } from './log-store.ts';

export type Placed =
  /** `entries` belong behind `after`, in place of what is there; with them all up to `matchSeq` is the primary's. */
  | { kind: 'fits'; after: LogPosition; entries: Uint8Array[]; matchSeq: number }
  /** The primary should try from there. */
  | { kind: 'disagrees'; hintSeq: number }
  /** It contradicts what is committed. */
  | { kind: 'damage' };

/** `committedSeq`: no entry up to it may be cut. */
export function placeAppend(
  log: LogStore,
  committedSeq: number,
  message: Pick<AppendMessage, 'prev' | 'entries'>,
): Placed {
  let { prev, entries } = message;
  // What is below the base is committed, so it agrees.
  if (prev.seq < log.base.seq) {
    entries = entries.slice(log.base.seq - prev.seq);
    prev = log.base;
  }
  if (prev.seq > log.last.seq) return { kind: 'disagrees', hintSeq: log.last.seq + 1 };
  if (log.epochAt(prev.seq) !== prev.epoch) {
    if (prev.seq <= committedSeq) return { kind: 'damage' };
    return { kind: 'disagrees', hintSeq: Math.max(log.epochStart(prev.seq), committedSeq + 1) };
  }
  let after = prev;
  for (const bytes of entries) {
    const { seq, epoch } = readEntryHead(bytes);
    if (seq !== after.seq + 1) return { kind: 'disagrees', hintSeq: after.seq + 1 };
    if (log.epochAt(seq) !== epoch) break;
    after = { seq, epoch };
  }
  const fresh = entries.slice(after.seq - prev.seq);
  if (fresh.length > 0 && after.seq < committedSeq) return { kind: 'damage' };
  const isWhole = fresh.every((bytes, index) => {
    return isEntrySound(bytes) && readEntryHead(bytes).seq === after.seq + 1 + index;
  });
  if (!isWhole) return { kind: 'disagrees', hintSeq: after.seq + 1 };
  return { kind: 'fits', after, entries: fresh, matchSeq: prev.seq + entries.length };
}

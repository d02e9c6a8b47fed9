// Mails that wait to be sent: of each control account one after another, and of all one try at a time. A mail that is to be tried
// again later keeps those of its own control account waiting, and nobody else's.
import { createSequence } from '../base/async/sequence.ts';
import type { ClockPort } from '../ports/clock.ts';

/** Of one control account. */
export const MAILS_WAITING_MAX = 100;
/** Between the tries of one mail. */
const PAUSES_MS = [0, 5000, 60_000];

/** What became of a try: `later` is tried again, as often as there are pauses. */
export type MailTry = 'done' | 'later';

export interface MailQueue {
  /**
   * Resolves when it is not tried any more; at once, and nothing is tried, where too many of this control account wait already.
   * `isLast`: it is not tried again, whatever comes of it.
   */
  add(controlId: number, attempt: (isLast: boolean) => Promise<MailTry>): Promise<void>;
}

export function createMailQueue(clock: Pick<ClockPort, 'sleep'>): MailQueue {
  /** Control accounts without any are not in it. */
  const lanes = new Map<number, { waitingCount: number; last: Promise<void> }>();
  const inTurn = createSequence();

  async function deliver(attempt: (isLast: boolean) => Promise<MailTry>): Promise<void> {
    for (const [at, pauseMs] of PAUSES_MS.entries()) {
      if (pauseMs > 0) await clock.sleep(pauseMs);
      const isLast = at === PAUSES_MS.length - 1;
      const tried = await inTurn(() => attempt(isLast)).catch(() => 'done' as const);
      if (tried === 'done') return;
    }
  }

  return {
    async add(controlId, attempt) {
      const lane = lanes.get(controlId) ?? { waitingCount: 0, last: Promise.resolve() };
      if (lane.waitingCount >= MAILS_WAITING_MAX) return;
      lanes.set(controlId, lane);
      lane.waitingCount++;
      lane.last = lane.last.then(() => deliver(attempt));
      await lane.last;
      lane.waitingCount--;
      if (lane.waitingCount === 0) lanes.delete(controlId);
    },
  };
}

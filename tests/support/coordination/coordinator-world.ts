// A coordinator in memory on a clock that the test moves, with a fate for each message that the test chooses.
import {
  type CoordinatorMessage,
  createMemoryCoordinator,
  type MessageFate,
} from '../../../src/platform/memory/memory-coordinator.ts';
import { createManualClock, type ManualClock } from '../run/simulated.ts';
import { eventLog, type LoggedEvents } from './coordinators.ts';

export const LEASE_MS = 10_000;
export const STEP_MS = 50;

/** A coordinator whose messages meet what `fates` says, the first that says something. */
export function startCoordinatorWorld() {
  const clock = createManualClock(0);
  const fates: ((message: CoordinatorMessage) => MessageFate | undefined)[] = [];
  const fate = (message: CoordinatorMessage) => {
    for (const one of fates) {
      const what = one(message);
      if (what !== undefined) return what;
    }
    return 0;
  };
  const logged: LoggedEvents = [];
  const coordinator = createMemoryCoordinator({
    clock,
    log: eventLog(logged),
    memberLeaseMs: LEASE_MS,
    jobLeaseMs: LEASE_MS,
    fate,
  });
  const ending = new AbortController();
  return { clock, coordinator, ending, fates, logged, connect: coordinator.connect };
}

/** Lets time go by in steps, and everything that is ready run between them. */
export async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let leftMs = ms; leftMs >= 0; leftMs -= STEP_MS) {
    await new Promise((resolve) => setImmediate(resolve));
    if (leftMs > 0) clock.advance(Math.min(STEP_MS, leftMs));
  }
}

/** How a promise has ended by now. */
export function outcomeOf<T>(promise: Promise<T>): { value?: T; error?: Error } {
  const outcome: { value?: T; error?: Error } = {};
  promise.then(
    (value) => {
      outcome.value = value;
    },
    (error: Error) => {
      outcome.error = error;
    },
  );
  return outcome;
}

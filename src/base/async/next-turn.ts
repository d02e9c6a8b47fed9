// One turn of the event loop.

/** Resolves when whatever else is ready has had its turn: sockets, timers, other work that waits here. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

// One turn of the event loop.

/** Resolves when whatever else is ready has had its turn: sockets, timers, other work that waits here. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The end of the queue of those who want a turn of their own. */
let lastTurn: Promise<void> = Promise.resolve();

/** Resolves in a turn that nobody else gets who waits here. */
export function turnOfItsOwn(): Promise<void> {
  lastTurn = lastTurn.then(nextTurn);
  return lastTurn;
}

// Signals as the server means them: stop, stop now, reload. Not here: what stopping and reloading do.

export interface SignalActions {
  /** First SIGINT or SIGTERM: finish what is in flight, then end. */
  drain(): void;
  /** A later SIGINT or SIGTERM: the operator does not want to wait. */
  stopNow(signal: 'SIGINT' | 'SIGTERM'): void;
  /** SIGHUP: read certificates again. */
  reload(): void;
}

/**
 * A terminal sends Ctrl-C to every process of the group, and both npm and the bootstrap pass it on as well: the same
 * wish arrives up to three times within milliseconds. What follows sooner than this is an echo.
 */
const ECHO_MS = 1000;

/** Listens for the signals and returns the function that stops listening. `nowMs` is a monotonic clock. */
export function onSignals(actions: SignalActions, nowMs: () => number = () => performance.now()): () => void {
  let drainingSinceMs: number | undefined;
  const onStop = (signal: NodeJS.Signals) => {
    if (drainingSinceMs === undefined) {
      drainingSinceMs = nowMs();
      actions.drain();
    } else if (nowMs() - drainingSinceMs >= ECHO_MS) {
      actions.stopNow(signal === 'SIGINT' ? 'SIGINT' : 'SIGTERM');
    }
  };
  const onReload = () => actions.reload();
  process.on('SIGINT', onStop).on('SIGTERM', onStop).on('SIGHUP', onReload);
  return () => process.off('SIGINT', onStop).off('SIGTERM', onStop).off('SIGHUP', onReload);
}

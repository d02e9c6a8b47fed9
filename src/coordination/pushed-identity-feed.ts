// The identity feed of a gateway thread: the main thread, through which all commands pass, tells it of each change before the
// command is answered (watch-identity-commands.ts), so it is exact, and never behind (R46).
import type { IdentityChange, IdentityFeed } from '../ports/identity-feed.ts';

export function createPushedIdentityFeed(): {
  feed: IdentityFeed;
  /** When it returns, nothing older is served. */
  take(changes: readonly IdentityChange[]): void;
} {
  const listeners: Parameters<IdentityFeed['listen']>[0][] = [];
  return {
    feed: {
      isCurrent: () => true,
      listen: (onChange) => void listeners.push(onChange),
    },
    take(changes) {
      for (const listener of listeners) listener(changes);
    },
  };
}

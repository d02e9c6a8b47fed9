// The identity feed of the embedded form, where all commands pass through one process: exact, and never behind.
import type { IdentityFeed } from '../ports/identity-feed.ts';
import type { MetadataPort } from '../ports/metadata/port.ts';
import { watchIdentityCommands } from './watch-identity-commands.ts';

/** Every command that changes identities must go through `metadata`. */
export function createLocalIdentityFeed(metadata: MetadataPort): {
  metadata: MetadataPort;
  feed: IdentityFeed;
} {
  const listeners: Parameters<IdentityFeed['listen']>[0][] = [];
  return {
    metadata: watchIdentityCommands(metadata, (changes) => {
      for (const listener of listeners) listener(changes);
    }),
    feed: {
      isCurrent: () => true,
      listen: (onChange) => void listeners.push(onChange),
    },
  };
}

// The identity feed of the embedded form, where all commands pass through one process: exact, and never behind.
import type { IdentityFeed } from '../ports/identity-feed.ts';
import type { MetadataPort } from '../ports/metadata/port.ts';
import { createPushedIdentityFeed } from './pushed-identity-feed.ts';
import { watchIdentityCommands } from './watch-identity-commands.ts';

/** Every command that changes identities must go through `metadata`. */
export function createLocalIdentityFeed(metadata: MetadataPort): {
  metadata: MetadataPort;
  feed: IdentityFeed;
} {
  const { feed, take } = createPushedIdentityFeed();
  return { metadata: watchIdentityCommands(metadata, take), feed };
}

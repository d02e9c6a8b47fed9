// The metadata port as it is, with an eye on commands that change identities: what this process does itself is told
// before it is answered, without asking anybody (R46).
import type { IdentityChange } from '../ports/identity-feed.ts';
import type { CommandName, CommandOf, MetadataPort } from '../ports/metadata.ts';

const CHANGES: { readonly [N in CommandName]?: (command: CommandOf<N>) => IdentityChange } = {
  'set-account': ({ accountId }) => ({ accountId }),
  'delete-account': ({ accountId }) => ({ accountId }),
  'change-access-key': ({ accountId }) => ({ accountId }),
};

export function watchIdentityCommands(
  metadata: MetadataPort,
  onChange: (changes: readonly IdentityChange[]) => void,
): MetadataPort {
  return {
    shardCount: metadata.shardCount,
    query: (envelope, name, query) => metadata.query(envelope, name, query),
    async execute(envelope, name, command) {
      try {
        return await metadata.execute(envelope, name, command);
      } finally {
        // Whatever the outcome: it may be unknown, and what is read once more costs little.
        const change = CHANGES[name]?.(command);
        if (change !== undefined) onChange([change]);
      }
    },
  };
}

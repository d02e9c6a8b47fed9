// Wraps the metadata port: changes of identities by this process are reported before they are answered, without a question
// to the shard (R46). Where threads of the process keep identities, too, the answer waits until all of them have taken it in.
import type { IdentityChange } from '../ports/identity-feed.ts';
import type { CommandName, CommandOf, MetadataPort } from '../ports/metadata/port.ts';

const CHANGES: { readonly [N in CommandName]?: (command: CommandOf<N>) => IdentityChange | undefined } = {
  'set-account': ({ accountId }) => ({ accountId }),
  'delete-account': ({ accountId }) => ({ accountId }),
  'add-access-key': ({ accountId, isOnly }) => (isOnly ? { accountId } : undefined),
  'change-access-key': ({ accountId }) => ({ accountId }),
  'change-identities': ({ accountId }) => ({ accountId }),
};

export function watchIdentityCommands(
  metadata: MetadataPort,
  onChange: (changes: readonly IdentityChange[]) => void | Promise<void>,
): MetadataPort {
  return {
    shardCount: metadata.shardCount,
    query: (envelope, name, query) => metadata.query(envelope, name, query),
    async execute(envelope, name, command) {
      try {
        return await metadata.execute(envelope, name, command);
      } finally {
        // Whatever the outcome: it may be unknown, and one more read costs little.
        const change = CHANGES[name]?.(command);
        if (change !== undefined) await onChange([change]);
      }
    },
  };
}

// Takes delivered items out of the outbox (R21). Those that are out already are done.
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { defineCommand } from '../schema/define-command.ts';
import { outboxRow, remove } from '../schema/keyspace.ts';

export const finishOutbox = defineCommand<CommandOf<'finish-outbox'>, OutcomeOf<'finish-outbox'>>({
  locks: () => [],
  decide: ({ ids }) => ({
    outcome: { kind: 'finished' },
    puts: ids.map((id) => remove(outboxRow(id))),
  }),
});

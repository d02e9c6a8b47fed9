// Commits the shard's time where nothing else does: what waits for a committed time goes on (R30).
import type { CommandOf, OutcomeOf } from '../ports/metadata/port.ts';
import { defineCommand } from './schema/define-command.ts';
import { u48 } from './schema/key-parts.ts';
import { put, TICK_ROW } from './schema/keyspace.ts';

export const tick = defineCommand<CommandOf<'tick'>, OutcomeOf<'tick'>>({
  locks: () => [],
  decide: (_command, _view, { nowMs }) => ({
    outcome: { kind: 'ticked' },
    puts: [put(TICK_ROW, u48(nowMs))],
  }),
});

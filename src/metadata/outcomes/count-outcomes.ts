// How much a shard keeps of requests that are over, as outcome-bounds.ts counts it.
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import { TOKENLESS, UNDER_TOKENS } from './outcome-bounds.ts';

export const countOutcomes: QuerySpec<QueryOf<'count-kept'>, ResultOf<'count-kept'>> = {
  async run(_query, state) {
    const [tokenBytes = 0, tokenlessBytes = 0] = await state.counters([UNDER_TOKENS.all, TOKENLESS.all]);
    return { tokenBytes, tokenlessBytes };
  },
};

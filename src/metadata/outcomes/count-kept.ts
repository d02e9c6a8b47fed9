// How much a shard keeps of requests that are over, as kept-outcomes.ts counts it.
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import { TOKENLESS, UNDER_TOKENS } from './kept-outcomes.ts';

export const countKept: QuerySpec<QueryOf<'count-kept'>, ResultOf<'count-kept'>> = {
  async run(_query, state) {
    const [tokenBytes = 0, tokenlessBytes = 0] = await state.counters([UNDER_TOKENS.all, TOKENLESS.all]);
    return { tokenBytes, tokenlessBytes };
  },
};

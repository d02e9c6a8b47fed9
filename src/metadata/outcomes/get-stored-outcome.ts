// What a request's token stands for already (extensions 2.1). Commands look for themselves; who asks before is one whose
// answer would else depend on what has become of other objects since.
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import { outcomeIn, tokenRow } from './tokens.ts';

export const getStoredOutcome: QuerySpec<QueryOf<'get-kept-outcome'>, ResultOf<'get-kept-outcome'>> = {
  async run({ bucketId, token }, state, { nowMs }) {
    const [row] = await state.rows([tokenRow(bucketId, token.token)]);
    return (row && outcomeIn(row, token, nowMs)) ?? { kind: 'none' };
  },
};

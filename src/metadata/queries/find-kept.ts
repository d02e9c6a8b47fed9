// What an idempotency token stands for (extensions.md 2.1).
import type { QueryOf, ResultOf } from '../../ports/metadata.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import { readOutcome, tokenRow } from '../tokens.ts';

export const findKept: QuerySpec<QueryOf<'find-kept'>, ResultOf<'find-kept'>> = {
  async run({ bucketId, token }, state) {
    const [row] = await state.rows([tokenRow(bucketId, token.token)]);
    return { kept: row === undefined ? null : readOutcome(row, token) };
  },
};

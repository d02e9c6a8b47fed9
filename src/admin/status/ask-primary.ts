// Asks the primaries of shards, as operators' commands do: once, and without waiting for one that is not there.
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { ShardCallPort } from '../../ports/shard-calls.ts';
import type { ShardRecord } from '../../ports/shard-registry.ts';

const ANSWER_MAX_MS = 3000;

type Question = 'get-history' | 'count-debts' | 'get-audit' | 'list-debts';

export type AskPrimary = <Q extends Question>(
  shard: number,
  name: Q,
  body: QueryOf<Q>,
) => Promise<ResultOf<Q> | undefined>;

/** `records`: by shard. What it gives resolves with undefined where nobody says. */
export function createAskPrimary(
  calls: ShardCallPort,
  records: readonly (ShardRecord | undefined)[],
): AskPrimary {
  return async <Q extends Question>(shard: number, name: Q, body: QueryOf<Q>) => {
    const primary = records[shard]?.primary;
    if (primary === null || primary === undefined) return undefined;
    const question = { kind: 'query', envelope: { shard }, name, body } as const;
    const signal = AbortSignal.timeout(ANSWER_MAX_MS);
    const reply = await calls
      .call(primary.nodeId, { ...question, budgetMs: ANSWER_MAX_MS }, signal)
      .catch(() => undefined);
    return reply?.kind === 'done' ? (reply.value as ResultOf<Q>) : undefined;
  };
}

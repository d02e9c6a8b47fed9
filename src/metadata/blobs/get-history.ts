// Of which history a shard is, and what it holds of other homes (R23).
import { fromHex, toHex } from '../../base/bytes/bytes.ts';
import { behind, TABLE_END } from '../../base/table-rows.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import type { BlobId } from '../../types/names.ts';
import { foreignCodec, historyCodec } from '../../types/records/rows.ts';
import { HISTORY_ROW, TABLES } from '../schema/keyspace.ts';

export const getHistory: QuerySpec<QueryOf<'get-history'>, ResultOf<'get-history'>> = {
  async run(_query, state) {
    const [row] = await state.rows([HISTORY_ROW]);
    return { history: row === undefined ? null : historyCodec.decode(row) };
  },
};

/** `limit` rows are looked at: a page may have fewer claims, and yet not be the last. */
export const listClaims: QuerySpec<QueryOf<'list-claims'>, ResultOf<'list-claims'>> = {
  async run({ homeShard, after, limit }, state) {
    const gte = behind(after && fromHex(after));
    const rows = await state.range({ table: TABLES.foreign, gte, lt: TABLE_END, limit });
    const claims = rows.flatMap(({ key, value }) => {
      const foreign = foreignCodec.decode(value);
      if (homeShard !== undefined && foreign.homeShard !== homeShard) return [];
      const { linkId, layout } = foreign;
      return [{ blobId: toHex(key) as BlobId, linkId, layout }];
    });
    const last = rows.at(-1);
    const isWhole = last === undefined || rows.length < limit;
    return isWhole ? { claims } : { claims, next: toHex(last.key) as BlobId };
  },
};

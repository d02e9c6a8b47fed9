// Names of buckets and lists of them, in the system shard (R41).
import { must } from '../../base/assert.ts';
import { afterPrefix, compareBytes, concatBytes, fromUtf8 } from '../../base/bytes/bytes.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import type { BucketName } from '../../types/names.ts';
import { nameCodec } from '../../types/records/rows.ts';
import { accountBucketRow, nameRow, TABLES } from '../schema/keyspace.ts';

/** Names in every state: what a state means to readers and to creators is theirs to see. */
export const findName: QuerySpec<QueryOf<'find-name'>, ResultOf<'find-name'>> = {
  async run({ name }, state) {
    const [row] = await state.rows([nameRow(name)]);
    return { record: row === undefined ? null : nameCodec.decode(row) };
  },
};

/** Names that readers see, in order. `after` is exclusive. */
export const listNames: QuerySpec<QueryOf<'list-names'>, ResultOf<'list-names'>> = {
  ownerOf: ({ owner }) => owner,
  async run({ owner, prefix = '', after, max }, state) {
    const start = accountBucketRow(owner, prefix).key;
    const lt = must(afterPrefix(start), 'an account has something behind it');
    const resume =
      after === undefined ? start : concatBytes(accountBucketRow(owner, after).key, Uint8Array.of(0));
    const gte = compareBytes(resume, start) > 0 ? resume : start;
    const rows = await state.range({ table: TABLES.accountBuckets, gte, lt, limit: max + 1 });
    const listStart = accountBucketRow(owner, '').key.length;
    const names = rows.slice(0, max).map(({ key, value }) => ({
      name: fromUtf8(key.subarray(listStart)) as BucketName,
      record: nameCodec.decode(value),
    }));
    return { names, isTruncated: rows.length > max };
  },
};

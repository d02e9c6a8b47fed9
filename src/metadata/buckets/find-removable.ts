// What may go of a bucket that has to stay as a whole, by the rules of deletion: versions and markers, in pages. Whether each of
// them may really go is decided once more where it is removed.
import { must } from '../../base/assert.ts';
import { toHex } from '../../base/bytes/bytes.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import { type DeleteRules, protectedUntilMs } from '../../types/delete-blocker.ts';
import { bucketCodec } from '../../types/records/rows.ts';
import { decodeVersion, decodeVersionSummary } from '../../types/records/version-record.ts';
import { bucketRow } from '../schema/keyspace.ts';
import { versionPages } from './find-protected.ts';
import { objectKeyOf } from './rows-of-buckets.ts';

type Query = QueryOf<'find-removable'>;
type Result = ResultOf<'find-removable'>;

export function findRemovable(rules: DeleteRules): QuerySpec<Query, Result> {
  return {
    async run(query, state, { acceptedMs }) {
      const [row] = await state.rows([bucketRow(query.bucketId)]);
      const bucket = bucketCodec.decode(must(row, 'who looks has seen the bucket'));
      const items: Result['items'] = [];
      let [keptCount, rowCount, untilMs] = [0, 0, Number.POSITIVE_INFINITY];
      let last = query.after;
      for await (const page of versionPages(state, query)) {
        for (const { key, value } of page) {
          const version = decodeVersionSummary(value);
          if (rules.deleteBlocker(version, bucket, { acceptedMs }) === undefined) {
            items.push({ key: objectKeyOf(key), versionId: decodeVersion(value).versionId });
          } else {
            keptCount++;
            untilMs = Math.min(untilMs, protectedUntilMs(version, bucket));
          }
        }
        rowCount += page.length;
        last = toHex(must(page.at(-1), 'a page has rows').key);
      }
      return {
        items,
        keptCount,
        ...(untilMs < Number.POSITIVE_INFINITY && { untilMs }),
        ...(rowCount === query.limit && last !== undefined && { next: last }),
      };
    },
  };
}

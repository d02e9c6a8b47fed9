// What a change of versions brings with it: the links that removed versions held end in the same entry, and the
// counters follow. The one place where versions and links meet.

import type { CounterDelta, RowPut } from '../../ports/state-machine.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import { linksOf } from '../../types/version.ts';
import { endLinks, linksOnlyIn } from '../blobs/links.ts';
import { usageDeltas } from '../schema/counters.ts';
import type { CommandContext } from '../schema/define-command.ts';
import type { KeyHistory } from './key-history.ts';

export function putHistories(options: {
  bucket: Pick<BucketRecord, 'bucketId' | 'owner'>;
  histories: Iterable<KeyHistory>;
  context: Pick<CommandContext, 'nowMs' | 'minimumDays'>;
}): { puts: RowPut[]; counters: CounterDelta[] } {
  const changes = [...options.histories].map((history) => history.changes());
  const added = changes.flatMap((change) => change.added);
  const removed = changes.flatMap((change) => change.removed);
  const begun = added.flatMap(({ manifest }) => linksOf(manifest));
  const ended = linksOnlyIn(
    removed.flatMap(({ manifest }) => linksOf(manifest)),
    begun,
  );
  return {
    puts: [...changes.flatMap((change) => change.puts), ...endLinks(ended, options.context.nowMs)],
    counters: usageDeltas(options.bucket, { added, removed, begun }, options.context),
  };
}

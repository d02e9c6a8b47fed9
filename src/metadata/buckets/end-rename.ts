// R43, last step: of the two names one goes, as the home has decided. Idempotent by the item that drives the rename.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { type NameRecord, nameCodec } from '../../types/records/rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { accountBucketRow, nameRow, outboxRow, put, remove } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findName } from './names.ts';

export const endRename = defineCommand<CommandOf<'end-rename'>, OutcomeOf<'end-rename'>>({
  locks: ({ bucketId, from, to }) => [
    exclusive(LOCK.namesOf(bucketId)),
    exclusive(LOCK.name(from)),
    exclusive(LOCK.name(to)),
  ],

  look({ from }, view) {
    findName(view, from);
  },

  decide({ from, to, itemId, verdict }, view) {
    const before = findName(view, from);
    if (before?.state !== 'leaving' || before.change?.itemId !== itemId) return refuse({ kind: 'gone' });
    const { change: _, ...rest } = before;
    const { owner } = before;
    const record: NameRecord = { ...rest, state: 'active' };
    const [remaining, dropped] = verdict === 'renamed' ? [to, from] : [from, to];
    return {
      outcome: { kind: verdict === 'renamed' ? 'renamed' : 'undone' },
      puts: [
        remove(nameRow(dropped)),
        remove(accountBucketRow(owner, dropped)),
        put(nameRow(remaining), nameCodec.encode(record)),
        put(accountBucketRow(owner, remaining), nameCodec.encode(record)),
        remove(outboxRow(itemId)),
      ],
    };
  },
});

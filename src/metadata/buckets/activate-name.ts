// R41, last step: the bucket is there, so its name is shown to readers and in its owner's list.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { type NameRecord, nameCodec } from '../../types/records/rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { accountBucketRow, nameRow, outboxRow, put, remove } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { creationItemId, findName } from './names.ts';

export const activateName = defineCommand<CommandOf<'activate-name'>, OutcomeOf<'activate-name'>>({
  locks: ({ name }) => [exclusive(LOCK.name(name))],

  look({ name }, view) {
    findName(view, name);
  },

  decide({ name, bucketId }, view) {
    const before = findName(view, name);
    if (before?.bucketId !== bucketId) return refuse({ kind: 'gone' });
    if (before.state !== 'creating') return refuse({ kind: 'active' });
    const record: NameRecord = { ...before, state: 'active' };
    return {
      outcome: { kind: 'active' },
      puts: [
        put(nameRow(name), nameCodec.encode(record)),
        put(accountBucketRow(record.owner, name), nameCodec.encode(record)),
        remove(outboxRow(creationItemId(record))),
      ],
    };
  },
});

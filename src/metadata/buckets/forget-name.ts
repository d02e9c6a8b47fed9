// R42, last step: the bucket is deleted, so its name is free and its owner may make another; and so is the other one of a
// rename that was under way (R43). Idempotent by bucket id.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { accountCodec } from '../../types/records/rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { accountBucketRow, accountRow, nameRow, outboxRow, put, remove } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { creationItemId, findName } from './names.ts';

export const forgetName = defineCommand<CommandOf<'forget-name'>, OutcomeOf<'forget-name'>>({
  locks: ({ name, bucketId, owner }) => [
    exclusive(LOCK.name(name)),
    exclusive(LOCK.namesOf(bucketId)),
    exclusive(LOCK.account(owner)),
  ],

  look({ name, owner }, view) {
    findName(view, name);
    view.row(accountRow(owner));
  },

  decide({ name, bucketId, owner }, view) {
    const before = findName(view, name);
    if (before?.bucketId !== bucketId) return refuse({ kind: 'forgotten' });
    const row = view.row(accountRow(owner));
    const account = row && accountCodec.decode(row);
    const { state, change } = before;
    const names = change === undefined ? [name] : [name, change.other];
    const puts = names.flatMap((each) => [remove(nameRow(each)), remove(accountBucketRow(owner, each))]);
    // It may have been deleted before anyone activated it.
    if (state === 'creating') puts.push(remove(outboxRow(creationItemId(before))));
    if (change !== undefined) puts.push(remove(outboxRow(change.itemId)));
    if (account !== undefined) {
      const left = { ...account, bucketCount: account.bucketCount - 1 };
      puts.push(put(accountRow(owner), accountCodec.encode(left)));
    }
    return { outcome: { kind: 'forgotten' }, puts };
  },
});

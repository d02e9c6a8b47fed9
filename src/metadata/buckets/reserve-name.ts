// R41, first step: takes a name for a bucket to be, and makes sure that the bucket will be there whatever becomes of
// the gateway. An owner who asks again while the name is being created gets the same bucket id, so both finish it.
import { toHex } from '../../base/bytes/bytes.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { DecideContext } from '../../ports/state-machine.ts';
import type { BucketId } from '../../types/names.ts';
import {
  accountCodec,
  type NameRecord,
  nameCodec,
  type OutboxRecord,
  outboxCodec,
} from '../../types/records/rows.ts';
import { findLiveAccount } from '../accounts/accounts.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { accountRow, nameRow, outboxRow, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { creationItemId, findName } from './names.ts';

type Outcome = OutcomeOf<'reserve-name'>;

export const reserveName = defineCommand<CommandOf<'reserve-name'>, Outcome>({
  locks: ({ name, owner }) => [exclusive(LOCK.name(name)), exclusive(LOCK.account(owner))],

  look({ name, owner }, view) {
    findName(view, name);
    findLiveAccount(view, owner);
  },

  decide({ name, owner, settings }, view, context) {
    const before = findName(view, name);
    if (before !== undefined) return refuse(answerOf(before, owner));
    const account = findLiveAccount(view, owner);
    // The account was deleted while this request was under way; asking again fails at the signature.
    if (account === undefined) return refuse({ kind: 'in-progress' });
    if (account.bucketCount >= account.bucketsMax) return refuse({ kind: 'too-many-buckets' });
    const bucketId = toHex(context.random(8)) as BucketId;
    const homeShard = chooseHome(context);
    const record: NameRecord = { state: 'creating', bucketId, homeShard, owner, createdAtMs: context.nowMs };
    const creation: OutboxRecord = {
      ...{ kind: 'create-bucket', homeShard, bucketId, name, owner },
      ...(settings && { settings }),
    };
    return {
      outcome: { kind: 'reserved', bucketId, homeShard },
      puts: [
        put(nameRow(name), nameCodec.encode(record)),
        put(accountRow(owner), accountCodec.encode({ ...account, bucketCount: account.bucketCount + 1 })),
        put(outboxRow(creationItemId(record)), outboxCodec.encode(creation)),
      ],
    };
  },
});

function answerOf(record: NameRecord, owner: string): Outcome {
  const { state, bucketId, homeShard } = record;
  if (state === 'active')
    return record.owner === owner ? { kind: 'owned-already', record } : { kind: 'taken' };
  // Whether a rename leaves the name free is not decided here (R43).
  if (state !== 'creating') return { kind: 'in-progress' };
  return record.owner === owner ? { kind: 'reserved', bucketId, homeShard } : { kind: 'in-progress' };
}

/** Any shard but the system shard, where there is another: names and identities keep it for themselves. */
function chooseHome({ shardCount, random }: DecideContext): number {
  if (shardCount === 1) return 0;
  return 1 + (Buffer.from(random(4)).readUInt32BE() % (shardCount - 1));
}

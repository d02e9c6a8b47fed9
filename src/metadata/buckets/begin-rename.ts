// R43, first step: both names lead to the bucket from now on, and its home alone says which of them it bears. An owner
// who asks again while the rename is under way gets the same one.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { type BucketName, makeOutboxId } from '../../types/names.ts';
import { type NameRecord, nameCodec, type OutboxRecord, outboxCodec } from '../../types/records/rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { nameRow, outboxRow, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findName } from './names.ts';

type Outcome = OutcomeOf<'begin-rename'>;

export const beginRename = defineCommand<CommandOf<'begin-rename'>, Outcome>({
  locks: ({ bucketId, from, to }) => [
    exclusive(LOCK.namesOf(bucketId)),
    exclusive(LOCK.name(from)),
    exclusive(LOCK.name(to)),
  ],

  look({ from, to }, view) {
    findName(view, from);
    findName(view, to);
  },

  decide({ bucketId, from, to, nameEpoch }, view, { nowMs, random }) {
    const before = findName(view, from);
    if (before?.bucketId !== bucketId) return refuse({ kind: 'no-such-name' });
    if (before.state !== 'active') return refuse(underWay(before, to));
    const obstacle = findName(view, to);
    if (obstacle !== undefined) return refuse(answerOf(obstacle, before));
    const { homeShard } = before;
    const itemId = makeOutboxId({ timeMs: nowMs, tail: random(8) });
    const leaving: NameRecord = { ...before, state: 'leaving', change: { other: to, nameEpoch, itemId } };
    const entering: NameRecord = { ...before, state: 'entering', change: { other: from, nameEpoch, itemId } };
    const item: OutboxRecord = { kind: 'rename-bucket', homeShard, bucketId, from, to, nameEpoch };
    return {
      outcome: { kind: 'begun', homeShard, nameEpoch, itemId },
      puts: [
        put(nameRow(from), nameCodec.encode(leaving)),
        put(nameRow(to), nameCodec.encode(entering)),
        put(outboxRow(itemId), outboxCodec.encode(item)),
      ],
    };
  },
});

function underWay({ state, homeShard, change }: NameRecord, to: BucketName): Outcome {
  if (state !== 'leaving' || change?.other !== to) return { kind: 'in-progress' };
  return { kind: 'begun', homeShard, nameEpoch: change.nameEpoch, itemId: change.itemId };
}

function answerOf(obstacle: NameRecord, before: NameRecord): Outcome {
  if (obstacle.state !== 'active') return { kind: 'in-progress' };
  return obstacle.owner === before.owner ? { kind: 'owned-already', record: obstacle } : { kind: 'taken' };
}

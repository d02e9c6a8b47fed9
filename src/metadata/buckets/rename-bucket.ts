// R43, in the bucket's home: the one moment of change. Each rename is decided once, by the epoch that it ends: a refusal
// moves on to the next epoch as well, so that a message that comes late cannot do what was undone long ago. The bucket's policy
// names it, so the same entry writes the policy anew; where it would become too long, the bucket keeps its name.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { RowPut, View } from '../../ports/state-machine.ts';
import type { BucketConfigs } from '../../types/bucket-config.ts';
import type { BucketName } from '../../types/names.ts';
import { renameInPolicy } from '../../types/policy/rename-in-policy.ts';
import { type BucketRecord, bucketCodec, bucketConfigCodec } from '../../types/records/rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { bucketConfigRow, bucketRow, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findBucket } from './buckets.ts';

const POLICY_TOO_LONG = { kind: 'refused', because: 'policy-too-long' } as const;

export const renameBucket = defineCommand<CommandOf<'rename-bucket'>, OutcomeOf<'rename-bucket'>>({
  // Writers into the bucket hold it shared: none under the old name can commit behind this (R45).
  locks: ({ bucketId }) => [exclusive(LOCK.bucket(bucketId))],

  look({ bucketId }, view) {
    findBucket(view, bucketId);
    view.row(bucketConfigRow(bucketId, 'policy'));
  },

  decide({ bucketId, from, to, nameEpoch }, view) {
    const before = findBucket(view, bucketId);
    if (before === undefined) return refuse({ kind: 'refused' });
    // Whether the bucket was deleted since or not: its new name must be there to be forgotten (R42).
    if (before.nameEpoch === nameEpoch + 1 && before.name === to) {
      return refuse({ kind: 'renamed', bucket: before });
    }
    const isNamed = before.state === 'open' && before.name === from;
    // Who asks again, because the answer was lost or the outbox has come first, hears what is in the way as well.
    if (isNamed && before.nameEpoch === nameEpoch + 1 && policyPuts(view, before, to) === undefined) {
      return refuse(POLICY_TOO_LONG);
    }
    if (before.nameEpoch > nameEpoch || before.state === 'deleted') return refuse({ kind: 'refused' });
    const isAsKnown = isNamed && before.nameEpoch === nameEpoch;
    const policy = isAsKnown ? policyPuts(view, before, to) : [];
    const isGranted = isAsKnown && policy !== undefined;
    const bucket: BucketRecord = {
      ...before,
      nameEpoch: nameEpoch + 1,
      name: isGranted ? to : before.name,
    };
    return {
      outcome: isGranted ? { kind: 'renamed', bucket } : isAsKnown ? POLICY_TOO_LONG : { kind: 'refused' },
      puts: [put(bucketRow(bucketId), bucketCodec.encode(bucket)), ...(policy ?? [])],
    };
  },
});

/** The policy, where there is one that names the bucket. undefined: it would become too long. */
function policyPuts(view: View, { bucketId, name }: BucketRecord, to: BucketName): RowPut[] | undefined {
  const row = bucketConfigRow(bucketId, 'policy');
  const stored = view.row(row);
  if (stored === undefined) return [];
  const record = bucketConfigCodec.decode(stored);
  const policy = record.document as BucketConfigs['policy'];
  const { text: before } = policy;
  const text = renameInPolicy(before, { from: name, to });
  if (text === undefined) return undefined;
  if (text === before) return [];
  return [put(row, bucketConfigCodec.encode({ ...record, document: { ...policy, text } }))];
}

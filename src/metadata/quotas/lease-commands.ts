// The lease of an account in one shard: how much of the account's hard bounds the shard may fill.
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { refuse } from '../versions/write-version.ts';
import { closedLeaseDeltas, heldIn, lastLeaseVersion, leaseDeltas, leaseOf, ofAccount } from './held.ts';

const locks = ({ accountId }: { accountId: string }) => [exclusive(LOCK.quota(accountId))];

export const openQuotaLease = defineCommand<CommandOf<'open-quota-lease'>, OutcomeOf<'open-quota-lease'>>({
  locks,
  decide({ accountId }, _view, { counter }) {
    const amount = leaseOf(accountId, counter) ?? heldIn(ofAccount(accountId), counter);
    const lease = { ...amount, version: lastLeaseVersion(accountId, counter) + 1 };
    return {
      outcome: { kind: 'opened', lease },
      puts: [],
      counters: leaseDeltas(accountId, lease, counter),
    };
  },
});

export const setQuotaLease = defineCommand<CommandOf<'set-quota-lease'>, OutcomeOf<'set-quota-lease'>>({
  locks,
  decide({ accountId, lease }, _view, { counter }) {
    const before = leaseOf(accountId, counter);
    if (before === undefined || before.version >= lease.version) return refuse({ kind: 'unchanged' });
    return { outcome: { kind: 'set' }, puts: [], counters: leaseDeltas(accountId, lease, counter) };
  },
});

export const shrinkQuotaLease = defineCommand<
  CommandOf<'shrink-quota-lease'>,
  OutcomeOf<'shrink-quota-lease'>
>({
  locks,
  decide({ accountId, version }, _view, { counter }) {
    const before = leaseOf(accountId, counter);
    if (before === undefined) return refuse({ kind: 'no-lease' });
    const held = heldIn(ofAccount(accountId), counter);
    const lease = {
      bytes: Math.min(before.bytes, held.bytes),
      objects: Math.min(before.objects, held.objects),
      version: Math.max(version, before.version),
    };
    return {
      outcome: { kind: 'shrunk', lease },
      puts: [],
      counters: leaseDeltas(accountId, lease, counter),
    };
  },
});

export const closeQuotaLease = defineCommand<CommandOf<'close-quota-lease'>, OutcomeOf<'close-quota-lease'>>({
  locks,
  decide({ accountId, version }, _view, { counter }) {
    const before = leaseOf(accountId, counter);
    if (before !== undefined && before.version > version)
      return refuse({ kind: 'newer', version: before.version });
    return {
      outcome: { kind: 'closed' },
      puts: [],
      counters: closedLeaseDeltas(accountId, version, counter),
    };
  },
});

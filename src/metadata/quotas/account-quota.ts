// The quota of an account in the system shard: its bounds, and what of them is granted to each shard.
import type { CommandOf, OutcomeOf, QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, RowPut, StateReader, View } from '../../ports/state-machine.ts';
import type { AccountId } from '../../types/names.ts';
import type { HeldAmount } from '../../types/quota.ts';
import {
  type AccountQuotaRecord,
  accountQuotaCodec,
  boundsOf,
  type QuotaLease,
} from '../../types/records/quota-record.ts';
import { findAccount } from '../accounts/accounts.ts';
import { NO_CHANGE } from '../blobs/repair-entries.ts';
import type { RowCheck } from '../checks/scan.ts';
import { noteSoftQuotaOfAccount } from '../events/note-events.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { u48 } from '../schema/key-parts.ts';
import { accountQuotaRow, accountRow, put, remove, TABLES } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { heldIn, leaseCounters, leaseOf, namesOf, ofAccount, ofBucket } from './held.ts';

const UNITS = ['bytes', 'objects'] as const satisfies (keyof HeldAmount)[];
/** Of what is free, a shard that asks is given this share of an even distribution, and at least what it wants. */
const PIECE_SHARE = 0.25;

const locks = ({ accountId }: { accountId: string }) => [exclusive(LOCK.quota(accountId))];

function find(view: View, accountId: AccountId): AccountQuotaRecord | undefined {
  const row = view.row(accountQuotaRow(accountId));
  return row && accountQuotaCodec.decode(row);
}

function store(record: AccountQuotaRecord): RowPut {
  return put(accountQuotaRow(record.accountId), accountQuotaCodec.encode(record));
}

export const setAccountQuota = defineCommand<CommandOf<'set-account-quota'>, OutcomeOf<'set-account-quota'>>({
  locks: ({ accountId }) => [exclusive(LOCK.account(accountId)), exclusive(LOCK.quota(accountId))],

  look({ accountId }, view) {
    findAccount(view, accountId);
    find(view, accountId);
  },

  decide({ accountId, source, quota }, view) {
    if (findAccount(view, accountId) === undefined) return refuse({ kind: 'no-such-account' });
    const before = find(view, accountId) ?? { accountId, quotas: {}, phase: 'soft' as const, grants: {} };
    const { [source]: _, ...others } = before.quotas;
    const quotas = quota === null ? others : { ...others, [source]: quota };
    const phase = phaseOf(before.phase, boundsOf({ quotas }, 'hard') !== undefined);
    // Some of its leases may have ended: all shards are asked again.
    const beginsAgain = before.phase === 'closing' && phase === 'opening';
    const changed = { ...before, quotas, phase, ...(beginsAgain && { grants: {} }) };
    if (changed.phase === 'soft' && Object.keys(quotas).length === 0)
      return { outcome: { kind: 'set', quota: null }, puts: [remove(accountQuotaRow(accountId))] };
    return { outcome: { kind: 'set', quota: changed }, puts: [store(changed)] };
  },
});

function phaseOf(before: AccountQuotaRecord['phase'], isHard: boolean): AccountQuotaRecord['phase'] {
  if (isHard) return before === 'open' ? 'open' : 'opening';
  return before === 'soft' ? 'soft' : 'closing';
}

export const grantQuota = defineCommand<CommandOf<'grant-quota'>, OutcomeOf<'grant-quota'>>({
  locks,

  look({ accountId }, view) {
    find(view, accountId);
  },

  decide({ accountId, shard, wanted }, view, { shardCount }) {
    const record = find(view, accountId);
    if (record === undefined || record.phase === 'soft') return refuse({ kind: 'no-quota' });
    // What shards hold that are not noted yet would be granted to others.
    if (record.phase !== 'open') return refuse({ kind: record.phase });
    const { grants } = record;
    const { [shard]: before } = grants;
    if (before === undefined) return refuse({ kind: 'opening' });
    const bounds = boundsOf(record, 'hard') ?? {};
    const lease: QuotaLease = { ...before, version: before.version + 1 };
    for (const unit of UNITS) {
      const { [unit]: bound = Number.MAX_SAFE_INTEGER } = bounds;
      const granted = Object.values(grants).reduce((sum, grant) => sum + grant[unit], 0);
      const needed = Math.max(0, wanted[unit] - before[unit]);
      const free = bound - granted;
      if (needed > 0 && needed > free) return refuse({ kind: 'short', unit, bound });
      const piece = Math.floor((Math.max(0, free) / shardCount) * PIECE_SHARE);
      // Where one unit is short of nothing, the other's piece waits until it is wanted.
      lease[unit] = before[unit] + (needed === 0 ? 0 : Math.min(free, Math.max(needed, piece)));
    }
    const changed = { ...record, grants: { ...grants, [shard]: lease } };
    return { outcome: { kind: 'granted', lease }, puts: [store(changed)] };
  },
});

export const noteQuotaLease = defineCommand<CommandOf<'note-quota-lease'>, OutcomeOf<'note-quota-lease'>>({
  locks,

  look({ accountId }, view) {
    find(view, accountId);
  },

  decide({ accountId, shard, lease }, view) {
    const record = find(view, accountId);
    if (record === undefined) return refuse({ kind: 'other' });
    const { [shard]: granted } = record.grants;
    // A shard is never ahead of its grants, but where it has opened its lease anew.
    if (granted !== undefined && granted.version > lease.version) return refuse({ kind: 'other' });
    const changed = { ...record, grants: { ...record.grants, [shard]: lease } };
    return { outcome: { kind: 'noted' }, puts: [store(changed)] };
  },
});

export const endQuotaPhase = defineCommand<CommandOf<'end-quota-phase'>, OutcomeOf<'end-quota-phase'>>({
  locks,

  look({ accountId }, view) {
    find(view, accountId);
  },

  decide({ accountId, phase, shardCount }, view) {
    const record = find(view, accountId);
    if (record?.phase !== phase) return refuse({ kind: 'not-so' });
    if (phase === 'opening') {
      if (Object.keys(record.grants).length < shardCount) return refuse({ kind: 'not-so' });
      return { outcome: { kind: 'ended' }, puts: [store({ ...record, phase: 'open' })] };
    }
    const isEmpty = Object.keys(record.quotas).length === 0;
    const row = accountQuotaRow(accountId);
    const left: AccountQuotaRecord = { ...record, phase: 'soft', grants: {} };
    return { outcome: { kind: 'ended' }, puts: [isEmpty ? remove(row) : store(left)] };
  },
});

export const noteSoftQuota = defineCommand<CommandOf<'note-soft-quota'>, OutcomeOf<'note-soft-quota'>>({
  locks,

  look({ accountId }, view) {
    find(view, accountId);
  },

  decide({ accountId, isAbove }, view, context) {
    const before = find(view, accountId);
    if (before === undefined || (before.isAboveSoft === true) === isAbove)
      return refuse({ kind: 'unchanged' });
    const { isAboveSoft: _, ...rest } = before;
    const after = store({ ...rest, ...(isAbove && { isAboveSoft: true as const }) });
    const { puts, counters } = isAbove ? noteSoftQuotaOfAccount(accountId, context) : NO_CHANGE;
    return { outcome: { kind: 'noted' }, puts: [after, ...puts], counters };
  },
});

export const getAccountQuota: QuerySpec<QueryOf<'get-account-quota'>, ResultOf<'get-account-quota'>> = {
  async run({ accountId }, state) {
    const [row] = await state.rows([accountQuotaRow(accountId)]);
    return { quota: row === undefined ? null : accountQuotaCodec.decode(row) };
  },
};

export const listAccountQuotas: QuerySpec<QueryOf<'list-account-quotas'>, ResultOf<'list-account-quotas'>> = {
  async run({ after, limit }, state) {
    const gte = u48(after === undefined ? 0 : Number(after) + 1);
    const rows = await state.range({ table: TABLES.accountQuotas, gte, lt: u48(1e12), limit });
    const quotas = rows.map(({ value }) => accountQuotaCodec.decode(value));
    const last = rows.length < limit ? undefined : quotas.at(-1);
    return { quotas, ...(last && { next: last.accountId }) };
  },
};

export const getHeld: QuerySpec<QueryOf<'get-held'>, ResultOf<'get-held'>> = {
  async run({ accountId }, state) {
    const counter = await readCounters(state, [
      ...namesOf(ofAccount(accountId)),
      ...leaseCounters(accountId),
    ]);
    const lease = leaseOf(accountId, counter);
    return { held: heldIn(ofAccount(accountId), counter), lease: lease ?? null };
  },
};

export const getHeldOfAccounts: QuerySpec<
  QueryOf<'get-held-of-accounts'>,
  ResultOf<'get-held-of-accounts'>
> = {
  async run({ accountIds }, state) {
    const all = accountIds.map(ofAccount);
    const counter = await readCounters(state, all.flatMap(namesOf));
    return { held: all.map((names) => heldIn(names, counter)) };
  },
};

export const getHeldByBucket: QuerySpec<QueryOf<'get-held-by-bucket'>, ResultOf<'get-held-by-bucket'>> = {
  async run({ bucketId }, state) {
    const held = ofBucket(bucketId);
    return { held: heldIn(held, await readCounters(state, namesOf(held))) };
  },
};

async function readCounters(state: StateReader, names: readonly string[]): Promise<(name: string) => number> {
  const values = await state.counters(names);
  const byName = new Map(names.map((name, at) => [name, values[at] ?? 0]));
  return (name) => byName.get(name) ?? 0;
}

/** Of a row of quotas: its account is there. */
export const checkAccountQuota: RowCheck = async (row, scan) => {
  const { accountId } = accountQuotaCodec.decode(row.value);
  const place = { account: accountId, table: 'accountQuotas' };
  if ((await scan.row(accountRow(accountId))) === undefined) scan.found('account-missing', place);
};

// Accounts that were deleted and of which something is left: how far the worker has come with each, and what has to stay
// (remove-accounts-worker.ts). Nothing of a bucket is removed here.
import type { CommandOf, OutcomeOf, QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, RowPut, View } from '../../ports/state-machine.ts';
import type { AccountId } from '../../types/names.ts';
import {
  type AccountRemovalRecord,
  accountRemovalCodec,
} from '../../types/records/account-removal-record.ts';
import { accountCodec } from '../../types/records/rows.ts';
import type { RowCheck } from '../checks/scan.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { u48 } from '../schema/key-parts.ts';
import { accountRemovalRow, accountRow, put, remove, TABLES } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { decodeAccountId } from './accounts.ts';

/** Of one answer. */
const REMOVALS_MAX = 100;

function findRemoval(view: View, accountId: AccountId): AccountRemovalRecord | undefined {
  const row = view.row(accountRemovalRow(accountId));
  return row && accountRemovalCodec.decode(row);
}

/** The account's removal begins; one that has begun goes on. Its row has been looked at. */
export function beginRemoval(view: View, accountId: AccountId, nowMs: number): RowPut[] {
  const before = findRemoval(view, accountId);
  const removal: AccountRemovalRecord = before ?? {
    accountId,
    beganAtMs: nowMs,
    nextAtMs: nowMs,
    stepCount: 0,
    removedBucketCount: 0,
    removedVersionCount: 0,
    kept: [],
    keptBucketCount: 0,
  };
  const due = { ...removal, nextAtMs: nowMs, stepCount: removal.stepCount + 1 };
  return [put(accountRemovalRow(accountId), accountRemovalCodec.encode(due))];
}

type Note = CommandOf<'note-account-removal'>;

export const noteAccountRemoval = defineCommand<Note, OutcomeOf<'note-account-removal'>>({
  locks: ({ accountId }) => [exclusive(LOCK.account(accountId))],

  look({ accountId }, view) {
    findRemoval(view, accountId);
  },

  decide({ accountId, stepCount, after }, view) {
    if (findRemoval(view, accountId)?.stepCount !== stepCount) return refuse({ kind: 'elsewhere' });
    const address = accountRemovalRow(accountId);
    if (after === null) return { outcome: { kind: 'noted', stepCount }, puts: [remove(address)] };
    const removal = { ...after, accountId, stepCount: stepCount + 1 };
    return {
      outcome: { kind: 'noted', stepCount: stepCount + 1 },
      puts: [put(address, accountRemovalCodec.encode(removal))],
    };
  },
});

type List = 'list-account-removals';

export const listAccountRemovals: QuerySpec<QueryOf<List>, ResultOf<List>> = {
  async run({ after, limit }, state, { nowMs }) {
    const gte = u48(after === undefined ? 0 : Number(after) + 1);
    const max = Math.min(limit, REMOVALS_MAX);
    const rows = await state.range({ table: TABLES.accountRemovals, gte, lt: u48(1e12), limit: max });
    const removals = rows.map(({ value }) => accountRemovalCodec.decode(value));
    const last = removals.at(-1)?.accountId;
    return { removals, nowMs, ...(rows.length === max && last !== undefined && { next: last }) };
  },
};

type Get = 'get-account-removal';

export const getAccountRemoval: QuerySpec<QueryOf<Get>, ResultOf<Get>> = {
  async run({ accountId }, state) {
    const [row, account] = await state.rows([accountRemovalRow(accountId), accountRow(accountId)]);
    return {
      removal: row === undefined ? null : accountRemovalCodec.decode(row),
      bucketCount: account === undefined ? 0 : accountCodec.decode(account).bucketCount,
    };
  },
};

/** Whose account is there is deleted; where it is not, its identities are left. */
export const checkAccountRemoval: RowCheck = async (row, scan) => {
  const account = decodeAccountId(row.key);
  const { accountId } = accountRemovalCodec.decode(row.value);
  const place = { account, table: 'accountRemovals' };
  if (accountId !== account) return scan.found('broken-row', place);
  const found = await scan.row(accountRow(account));
  if (found !== undefined && accountCodec.decode(found).deletedAtMs === undefined)
    scan.found('queue-orphaned', place);
};

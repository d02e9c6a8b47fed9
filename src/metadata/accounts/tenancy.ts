// The tree of accounts as rows of the system shard: one command that adds and replaces records, and the queries by which a
// gateway keeps its directory of them. What may be done with them is decided elsewhere (src/accounts/tenancy-rules.ts).
import { TABLE_END } from '../../base/table-rows.ts';
import type { CommandOf, OutcomeOf, QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, RowAddress, RowPut, View } from '../../ports/state-machine.ts';
import type { AccountId } from '../../types/names.ts';
import {
  type CustomerRecord,
  type NewTenancyRecord,
  type TenancyRecord,
  type TenancyRow,
  type TenancySequenceRecord,
  tenancyRowCodec,
  tenancySequenceCodec,
} from '../../types/records/tenancy-records.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { readU48, u48 } from '../schema/key-parts.ts';
import {
  accountCustomerRow,
  put,
  remove,
  TABLES,
  TENANCY_SEQUENCE_ROW,
  tenancyChangeRow,
  tenancyRow,
  tenancyWordRow,
} from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';

/** Records of one answer of `tenancy-changes`: some hundred bytes each. */
const CHANGES_MAX = 2000;

/** The row by which a login is one record's alone; undefined: the record has none. */
export function wordRow(record: TenancyRecord | NewTenancyRecord): RowAddress | undefined {
  if (record.deletedAtMs !== undefined) return undefined;
  if (record.kind === 'partner-user') return loginRow(record.kind, record.email);
  if (record.kind === 'member') return loginRow(record.kind, record.username);
  return undefined;
}

function loginRow(kind: 'partner-user' | 'member', login: string): RowAddress {
  return tenancyWordRow(`${kind}/${login.toLowerCase()}`);
}

export function findTenancyRow(view: View, id: number): TenancyRow | undefined {
  const row = view.row(tenancyRow(id));
  return row && tenancyRowCodec.decode(row);
}

function findSequence(view: View): TenancySequenceRecord {
  const row = view.row(TENANCY_SEQUENCE_ROW);
  return row === undefined ? { lastId: 0, lastChange: 0 } : tenancySequenceCodec.decode(row);
}

/** The sub-account that an account is. */
export function findCustomer(view: View, accountId: AccountId): CustomerRecord | undefined {
  const id = view.row(accountCustomerRow(accountId));
  const record = id && findTenancyRow(view, readU48(id))?.record;
  return record?.kind === 'customer' ? record : undefined;
}

/** What {@link writeTenancy} will look at. Its commands hold LOCK.tenancy. */
export function lookAtTenancy(view: View): void {
  view.row(TENANCY_SEQUENCE_ROW);
}

/** Gives new records their ids, and all of them their revisions; `replace` has been looked at before. */
export function writeTenancy(
  view: View,
  changes: { add?: readonly NewTenancyRecord[]; replace?: readonly TenancyRecord[] },
  nowMs: number,
): { records: TenancyRecord[]; puts: RowPut[] } {
  const sequence = { ...findSequence(view) };
  const puts: RowPut[] = [];
  const write = (record: TenancyRecord, before?: TenancyRow): TenancyRecord => {
    sequence.lastChange++;
    const row: TenancyRow = { change: sequence.lastChange, record };
    if (before !== undefined) puts.push(remove(tenancyChangeRow(before.change)));
    const oldWord = before && wordRow(before.record);
    if (oldWord !== undefined) puts.push(remove(oldWord));
    const word = wordRow(record);
    if (word !== undefined) puts.push(put(word, u48(record.id)));
    puts.push(put(tenancyRow(record.id), tenancyRowCodec.encode(row)));
    puts.push(put(tenancyChangeRow(row.change), u48(record.id)));
    return record;
  };
  const added = (changes.add ?? []).map((record) => {
    sequence.lastId++;
    return write({ ...record, id: sequence.lastId, revision: 1, createdAtMs: nowMs } as TenancyRecord);
  });
  const replaced = (changes.replace ?? []).map((record) => {
    const before = findTenancyRow(view, record.id);
    return write({ ...record, revision: (before?.record.revision ?? 0) + 1 }, before);
  });
  puts.push(put(TENANCY_SEQUENCE_ROW, tenancySequenceCodec.encode(sequence)));
  return { records: [...added, ...replaced], puts };
}

type Change = CommandOf<'change-tenancy'>;

/** What {@link refusalOf} and {@link writeTenancy} will look at. */
export function lookAtChange({ add = [], replace = [] }: Change, view: View): void {
  lookAtTenancy(view);
  for (const { record } of replace) findTenancyRow(view, record.id);
  for (const record of [...add, ...replace.map((one) => one.record)]) {
    const word = wordRow(record);
    if (word !== undefined) view.row(word);
  }
}

/** Why the change may not be written. */
export function refusalOf({ add = [], replace = [] }: Change, view: View): 'conflict' | 'taken' | undefined {
  for (const { record, ifRevision } of replace) {
    const before = findTenancyRow(view, record.id)?.record;
    if (before?.kind !== record.kind || before.revision !== ifRevision) return 'conflict';
  }
  const words = [...add, ...replace.map(({ record }) => record)].map((record) => ({
    address: wordRow(record),
    id: 'id' in record ? record.id : undefined,
  }));
  const seen = new Set<string>();
  for (const { address, id } of words) {
    if (address === undefined) continue;
    const holder = view.row(address);
    const name = Buffer.from(address.key).toString('hex');
    if (seen.has(name) || (holder !== undefined && readU48(holder) !== id)) return 'taken';
    seen.add(name);
  }
  return undefined;
}

/** Of a change that nothing refuses: those that are new come first, in their order. */
export function writeChange(
  view: View,
  { add = [], replace = [] }: Change,
  nowMs: number,
): ReturnType<typeof writeTenancy> {
  return writeTenancy(view, { add, replace: replace.map(({ record }) => record) }, nowMs);
}

export const changeTenancy = defineCommand<Change, OutcomeOf<'change-tenancy'>>({
  locks: () => [exclusive(LOCK.tenancy)],
  look: lookAtChange,

  decide(change, view, { nowMs }) {
    const refusal = refusalOf(change, view);
    if (refusal !== undefined) return refuse({ kind: refusal });
    const { records, puts } = writeChange(view, change, nowMs);
    return { outcome: { kind: 'changed', records }, puts };
  },
});

export const findTenancyChanges: QuerySpec<QueryOf<'tenancy-changes'>, ResultOf<'tenancy-changes'>> = {
  async run({ since, limit }, state) {
    const view = state.view(TABLES.buckets);
    try {
      const [last] = await view.rows([TENANCY_SEQUENCE_ROW]);
      const lastChange = last === undefined ? 0 : tenancySequenceCodec.decode(last).lastChange;
      const max = Math.min(limit, CHANGES_MAX);
      const from = tenancyChangeRow(since + 1).key;
      const rows = await view.range({ table: TABLES.tenancyChanges, gte: from, lt: TABLE_END, limit: max });
      const found = await view.rows(rows.map(({ value }) => tenancyRow(readU48(value))));
      const records = found.flatMap((row) => (row === undefined ? [] : [tenancyRowCodec.decode(row).record]));
      const end = rows.at(-1);
      const isAll = rows.length < max;
      return { records, upTo: end === undefined ? since : readU48(end.key), isAll, lastChange };
    } finally {
      view.close();
    }
  },
};

export const readTenancy: QuerySpec<QueryOf<'read-tenancy'>, ResultOf<'read-tenancy'>> = {
  async run({ ids }, state) {
    const rows = await state.rows(ids.map(tenancyRow));
    return { records: rows.map((row) => (row === undefined ? null : tenancyRowCodec.decode(row).record)) };
  },
};

export const findTenancy: QuerySpec<QueryOf<'find-tenancy'>, ResultOf<'find-tenancy'>> = {
  async run({ kind, login }, state) {
    const [id] = await state.rows([loginRow(kind, login)]);
    const [row] = id === undefined ? [] : await state.rows([tenancyRow(readU48(id))]);
    return { record: row === undefined ? null : tenancyRowCodec.decode(row).record };
  },
};

// Mails to customers as rows of the system shard: MAILS_MAX, by number, which control accounts share. Who sends them is a gateway (src/accounts/mails.ts).
import { TABLE_END } from '../../base/table-rows.ts';
import type { CommandOf, OutcomeOf, QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, RangeAddress, View } from '../../ports/state-machine.ts';
import {
  MAILS_MAX,
  type MailRecord,
  mailCodec,
  mayOrderMail,
  oldestOfMost,
} from '../../types/records/mail-record.ts';
import type { RowCheck } from '../checks/scan.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { readU48, u48 } from '../schema/key-parts.ts';
import { mailRow, put, remove, TABLES } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';

const ALL: RangeAddress = { table: TABLES.mails, gte: u48(0), lt: TABLE_END, limit: MAILS_MAX };

export const addMail = defineCommand<CommandOf<'add-mail'>, OutcomeOf<'add-mail'>>({
  locks: () => [exclusive(LOCK.tenancy)],

  look(_command, view) {
    view.range(ALL);
  },

  decide({ mail, isBounded = false }, view, { nowMs }) {
    const rows = view.range(ALL);
    const last = rows.at(-1);
    const id = (last === undefined ? 0 : readU48(last.key)) + 1;
    const record: MailRecord = { ...mail, id, createdAtMs: nowMs, state: 'waiting' };
    const isFull = rows.length >= MAILS_MAX;
    const mails =
      isFull || isBounded || mail.isToBeSent ? rows.map(({ value }) => mailCodec.decode(value)) : [];
    if (mails.some((before) => isSame(before, record))) return refuse({ kind: 'waits' });
    if (isBounded && !mayOrderMail(mails, record, nowMs)) return refuse({ kind: 'too-many' });
    const puts = [put(mailRow(id), mailCodec.encode(record))];
    if (isFull) puts.push(remove(mailRow(oldestOfMost([...mails, record]).id)));
    return { outcome: { kind: 'added', mail: record }, puts };
  },
});

/**
 * Whether one that is sent sooner or later does for both. Those that wait for the operator are never sure to be sent; and one that
 * is being sent, or was tried, may have a link that is no longer good.
 */
function isSame(before: MailRecord, { kind, customerId, to }: MailRecord): boolean {
  if (before.state !== 'waiting' || before.isToBeSent !== true || before.triedAtMs !== undefined)
    return false;
  return before.kind === kind && before.customerId === customerId && before.to === to;
}

function findMail(view: View, id: number): MailRecord | undefined {
  const row = view.row(mailRow(id));
  return row && mailCodec.decode(row);
}

export const noteMail = defineCommand<CommandOf<'note-mail'>, OutcomeOf<'note-mail'>>({
  locks: () => [exclusive(LOCK.tenancy)],

  look({ id }, view) {
    findMail(view, id);
  },

  decide({ id, state, failure, ifTriedAtMs }, view, { nowMs }) {
    const before = findMail(view, id);
    if (before === undefined) return refuse({ kind: 'gone' });
    const isAsMeant = before.state === 'waiting' && (before.triedAtMs ?? null) === ifTriedAtMs;
    if (ifTriedAtMs !== undefined && !isAsMeant) return refuse({ kind: 'elsewhere' });
    const { failure: _, ...rest } = before;
    const mail = { ...rest, state, triedAtMs: nowMs, ...(failure !== undefined && { failure }) };
    return { outcome: { kind: 'noted', mail }, puts: [put(mailRow(id), mailCodec.encode(mail))] };
  },
});

export const listMails: QuerySpec<QueryOf<'list-mails'>, ResultOf<'list-mails'>> = {
  async run(_query, state) {
    const rows = await state.range({ ...ALL, reverse: true });
    return { mails: rows.map(({ value }) => mailCodec.decode(value)) };
  },
};

export const checkMail: RowCheck = async ({ key, value }, scan) => {
  const id = readU48(key);
  if (mailCodec.decode(value).id !== id) scan.found('broken-row', { table: 'mails', note: `${id}` });
};

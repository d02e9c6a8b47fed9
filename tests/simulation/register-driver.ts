// The smallest state machine that has everything the engine must get right: keys with values, conditions, writes that
// lean on what they read, reads that follow reads, lists, and a counter. Values lie apart from keys, under ids of their
// own, so that a read which is not of one moment shows.
import { fromUtf8, toHex, utf8 } from '../../src/base/bytes/bytes.ts';
import { packPlain, unpackPlain } from '../../src/base/record-codec.ts';
import type {
  CommandSpec,
  QuerySpec,
  RowAddress,
  StateMachine,
  TableRef,
} from '../../src/ports/state-machine.ts';
import type { Driver } from './driver.ts';
import { type KeyOperation, type Outcome, stepKey } from './operations.ts';

const TABLES = {
  keys: { id: 1, column: 'rows' },
  values: { id: 1, column: 'bodies' },
} as const satisfies Record<string, TableRef>;

/** A short value lies in the row of its key as well: lists show it. */
interface KeyRow {
  valueId: string;
  value: string;
}

const keyRow = (key: string): RowAddress => ({ table: TABLES.keys, key: utf8(key) });
const valueRow = (valueId: string): RowAddress => ({ table: TABLES.values, key: utf8(valueId) });
const decodeKey = (row: Uint8Array | undefined) =>
  row === undefined ? undefined : (unpackPlain(row) as KeyRow);

type WriteOperation = Exclude<KeyOperation, { kind: 'read' }>;

/** Evaluates by the model of the checkers: what is under test is the engine, not this. */
const write: CommandSpec<WriteOperation, Outcome> = {
  locks: ({ key }) => [{ name: `key/${key}`, mode: 'exclusive' }],
  reads: ({ key }) => ({ rows: [keyRow(key)] }),
  more({ key }, view) {
    const old = decodeKey(view.row(keyRow(key)));
    return old === undefined || view.has(valueRow(old.valueId))
      ? undefined
      : { rows: [valueRow(old.valueId)] };
  },
  decide(operation, view, { random }) {
    const { key } = operation;
    const old = decodeKey(view.row(keyRow(key)));
    const oldValue = old && view.row(valueRow(old.valueId));
    const { outcome, value } = stepKey(oldValue === undefined ? null : fromUtf8(oldValue), operation);
    const isSame = value === (old?.value ?? null);
    if (isSame) return { outcome, puts: [] };
    const forget = old === undefined ? [] : [{ ...valueRow(old.valueId), value: null }];
    const counters = [{ name: 'keys', delta: Number(value !== null) - Number(old !== undefined) }];
    if (value === null) return { outcome, puts: [{ ...keyRow(key), value: null }, ...forget], counters };
    const valueId = toHex(random(6));
    const puts = [
      { ...keyRow(key), value: packPlain({ valueId, value }) },
      { ...valueRow(valueId), value: utf8(value) },
      ...forget,
    ];
    return { outcome, puts, counters };
  },
};

const read: QuerySpec<{ key: string }, Outcome> = {
  async run({ key }, state) {
    for (;;) {
      const row = decodeKey((await state.rows([keyRow(key)]))[0]);
      if (row === undefined) return { kind: 'value', value: null };
      const [value] = await state.rows([valueRow(row.valueId)]);
      // Overwritten between the two reads: look again.
      if (value !== undefined) return { kind: 'value', value: fromUtf8(value) };
    }
  },
};

const list: QuerySpec<{ after: string; limit: number }, Outcome> = {
  async run({ after, limit }, state) {
    const gte = Buffer.concat([utf8(after), Uint8Array.of(0)]);
    const rows = await state.range({ table: TABLES.keys, gte, lt: Uint8Array.of(0xff), limit: limit + 1 });
    const items = rows
      .slice(0, limit)
      .map(({ key, value }): [string, string] => [fromUtf8(key), decodeKey(value)?.value ?? '']);
    return { kind: 'page', items, isLast: rows.length <= limit };
  },
};

const machine: StateMachine = {
  commands: { write },
  queries: { read, list },
  bucketGuard: { ownerOf: () => '', address: () => keyRow('none'), check: () => undefined },
};

export const registerDriver: Driver = {
  name: 'register',
  machine,
  operations: ['put', 'create', 'remove', 'append', 'read', 'list'],
  prepare: () => [],
  call(operation, { shard }) {
    const { kind } = operation;
    if (kind === 'read' || kind === 'list')
      return { kind: 'query', envelope: { shard }, name: kind, body: operation };
    return { kind: 'execute', envelope: { shard }, name: 'write', body: operation };
  },
  outcome: (_operation, value) => value as Outcome,
};

// How far scans of this shard have come, each by its name: the command and the query, and the row that both are about. The
// audit of blobs has a row of the same table and a command of its own, since new blobs go by it (blobs/note-audit.ts).
import { utf8 } from '../../base/bytes/bytes.ts';
import type { CommandOf, OutcomeOf, QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, RowAddress } from '../../ports/state-machine.ts';
import { nextScan, scanCodec } from '../../types/records/scan-record.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { put, TABLES } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';

function scanRow(name: string): RowAddress {
  return { table: TABLES.scans, key: utf8(name) };
}

export const noteScan = defineCommand<CommandOf<'note-scan'>, OutcomeOf<'note-scan'>>({
  locks: ({ name }) => [exclusive(LOCK.scan(name))],

  look({ name }, view) {
    view.row(scanRow(name));
  },

  decide(command, view, { nowMs }) {
    const row = view.row(scanRow(command.name));
    const scan = nextScan(command, row && scanCodec.decode(row), nowMs);
    if (scan === undefined) return refuse({ kind: 'gone' });
    return { outcome: { kind: 'noted', scan }, puts: [put(scanRow(command.name), scanCodec.encode(scan))] };
  },
});

export const getScan: QuerySpec<QueryOf<'get-scan'>, ResultOf<'get-scan'>> = {
  async run({ name }, state) {
    const [row] = await state.rows([scanRow(name)]);
    return { scan: row === undefined ? null : scanCodec.decode(row) };
  },
};

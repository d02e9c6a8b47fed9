// A small state machine for tests of the engine: notes in buckets, with every feature that the engine offers (rows,
// ranges, reads that follow reads, refusals, counters, both columns, chance, time).
import { afterPrefix, fromUtf8, toHex, utf8 } from '../../src/base/bytes/bytes.ts';
import { packPlain, unpackPlain } from '../../src/base/record-codec.ts';
import type {
  CommandSpec,
  QuerySpec,
  RangeAddress,
  RowAddress,
  StateMachine,
  TableRef,
} from '../../src/ports/state-machine.ts';

export const noteTables = {
  buckets: { id: 1, column: 'rows' },
  notes: { id: 2, column: 'rows' },
  texts: { id: 1, column: 'bodies' },
} as const satisfies Record<string, TableRef>;

interface Bucket {
  name: string;
  isOpen: boolean;
  cfgVersion: number;
}
interface Note {
  textId: string;
  writtenAtMs: number;
}

const bucketRow = (bucketId: string): RowAddress => ({ table: noteTables.buckets, key: utf8(bucketId) });
const noteRow = (bucketId: string, key: string): RowAddress => ({
  table: noteTables.notes,
  key: utf8(`${bucketId}/${key}`),
});
const textRow = (textId: string): RowAddress => ({ table: noteTables.texts, key: utf8(textId) });
function notesOf(bucketId: string, limit: number): RangeAddress {
  const gte = utf8(`${bucketId}/`);
  return { table: noteTables.notes, gte, lt: afterPrefix(gte) ?? gte, limit };
}
const decode = <T>(row: Uint8Array | undefined) => (row === undefined ? undefined : (unpackPlain(row) as T));

const shared = (bucketId: string, key: string) => [
  { name: `bucket/${bucketId}`, mode: 'shared' as const },
  { name: `key/${bucketId}/${key}`, mode: 'exclusive' as const },
];

type BucketOutcome = { kind: 'set' } | { kind: 'not-empty' };
const setBucket: CommandSpec<{ bucketId: string } & Bucket, BucketOutcome> = {
  locks: ({ bucketId }) => [{ name: `bucket/${bucketId}`, mode: 'exclusive' }],
  reads: ({ bucketId, isOpen }) => ({ ranges: isOpen ? [] : [notesOf(bucketId, 1)] }),
  decide({ bucketId, ...bucket }, view) {
    if (!bucket.isOpen && view.range(notesOf(bucketId, 1)).length > 0)
      return { outcome: { kind: 'not-empty' }, puts: [] };
    return {
      outcome: { kind: 'set' },
      puts: [{ ...bucketRow(bucketId), value: packPlain(bucket) }],
    };
  },
};

interface WriteNote {
  bucketId: string;
  key: string;
  text: string;
  onlyIfAbsent?: boolean;
  /** Of the bucket, by its counter. */
  notesMax?: number;
}
type WriteOutcome =
  | { kind: 'written'; textId: string; replaced: string | null }
  | { kind: 'exists' }
  | { kind: 'full' };
const writeNote: CommandSpec<WriteNote, WriteOutcome> = {
  locks: ({ bucketId, key }) => shared(bucketId, key),
  reads: ({ bucketId, key }) => ({ rows: [noteRow(bucketId, key)] }),
  /** The text that is replaced. */
  more({ bucketId, key }, view) {
    const old = decode<Note>(view.row(noteRow(bucketId, key)));
    return old === undefined || view.has(textRow(old.textId)) ? undefined : { rows: [textRow(old.textId)] };
  },
  decide({ bucketId, key, text, onlyIfAbsent = false, notesMax }, view, { nowMs, random, counter }) {
    const old = decode<Note>(view.row(noteRow(bucketId, key)));
    if (old !== undefined && onlyIfAbsent) return { outcome: { kind: 'exists' }, puts: [] };
    if (notesMax !== undefined && counter(`notes/${bucketId}`) >= notesMax)
      return { outcome: { kind: 'full' }, puts: [] };
    const oldText = old === undefined ? undefined : view.row(textRow(old.textId));
    const textId = toHex(random(4));
    const note: Note = { textId, writtenAtMs: nowMs };
    return {
      outcome: { kind: 'written', textId, replaced: oldText === undefined ? null : fromUtf8(oldText) },
      puts: [
        { ...noteRow(bucketId, key), value: packPlain(note) },
        { ...textRow(textId), value: utf8(text) },
        ...(old === undefined ? [] : [{ ...textRow(old.textId), value: null }]),
      ],
      counters: [
        { name: `notes/${bucketId}`, delta: old === undefined ? 1 : 0 },
        { name: 'bytes', delta: utf8(text).length - (oldText?.length ?? 0) },
      ],
    };
  },
};

type DropOutcome = { kind: 'dropped' } | { kind: 'absent' };
const dropNote: CommandSpec<{ bucketId: string; key: string }, DropOutcome> = {
  locks: ({ bucketId, key }) => shared(bucketId, key),
  reads: ({ bucketId, key }) => ({ rows: [noteRow(bucketId, key)] }),
  decide({ bucketId, key }, view) {
    const old = decode<Note>(view.row(noteRow(bucketId, key)));
    if (old === undefined) return { outcome: { kind: 'absent' }, puts: [] };
    return {
      outcome: { kind: 'dropped' },
      puts: [
        { ...noteRow(bucketId, key), value: null },
        { ...textRow(old.textId), value: null },
      ],
      counters: [{ name: `notes/${bucketId}`, delta: -1 }],
    };
  },
};

const breakDown: CommandSpec<Record<never, never>, never> = {
  locks: () => [{ name: 'break', mode: 'exclusive' }],
  reads: () => ({}),
  decide() {
    throw new Error('a bug in a command');
  },
};

const readNote: QuerySpec<{ bucketId: string; key: string }, { text: string | null }> = {
  async run({ bucketId, key }, state) {
    for (;;) {
      const note = decode<Note>((await state.rows([noteRow(bucketId, key)]))[0]);
      if (note === undefined) return { text: null };
      const [text] = await state.rows([textRow(note.textId)]);
      // The note may have been replaced between the two reads, and its text be gone: look again.
      if (text !== undefined) return { text: fromUtf8(text) };
    }
  },
};

const listNotes: QuerySpec<{ bucketId: string; limit: number }, { keys: string[]; count: number }> = {
  async run({ bucketId, limit }, state) {
    const rows = await state.range(notesOf(bucketId, limit));
    const [count = 0] = await state.counters([`notes/${bucketId}`]);
    return { keys: rows.map(({ key }) => fromUtf8(key).slice(bucketId.length + 1)), count };
  },
};

export const noteMachine: StateMachine = {
  commands: { 'set-bucket': setBucket, 'write-note': writeNote, 'drop-note': dropNote, break: breakDown },
  queries: { 'read-note': readNote, 'list-notes': listNotes },
  bucketGuard: {
    ownerOf: () => 'owner',
    address: bucketRow,
    check(envelope, row) {
      const bucket = decode<Bucket>(row);
      if (bucket?.isOpen && bucket.name === envelope.name && bucket.cfgVersion === envelope.cfgVersion)
        return undefined;
      return { bucket: bucket ?? null };
    },
  },
};

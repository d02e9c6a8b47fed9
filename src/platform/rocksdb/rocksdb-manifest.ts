// The manifest of a RocksDB database: which tables it consists of, and taking lost ones out of it so that the rest opens. The
// binding offers neither repair nor recovery of what is there. Nobody may have the database open. Formats: RocksDB's
// db/log_format.h (records in blocks of 32 KiB) and db/version_edit.h (tagged fields of a change).
import { open, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Corruption } from '../../base/corruption.ts';
import { crcOf } from '../../base/crypto/crc.ts';

export interface TableFile {
  number: number;
  /** As files are called: `000123.sst`. */
  name: string;
  column: string;
  sizeBytes: number;
}

interface LiveTable {
  columnId: number;
  level: number;
  sizeBytes: number;
}

const BLOCK_BYTES = 32 * 1024;
const HEADER_BYTES = 7;
const RECORD = { full: 1, first: 2, middle: 3, last: 4 } as const;
const TAG = {
  comparator: 1,
  logNumber: 2,
  nextFile: 3,
  lastSequence: 4,
  compactCursor: 5,
  deletedFile: 6,
  prevLogNumber: 9,
  minLogToKeep: 10,
  newFile4: 103,
  column: 200,
  columnAdd: 201,
  columnDrop: 202,
  maxColumn: 203,
  inAtomicGroup: 300,
} as const;
/** Fields with this bit may be passed over by those who do not know them. */
const IGNORABLE = 1 << 13;
const TERMINATE = 1;

/** A live database's tables. Throws {@link Corruption} where the manifest itself is damaged or unknown. */
export class Manifest {
  readonly #path: string;
  readonly #tables = new Map<number, LiveTable>();
  readonly #columns = new Map<number, string>([[0, 'default']]);

  private constructor(path: string) {
    this.#path = path;
  }

  static async read(folder: string): Promise<Manifest> {
    const current = (await readFile(join(folder, 'CURRENT'), 'utf8')).trim();
    const manifest = new Manifest(join(folder, current));
    for (const record of recordsOf(await readFile(manifest.#path))) manifest.#apply(record);
    return manifest;
  }

  get path(): string {
    return this.#path;
  }

  tables(): TableFile[] {
    return [...this.#tables].map(([number, { columnId, sizeBytes }]) => {
      const column = this.#columns.get(columnId) ?? String(columnId);
      return { number, name: `${String(number).padStart(6, '0')}.sst`, column, sizeBytes };
    });
  }

  /** Takes tables out: durable when it resolves. */
  async remove(numbers: readonly number[]): Promise<void> {
    const byColumn = Map.groupBy(numbers, (number) => this.#tables.get(number)?.columnId ?? 0);
    let { size: offset } = await stat(this.#path);
    const parts: Buffer[] = [];
    for (const [columnId, ofColumn] of byColumn) {
      const fields = ofColumn.flatMap((number) => {
        const level = this.#tables.get(number)?.level ?? 0;
        return [...varint(TAG.deletedFile), ...varint(level), ...varint(number)];
      });
      const framed = frame(Buffer.from([...fields, ...varint(TAG.column), ...varint(columnId)]), offset);
      offset += framed.length;
      parts.push(framed);
    }
    await using file = await open(this.#path, 'a');
    await file.writeFile(Buffer.concat(parts));
    await file.sync();
    for (const number of numbers) this.#tables.delete(number);
  }

  #apply(record: Buffer): void {
    const fields = new FieldReader(record);
    let columnId = 0;
    let columnName: string | undefined;
    const deleted: number[] = [];
    const added: [number, Omit<LiveTable, 'columnId'>][] = [];
    while (!fields.isAtEnd()) {
      const tag = fields.varint();
      if (tag === TAG.deletedFile) {
        fields.varint();
        deleted.push(fields.varint());
      } else if (tag === TAG.newFile4) added.push(readNewFile(fields));
      else if (tag === TAG.column) columnId = fields.varint();
      else if (tag === TAG.columnAdd) columnName = fields.slice().toString('utf8');
      else passOver(tag, fields);
    }
    for (const number of deleted) this.#tables.delete(number);
    for (const [number, table] of added) this.#tables.set(number, { columnId, ...table });
    if (columnName !== undefined) this.#columns.set(columnId, columnName);
  }
}

function readNewFile(fields: FieldReader): [number, Omit<LiveTable, 'columnId'>] {
  const level = fields.varint();
  const number = fields.varint();
  const sizeBytes = fields.varint();
  for (const _bound of ['smallest', 'largest']) fields.slice();
  for (const _sequence of ['smallest', 'largest']) fields.varint();
  for (let tag = fields.varint(); tag !== TERMINATE; tag = fields.varint()) fields.slice();
  return [number, { level, sizeBytes }];
}

function passOver(tag: number, fields: FieldReader): void {
  if (tag === TAG.comparator || (tag & IGNORABLE) !== 0) {
    fields.slice();
  } else if (tag === TAG.compactCursor) {
    fields.varint();
    fields.slice();
  } else if (tag !== TAG.columnDrop) {
    const known: readonly number[] = Object.values(TAG);
    if (!known.includes(tag)) throw new Corruption(`the manifest has a field ${tag}, which is not known`);
    fields.varint();
  }
}

class FieldReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** Up to 2^53: larger ones are sequence numbers, which nobody here needs exactly. */
  varint(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw new Corruption('the manifest ends within a field');
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
  }

  slice(): Buffer {
    const length = this.varint();
    if (this.#at + length > this.#bytes.length) throw new Corruption('the manifest ends within a field');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
}

/** The records of a log file; one that is cut short at the end was never acknowledged. */
function* recordsOf(file: Buffer): Generator<Buffer> {
  let pieces: Buffer[] = [];
  for (let at = 0; at + HEADER_BYTES <= file.length; ) {
    const leftBytes = BLOCK_BYTES - (at % BLOCK_BYTES);
    if (leftBytes < HEADER_BYTES) {
      at += leftBytes;
      continue;
    }
    const length = file.readUInt16LE(at + 4);
    const type = file[at + 6] ?? 0;
    const end = at + HEADER_BYTES + length;
    // Room that was reserved for the file and not written.
    if (type === 0 && length === 0) return;
    if (end > file.length) return;
    if (file.readUInt32LE(at) !== checksumOf(file.subarray(at + 6, end)))
      throw new Corruption(`the manifest is damaged at byte ${at}`);
    const payload = file.subarray(at + HEADER_BYTES, end);
    if (type === RECORD.full) yield payload;
    else if (type === RECORD.first) pieces = [payload];
    else if (type === RECORD.middle || type === RECORD.last) pieces.push(payload);
    else throw new Corruption(`the manifest has a record of type ${type}, which is not known`);
    if (type === RECORD.last) yield Buffer.concat(pieces);
    at = end;
  }
}

/** A record as it is written behind `offset`. */
function frame(payload: Buffer, offset: number): Buffer {
  const parts: Buffer[] = [];
  let at = offset;
  let from = 0;
  do {
    const leftBytes = BLOCK_BYTES - (at % BLOCK_BYTES);
    if (leftBytes < HEADER_BYTES) {
      parts.push(Buffer.alloc(leftBytes));
      at += leftBytes;
      continue;
    }
    const part = payload.subarray(from, from + leftBytes - HEADER_BYTES);
    const isFirst = from === 0;
    const isLast = from + part.length === payload.length;
    const type = isFirst ? (isLast ? RECORD.full : RECORD.first) : isLast ? RECORD.last : RECORD.middle;
    const body = Buffer.concat([Buffer.of(type), part]);
    const head = Buffer.alloc(HEADER_BYTES - 1);
    head.writeUInt32LE(checksumOf(body), 0);
    head.writeUInt16LE(part.length, 4);
    parts.push(head, body);
    from += part.length;
    at += HEADER_BYTES + part.length;
  } while (from < payload.length);
  return Buffer.concat(parts);
}

/** CRC32C of type and payload, masked because what is stored may hold checksums itself. */
function checksumOf(bytes: Uint8Array): number {
  const crc = Buffer.from(crcOf('CRC32C', bytes)).readUInt32BE(0);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  bytes.push(rest);
  return bytes;
}

// Messages in the encoding of Protocol Buffers (version 3), by tables of their fields. Clusters speak by it to one another and to
// etcd. A library would read the whole contracts at every start and write code for each message, which took a tenth of a
// start's time. Only the types that these contracts have; fields that no table names are passed over.
import { BrokenInvariant } from './assert.ts';

/** `int64` is a bigint: numbers of etcd have all 64 bits. */
export type FieldType = 'uint32' | 'int64' | 'bool' | 'double' | 'string' | 'bytes' | MessageCodec<object>;

export interface FieldRow {
  readonly number: number;
  readonly type: FieldType;
  readonly isRepeated?: true;
}

export interface MessageCodec<T extends object> {
  /** Fields that are absent, or have the value that absent ones mean, are not written. */
  encode(message: T): Buffer;
  /** Absent fields get what they mean: 0, an empty text, no bytes, an empty list, null for a message. Bytes are views. */
  decode(bytes: Uint8Array): T;
}

const WIRE = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;
const VARINT_BYTES_MAX = 10;
const LOW_BITS = 0x7f;
const MORE = 0x80;
const UINT32_BITS = 32;

type Value = number | bigint | boolean | string | Uint8Array | object | null;

/** A field with what is decided once: its name, its tag, and whether its lists are packed. */
interface Field extends FieldRow {
  readonly name: string;
  readonly wire: number;
}

/** Makes the codec of a message. The order of `rows` is the order in which fields are written. */
export function messageCodec<T extends object>(
  rows: Readonly<Record<keyof T & string, FieldRow>>,
): MessageCodec<T> {
  const fields = Object.entries<FieldRow>(rows).map(([name, row]): Field => {
    return { ...row, name, wire: wireOf(row.type) };
  });
  const byNumber = new Map(fields.map((field) => [field.number, field]));
  return {
    encode(message) {
      const values = message as Readonly<Record<string, Value | readonly Value[] | undefined>>;
      const parts = new Writer();
      for (const field of fields) writeField(parts, field, values[field.name]);
      return parts.end();
    },
    decode(bytes) {
      const message: Record<string, Value | Value[]> = {};
      for (const field of fields) message[field.name] = field.isRepeated ? [] : emptyOf(field.type);
      const reader = new Reader(bytes);
      while (!reader.isAtEnd) {
        const tag = reader.uint32();
        const field = byNumber.get(tag >>> 3);
        if (field === undefined) reader.skip(tag & 7);
        else readField(reader, field, tag & 7, message);
      }
      return message as T;
    },
  };
}

function wireOf(type: FieldType): number {
  if (type === 'uint32' || type === 'int64' || type === 'bool') return WIRE.varint;
  return type === 'double' ? WIRE.fixed64 : WIRE.bytes;
}

function emptyOf(type: FieldType): Value {
  if (type === 'uint32' || type === 'double') return 0;
  if (type === 'int64') return 0n;
  if (type === 'bool') return false;
  if (type === 'string') return '';
  return type === 'bytes' ? Buffer.alloc(0) : null;
}

function writeField(parts: Writer, field: Field, value: Value | readonly Value[] | undefined): void {
  const { number, type, wire } = field;
  if (value === undefined || value === null) return;
  if (!field.isRepeated) {
    const isEmpty = value === 0 || value === 0n || value === false || value === '';
    if (isEmpty || (value instanceof Uint8Array && value.length === 0)) return;
    parts.tag(number, wire);
    parts.value(type, value as Value);
    return;
  }
  const list = value as readonly Value[];
  if (list.length === 0) return;
  if (wire === WIRE.bytes) {
    for (const one of list) {
      parts.tag(number, wire);
      parts.value(type, one);
    }
    return;
  }
  const packed = new Writer();
  for (const one of list) packed.value(type, one);
  parts.tag(number, WIRE.bytes);
  parts.value('bytes', packed.end());
}

function readField(reader: Reader, field: Field, wire: number, message: Record<string, Value | Value[]>) {
  const { name, type } = field;
  if (!field.isRepeated) {
    if (wire !== field.wire) throw new BrokenInvariant(`a message whose field ${name} is of another type`);
    message[name] = reader.value(type);
    return;
  }
  const list = message[name] as Value[];
  if (wire === field.wire) list.push(reader.value(type));
  else if (wire === WIRE.bytes) {
    const packed = new Reader(reader.bytes());
    while (!packed.isAtEnd) list.push(packed.value(type));
  } else throw new BrokenInvariant(`a message whose field ${name} is of another type`);
}

class Writer {
  #bytes = Buffer.allocUnsafe(64);
  #size = 0;

  tag(number: number, wire: number): void {
    this.#uint32((number << 3) | wire);
  }

  value(type: FieldType, value: Value): void {
    if (type === 'uint32') this.#uint32(value as number);
    else if (type === 'bool') this.#uint32(value === true ? 1 : 0);
    else if (type === 'int64') this.#int64(value as bigint);
    else if (type === 'double') {
      this.#reserve(8);
      this.#size = this.#bytes.writeDoubleLE(value as number, this.#size);
    } else if (type === 'string') this.#run(Buffer.from(value as string, 'utf8'));
    else this.#run(type === 'bytes' ? (value as Uint8Array) : type.encode(value as object));
  }

  end(): Buffer {
    return this.#bytes.subarray(0, this.#size);
  }

  #run(run: Uint8Array): void {
    this.#uint32(run.length);
    this.#reserve(run.length);
    this.#bytes.set(run, this.#size);
    this.#size += run.length;
  }

  #uint32(value: number): void {
    this.#reserve(VARINT_BYTES_MAX);
    let rest = value >>> 0;
    while (rest > LOW_BITS) {
      this.#bytes[this.#size++] = (rest & LOW_BITS) | MORE;
      rest >>>= 7;
    }
    this.#bytes[this.#size++] = rest;
  }

  #int64(value: bigint): void {
    this.#reserve(VARINT_BYTES_MAX);
    let rest = BigInt.asUintN(64, value);
    while (rest > 0x7fn) {
      this.#bytes[this.#size++] = Number(rest & 0x7fn) | MORE;
      rest >>= 7n;
    }
    this.#bytes[this.#size++] = Number(rest);
  }

  #reserve(sizeBytes: number): void {
    if (this.#size + sizeBytes <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#size + sizeBytes));
    grown.set(this.#bytes.subarray(0, this.#size));
    this.#bytes = grown;
  }
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  value(type: FieldType): Value {
    if (type === 'uint32') return this.uint32();
    if (type === 'int64') return this.#int64();
    if (type === 'bool') return this.#int64() !== 0n;
    if (type === 'double') return this.#bytes.readDoubleLE(this.#take(8));
    const bytes = this.bytes();
    if (type === 'bytes') return bytes;
    return type === 'string' ? bytes.toString('utf8') : type.decode(bytes);
  }

  /** The low 32 bits of a number. */
  uint32(): number {
    const first = this.#bytes[this.#take(1)] ?? 0;
    if (first < MORE) return first;
    let value = first & LOW_BITS;
    for (let shift = 7; ; shift += 7) {
      if (shift >= VARINT_BYTES_MAX * 7) throw new BrokenInvariant('a message with a number without end');
      const byte = this.#bytes[this.#take(1)] ?? 0;
      if (shift < UINT32_BITS) value |= (byte & LOW_BITS) << shift;
      if (byte < MORE) return value >>> 0;
    }
  }

  bytes(): Buffer {
    const size = this.uint32();
    const from = this.#take(size);
    return this.#bytes.subarray(from, from + size);
  }

  skip(wire: number): void {
    if (wire === WIRE.varint) this.#int64();
    else if (wire === WIRE.fixed64) this.#take(8);
    else if (wire === WIRE.bytes) this.bytes();
    else if (wire === WIRE.fixed32) this.#take(4);
    else throw new BrokenInvariant(`a message with a field of kind ${wire}`);
  }

  #int64(): bigint {
    let value = 0n;
    for (let shift = 0; ; shift += 7) {
      if (shift >= VARINT_BYTES_MAX * 7) throw new BrokenInvariant('a message with a number without end');
      const byte = this.#bytes[this.#take(1)] ?? 0;
      value |= BigInt(byte & LOW_BITS) << BigInt(shift);
      if (byte < MORE) return BigInt.asIntN(64, value);
    }
  }

  /** Where the next `size` bytes begin, which are taken by this. */
  #take(size: number): number {
    const from = this.#at;
    if (from + size > this.#bytes.length) throw new BrokenInvariant('a message that ends too early');
    this.#at += size;
    return from;
  }
}

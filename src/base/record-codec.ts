// Records as bytes: one version byte, then MessagePack. Used for stored rows and for commands on the wire.
// It knows no record; model/records names them, with their versions and migrations.
import { addExtension, Packr } from 'msgpackr';
import { BrokenInvariant, must } from './assert.ts';
import { asBuffer } from './bytes/bytes.ts';

// Extensions that the library reads whatever its options say: errors, regular expressions, dates, and parts that refer to one
// another, which unfold without bound. Nothing that is plain has them, and bytes from clients are decoded here (sessions.ts).
const NOT_PLAIN = [0x42, 0x62, 0x65, 0x69, 0x70, 0x73, 0x74, 0x78, 0xff];
for (const type of NOT_PLAIN)
  addExtension({
    type,
    unpack() {
      throw new BrokenInvariant('a record has something that is no plain data');
    },
  });

// A date would be written and could not be read again. What else is not plain comes back as something plain, or throws anyway.
addExtension({
  Class: Date,
  type: 0xff,
  write: refuseDate,
  unpack: refuseDate,
});

// `useRecords: false`: plain MessagePack maps, readable by any implementation and stable over releases.
// Integers above 32 bits travel as float64, exact up to 2^53, so no bigint ever appears in a record.
const packr = new Packr({
  useRecords: false,
  int64AsType: 'number',
  moreTypes: false,
  structuredClone: false,
  encodeUndefinedAsNil: false,
});

function refuseDate(): never {
  throw new BrokenInvariant('a date is no plain data');
}

/** Plain data that a record may hold. Bytes come back as Buffers. */
export type Plain =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | readonly Plain[]
  | { readonly [name: string]: Plain | undefined };

export function packPlain(value: unknown): Uint8Array {
  return packr.pack(value);
}

export function unpackPlain(bytes: Uint8Array): unknown {
  return packr.unpack(bytes);
}

/**
 * The same of bytes that a client sends. The library obeys definitions of records whatever its options say, and makes code of
 * each: they are refused, as all extensions are, before it looks at anything.
 */
export function unpackSent(bytes: Uint8Array): unknown {
  refuseExtensions(bytes);
  return packr.unpack(bytes);
}

/** By head: bytes behind it that are no values; of a length in the head's next 1, 2 or 4 bytes, -1, -2 and -4. */
const BEHIND_HEAD: Readonly<Record<number, number>> = {
  ...{ 192: 0, 194: 0, 195: 0, 196: -1, 197: -2, 198: -4, 202: 4, 203: 8 },
  ...{ 204: 1, 205: 2, 206: 4, 207: 8, 208: 1, 209: 2, 210: 4, 211: 8 },
  ...{ 217: -1, 218: -2, 219: -4, 220: 2, 221: 4, 222: 2, 223: 4 },
};

/** MessagePack specification, "Formats": each value begins with its head, also within arrays and maps. */
function refuseExtensions(bytes: Uint8Array): void {
  const buffer = asBuffer(bytes);
  for (let at = 0; at < bytes.length; ) {
    const head = must(buffer[at++], 'it is within the bytes');
    // Small integers and heads of short maps and arrays; short texts.
    if (head < 0xa0 || head >= 0xe0) continue;
    const behind = head < 0xc0 ? head & 0x1f : BEHIND_HEAD[head];
    if (behind === undefined) throw new BrokenInvariant('a record has something that is no plain data');
    if (behind >= 0) at += behind;
    else at += -behind + (at - behind <= bytes.length ? buffer.readUIntBE(at, -behind) : 0);
  }
}

/** Several packed values, one behind the other. */
export function unpackAll(bytes: Uint8Array): unknown[] {
  return packr.unpackMultiple(bytes);
}

/** How one kind of record is stored: `version` is written, older ones are brought up by `migrate`. */
export interface RecordCodec<T> {
  readonly name: string;
  encode(record: T): Uint8Array;
  /** Throws {@link BrokenInvariant} for a version newer than this program knows. */
  decode(bytes: Uint8Array): T;
}

/**
 * Makes a codec for records of type `T`. `migrations[v]` turns the plain form of version v into that of v + 1;
 * a record is therefore readable for ever once written.
 */
export function defineRecord<T extends object>(options: {
  name: string;
  version: number;
  migrations?: Readonly<Record<number, (old: never) => unknown>>;
}): RecordCodec<T> {
  const { name, version, migrations = {} } = options;
  return {
    name,
    encode(record) {
      const body = packr.pack(record);
      const bytes = Buffer.allocUnsafe(1 + body.length);
      bytes[0] = version;
      bytes.set(body, 1);
      return bytes;
    },
    decode(bytes) {
      const stored = bytes[0] ?? 0;
      if (stored < 1 || stored > version)
        throw new BrokenInvariant(`${name}: unknown format version ${stored}`);
      let plain = packr.unpack(bytes.subarray(1)) as unknown;
      for (let from = stored; from < version; from++) {
        const migrate = migrations[from];
        if (migrate === undefined) throw new BrokenInvariant(`${name}: no migration from version ${from}`);
        plain = migrate(plain as never);
      }
      return plain as T;
    },
  };
}

/**
 * A decoder that looks at the same memory once: for rows that are kept, or asked for several times within a command. What it
 * gives is shared, and frozen for that.
 */
export function decodeOnce<T extends object>(codec: RecordCodec<T>): (bytes: Uint8Array) => Readonly<T> {
  const decoded = new WeakMap<Uint8Array, Readonly<T>>();
  return (bytes) => {
    let record = decoded.get(bytes);
    if (record === undefined) {
      record = Object.freeze(codec.decode(bytes));
      decoded.set(bytes, record);
    }
    return record;
  };
}

// Bytes written and read one field behind the other, numbers in big-endian order. Who writes knows how many bytes there
// will be: a record is written once, into memory that is exactly its own.
import { assert, BrokenInvariant } from '../assert.ts';
import { asBuffer } from './bytes.ts';

export class ByteWriter {
  readonly #buffer: Buffer;
  #at: number;

  /** Writes into `buffer` from `at` on. */
  constructor(buffer: Buffer, at = 0) {
    this.#buffer = buffer;
    this.#at = at;
  }

  /** A number of so many bytes, 6 at most. Throws RangeError for one that does not fit. */
  uint(value: number, sizeBytes: 1 | 2 | 4 | 6): void {
    this.#at = this.#buffer.writeUIntBE(value, this.#at, sizeBytes);
  }

  bytes(value: Uint8Array): void {
    this.#buffer.set(value, this.#at);
    this.#at += value.length;
  }

  /** `text`: hex digits of so many bytes. */
  hex(text: string, sizeBytes: number): void {
    const written = this.#buffer.write(text, this.#at, sizeBytes, 'hex');
    assert(written === sizeBytes && text.length === 2 * sizeBytes, 'an id is hex of a fixed size');
    this.#at += sizeBytes;
  }

  /** A text of ASCII, as many bytes as characters. */
  ascii(text: string): void {
    this.#at += this.#buffer.write(text, this.#at, text.length, 'latin1');
  }

  /** All of the memory is written. */
  end(): void {
    assert(this.#at === this.#buffer.length, 'as many bytes are written as were counted');
  }
}

/** Throws {@link BrokenInvariant} or RangeError where the bytes end too early. */
export class ByteReader {
  readonly #buffer: Buffer;
  #at: number;

  constructor(bytes: Uint8Array, at = 0) {
    this.#buffer = asBuffer(bytes);
    this.#at = at;
  }

  uint(sizeBytes: 1 | 2 | 4 | 6): number {
    const value = this.#buffer.readUIntBE(this.#at, sizeBytes);
    this.#at += sizeBytes;
    return value;
  }

  /** A view. */
  bytes(sizeBytes: number): Buffer {
    return this.#buffer.subarray(this.#at, this.#pass(sizeBytes));
  }

  hex(sizeBytes: number): string {
    return this.#buffer.toString('hex', this.#at, this.#pass(sizeBytes));
  }

  ascii(sizeBytes: number): string {
    return this.#buffer.toString('latin1', this.#at, this.#pass(sizeBytes));
  }

  /** Nothing is left. */
  end(): void {
    if (this.#at !== this.#buffer.length) throw new BrokenInvariant('a record has bytes behind its end');
  }

  #pass(sizeBytes: number): number {
    this.#at += sizeBytes;
    if (this.#at > this.#buffer.length) throw new BrokenInvariant('a record ends too early');
    return this.#at;
  }
}

// Page-aligned memory for direct writes, taken once and used again. A Buffer over a WebAssembly.Memory is page-aligned; one that
// Node makes is not.
import { assert } from '../../base/assert.ts';
import { BLOCK_BYTES, roundUp } from './extent-record.ts';

/** As far as it is used here: its types come with the DOM's, which are not for servers. */
declare const WebAssembly: {
  Memory: new (size: {
    initial: number;
    maximum: number;
    shared: boolean;
  }) => { readonly buffer: ArrayBuffer };
};

const WASM_PAGE_BYTES = 64 * 1024;

export interface AlignedPiece {
  readonly bytes: Buffer;
  release(): void;
}

/** Where records lie while they are written. */
export interface PieceMemory {
  /** Of at least `sizeBytes`, in whole blocks. In the order of the calls. */
  take(sizeBytes: number): Promise<AlignedPiece>;
}

/** Pieces of one stretch of memory, first fit; who finds none waits for its turn. */
export class AlignedMemory implements PieceMemory {
  readonly #memory: Buffer;
  /** Free ranges by offset, none beside another. */
  #free: { offset: number; length: number }[];
  readonly #waiting: { sizeBytes: number; give(piece: AlignedPiece): void }[] = [];

  /** `isShared`: other threads may work in it. */
  constructor(sizeBytes: number, { isShared } = { isShared: false }) {
    const pages = Math.ceil(sizeBytes / WASM_PAGE_BYTES);
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: isShared });
    this.#memory = Buffer.from(memory.buffer);
    this.#free = [{ offset: 0, length: this.#memory.length }];
  }

  get sizeBytes(): number {
    return this.#memory.length;
  }

  take(sizeBytes: number): Promise<AlignedPiece> {
    const length = Math.max(BLOCK_BYTES, roundUp(sizeBytes));
    assert(length <= this.#memory.length, 'a piece fits into the memory');
    const piece = this.takeNow(length);
    if (piece !== undefined) return Promise.resolve(piece);
    return new Promise((give) => this.#waiting.push({ sizeBytes: length, give }));
  }

  /** undefined: there is no room now, or others wait for it. */
  takeNow(sizeBytes: number): AlignedPiece | undefined {
    return this.#waiting.length === 0 ? this.#cut(Math.max(BLOCK_BYTES, roundUp(sizeBytes))) : undefined;
  }

  #cut(length: number): AlignedPiece | undefined {
    const at = this.#free.findIndex((range) => range.length >= length);
    const range = this.#free[at];
    if (range === undefined) return undefined;
    const { offset } = range;
    if (range.length === length) this.#free.splice(at, 1);
    else this.#free[at] = { offset: offset + length, length: range.length - length };
    let isReleased = false;
    return {
      bytes: this.#memory.subarray(offset, offset + length),
      release: () => {
        assert(!isReleased, 'a piece is released once');
        isReleased = true;
        this.#give({ offset, length });
      },
    };
  }

  #give(range: { offset: number; length: number }): void {
    const at = this.#free.findIndex(({ offset }) => offset > range.offset);
    this.#free.splice(at === -1 ? this.#free.length : at, 0, range);
    const joined: { offset: number; length: number }[] = [];
    for (const next of this.#free) {
      const last = joined.at(-1);
      if (last !== undefined && last.offset + last.length === next.offset) last.length += next.length;
      else joined.push({ ...next });
    }
    this.#free = joined;
    for (let first = this.#waiting[0]; first !== undefined; [first] = this.#waiting) {
      const piece = this.#cut(first.sizeBytes);
      if (piece === undefined) return;
      this.#waiting.shift();
      first.give(piece);
    }
  }
}

// Memory in which bodies arrive where the disk takes them from: each lies in a whole record, behind the room of its head, so that
// the record is written out of it without a copy (extents.ts).
import { AlignedMemory, type AlignedPiece } from './aligned-memory.ts';
import { BLOCK_BYTES, recordBytes } from './extent-record.ts';

export interface ReceivedBody {
  /** Of the length that was asked for. */
  readonly bytes: Uint8Array;
  /** Called once. The memory is used again when the writes that have taken the record are done with it, too. */
  release(): void;
}

interface Held {
  piece: AlignedPiece;
  userCount: number;
}

export class RecordMemory {
  readonly #memory: AlignedMemory;
  /** By where the body begins. */
  readonly #held = new Map<number, Held>();

  /** `isShared`: other threads may work in it. */
  constructor(sizeBytes: number, sharing = { isShared: false }) {
    this.#memory = new AlignedMemory(sizeBytes, sharing);
  }

  /** undefined: there is no room now. */
  take(bodyBytes: number): ReceivedBody | undefined {
    const piece = this.#memory.takeNow(recordBytes(bodyBytes));
    if (piece === undefined) return undefined;
    const bytes = piece.bytes.subarray(BLOCK_BYTES, BLOCK_BYTES + bodyBytes);
    const held = { piece, userCount: 1 };
    this.#held.set(bytes.byteOffset, held);
    return { bytes, release: () => this.#leave(bytes, held) };
  }

  /** The whole record of a body that was taken here and is not released. Whoever asks releases it, once. */
  recordOf(body: Uint8Array): AlignedPiece | undefined {
    const held = this.#held.get(body.byteOffset);
    if (held === undefined) return undefined;
    const { bytes } = held.piece;
    if (bytes.buffer !== body.buffer || recordBytes(body.length) !== bytes.length) return undefined;
    held.userCount++;
    return { bytes, release: () => this.#leave(body, held) };
  }

  #leave({ byteOffset }: Uint8Array, held: Held): void {
    if (--held.userCount > 0) return;
    this.#held.delete(byteOffset);
    held.piece.release();
  }
}

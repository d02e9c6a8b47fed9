// What has come of a body and is not yet in a chunk: the pieces as the source gave them. Small ones are copied together,
// because a client that trickles bytes would else cost many times what it has sent.

import { EMPTY_BYTES } from '../lib/bytes.ts';

/** Pieces below it are copied together. */
const SMALL_BYTES = 2048;
const STAGING_BYTES = 16 * 1024;

export class BodyPieces {
  #pieces: Uint8Array[] = [];
  #sizeBytes = 0;
  /** Memory for small pieces, filled from the front. */
  #staging: Uint8Array = EMPTY_BYTES;
  #stagedBytes = 0;
  /** Where in the staging memory the last piece begins, when it lies there and may grow. */
  #growsFromBytes: number | undefined;

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  add(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#sizeBytes += piece.length;
    // A first small piece may be the whole body: it is not copied either.
    if (piece.length >= SMALL_BYTES || this.#pieces.length === 0) {
      this.#pieces.push(piece);
      this.#growsFromBytes = undefined;
    } else this.#stage(piece);
  }

  #stage(piece: Uint8Array): void {
    if (this.#stagedBytes + piece.length > this.#staging.length) {
      this.#staging = Buffer.allocUnsafeSlow(STAGING_BYTES);
      this.#stagedBytes = 0;
      this.#growsFromBytes = undefined;
    }
    if (this.#growsFromBytes === undefined) this.#growsFromBytes = this.#stagedBytes;
    else this.#pieces.pop();
    this.#staging.set(piece, this.#stagedBytes);
    this.#stagedBytes += piece.length;
    this.#pieces.push(this.#staging.subarray(this.#growsFromBytes, this.#stagedBytes));
  }

  /** Removes the first `sizeBytes` bytes, all of which must be there. */
  take(sizeBytes: number): Uint8Array[] {
    let missingBytes = sizeBytes;
    let count = 0;
    for (const piece of this.#pieces) {
      if (missingBytes < piece.length) break;
      missingBytes -= piece.length;
      count++;
    }
    const taken = this.#pieces.splice(0, count);
    const rest = this.#pieces[0];
    if (missingBytes > 0 && rest !== undefined) {
      taken.push(rest.subarray(0, missingBytes));
      this.#pieces[0] = rest.subarray(missingBytes);
    }
    this.#growsFromBytes = undefined;
    this.#sizeBytes -= sizeBytes;
    return taken;
  }
}

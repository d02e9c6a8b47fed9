// Bytes that wait in the order of their coming, as pieces. Small pieces are copied together: kept one by one they would
// cost hundreds of times what they hold, because a client may send a body byte by byte.

/** Pieces below it are copied together. */
const SMALL_BYTES = 2048;
const STAGING_BYTES = 16 * 1024;

export class BufferQueue {
  readonly #pieces: Buffer[] = [];
  #sizeBytes = 0;
  /** Memory for small pieces, filled from the front. */
  #staging: Buffer | undefined;
  #stagedBytes = 0;
  /** Where in the staging memory the last piece begins, while it lies there and may grow. */
  #growsFromBytes: number | undefined;

  /** Bytes of all pieces that wait. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Takes a piece over; its memory is kept unless it is small and not the first: a first one may be the whole body. */
  add(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#sizeBytes += piece.length;
    if (piece.length >= SMALL_BYTES || this.#pieces.length === 0) {
      this.#pieces.push(piece);
      this.#growsFromBytes = undefined;
    } else this.#stage(piece);
  }

  /** The first piece, or undefined when none waits. */
  shift(): Buffer | undefined {
    const piece = this.#pieces.shift();
    if (this.#pieces.length === 0) this.#growsFromBytes = undefined;
    this.#sizeBytes -= piece?.length ?? 0;
    return piece;
  }

  /** All pieces; none is left. */
  takeAll(): Buffer[] {
    this.#sizeBytes = 0;
    this.#growsFromBytes = undefined;
    return this.#pieces.splice(0);
  }

  /** Removes the first `sizeBytes` bytes, all of which must be there. */
  take(sizeBytes: number): Buffer[] {
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

  #stage(piece: Buffer): void {
    if (this.#staging === undefined || this.#stagedBytes + piece.length > this.#staging.length) {
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
}

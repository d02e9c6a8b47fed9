// Bytes that wait in the order of their coming, as pieces. Small pieces are copied together: kept one by one they would
// cost hundreds of times what they hold, because a client may send a body byte by byte.

/** Pieces below it are copied together. */
const SMALL_BYTES = 2048;
const STAGING_BYTES = 16 * 1024;

export class BufferQueue {
  readonly #buffers: Buffer[] = [];
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
  add(buffer: Buffer): void {
    if (buffer.length === 0) return;
    this.#sizeBytes += buffer.length;
    if (buffer.length >= SMALL_BYTES || this.#buffers.length === 0) {
      this.#buffers.push(buffer);
      this.#growsFromBytes = undefined;
    } else this.#stage(buffer);
  }

  /** The first piece, or undefined when none waits. */
  shift(): Buffer | undefined {
    const buffer = this.#buffers.shift();
    if (this.#buffers.length === 0) this.#growsFromBytes = undefined;
    this.#sizeBytes -= buffer?.length ?? 0;
    return buffer;
  }

  /** All pieces; none is left. */
  takeAll(): Buffer[] {
    this.#sizeBytes = 0;
    this.#growsFromBytes = undefined;
    return this.#buffers.splice(0);
  }

  /** Removes the first `sizeBytes` bytes, all of which must be there. */
  take(sizeBytes: number): Buffer[] {
    let missingBytes = sizeBytes;
    let count = 0;
    for (const buffer of this.#buffers) {
      if (missingBytes < buffer.length) break;
      missingBytes -= buffer.length;
      count++;
    }
    const taken = this.#buffers.splice(0, count);
    const rest = this.#buffers[0];
    if (missingBytes > 0 && rest !== undefined) {
      taken.push(rest.subarray(0, missingBytes));
      this.#buffers[0] = rest.subarray(missingBytes);
    }
    this.#growsFromBytes = undefined;
    this.#sizeBytes -= sizeBytes;
    return taken;
  }

  #stage(buffer: Buffer): void {
    if (this.#staging === undefined || this.#stagedBytes + buffer.length > this.#staging.length) {
      this.#staging = Buffer.allocUnsafeSlow(STAGING_BYTES);
      this.#stagedBytes = 0;
      this.#growsFromBytes = undefined;
    }
    if (this.#growsFromBytes === undefined) this.#growsFromBytes = this.#stagedBytes;
    else this.#buffers.pop();
    this.#staging.set(buffer, this.#stagedBytes);
    this.#stagedBytes += buffer.length;
    this.#buffers.push(this.#staging.subarray(this.#growsFromBytes, this.#stagedBytes));
  }
}

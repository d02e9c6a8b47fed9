// Digests that wait in the order of their coming, tens of thousands of them: as texts in an array each would take 200 bytes, and
// to take the first one out of a long array moves all others.

const DIGEST_BYTES = 32;
const FIRST_BYTES = 8 * DIGEST_BYTES;

export class DigestQueue {
  #memory = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #from = 0;
  #to = 0;
  #movedBytes = 0;

  /** How many wait. */
  get length(): number {
    return (this.#to - this.#from) / DIGEST_BYTES;
  }

  /** Memory that it has. */
  get heldBytes(): number {
    return this.#memory.length;
  }

  /** Bytes that it has moved since it was made. */
  get movedBytes(): number {
    return this.#movedBytes;
  }

  /** 64 hexadecimal digits, in lower case. */
  push(hex: string): void {
    if (this.#to === this.#memory.length) this.#makeRoom();
    this.#to += this.#memory.write(hex, this.#to, DIGEST_BYTES, 'hex');
  }

  /** The first one as it was pushed; undefined when none waits. */
  shift(): string | undefined {
    if (this.#from === this.#to) return undefined;
    const from = this.#from;
    this.#from += DIGEST_BYTES;
    const hex = this.#memory.toString('hex', from, this.#from);
    if (this.#from === this.#to) this.#from = this.#to = 0;
    if (this.#memory.length > FIRST_BYTES && this.#to - this.#from <= this.#memory.length / 4)
      this.#moveInto(Buffer.allocUnsafeSlow(this.#memory.length / 2));
    return hex;
  }

  /** Half of the memory, or more, is free afterwards: each digest is moved a few times at most. */
  #makeRoom(): void {
    const isHalfFree = this.#to - this.#from <= this.#memory.length / 2;
    this.#moveInto(isHalfFree ? this.#memory : Buffer.allocUnsafeSlow(2 * this.#memory.length));
  }

  #moveInto(memory: Buffer<ArrayBuffer>): void {
    const waiting = this.#memory.subarray(this.#from, this.#to);
    memory.set(waiting);
    this.#movedBytes += waiting.length;
    this.#memory = memory;
    this.#from = 0;
    this.#to = waiting.length;
  }
}

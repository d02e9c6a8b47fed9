// The buffers of a stream one at a time, with waits that can be ended: when memory is taken back or the client is gone.

export class BufferSource {
  readonly #iterator: AsyncIterator<Buffer>;
  #failure: Error | undefined;
  /** Ends the wait for the next buffer. */
  #interrupt: ((error: Error) => void) | undefined;

  constructor(stream: AsyncIterable<Buffer>) {
    this.#iterator = stream[Symbol.asyncIterator]();
  }

  /** Rejects as the stream does, and with the error of {@link fail}. */
  next(): Promise<IteratorResult<Buffer>> {
    // A promise for each buffer: one that lives as long as the body would retain something of each.
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure);
      this.#interrupt = reject;
      this.#iterator.next().then(resolve, reject);
    });
  }

  /** Ends the present wait and all later ones; the first error counts. */
  fail(error: Error): void {
    this.#failure ??= error;
    this.#interrupt?.(this.#failure);
  }

  /** Not awaited: a source that waits for its client may take its time to end. */
  close(): void {
    this.#iterator.return?.().catch(() => {});
  }
}

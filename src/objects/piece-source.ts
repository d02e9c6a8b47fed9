// The pieces of a body, asked for one at a time, for who has to stop waiting when memory is taken back or the client is gone.

export class PieceSource {
  readonly #iterator: AsyncIterator<Buffer>;
  #failure: Error | undefined;
  /** Ends the wait for the next piece. */
  #interrupt: ((error: Error) => void) | undefined;

  constructor(stream: AsyncIterable<Buffer>) {
    this.#iterator = stream[Symbol.asyncIterator]();
  }

  /** Rejects as the stream does, and as {@link fail} says. */
  next(): Promise<IteratorResult<Buffer>> {
    // A promise of its own for each piece: one that lives as long as the body would keep something of each of them.
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure);
      this.#interrupt = reject;
      this.#iterator.next().then(resolve, reject);
    });
  }

  /** Whoever waits for the next piece, now or later, waits no more; the first error counts. */
  fail(error: Error): void {
    this.#failure ??= error;
    this.#interrupt?.(this.#failure);
  }

  /** Not awaited: a source that waits for its client may take its time to end. */
  close(): void {
    this.#iterator.return?.().catch(() => {});
  }
}

// A stream of buffers that come in batches: who takes several at once asks for the rest of a batch when its first buffer has come.
import { Readable } from 'node:stream';

export interface BatchReadable extends Readable {
  /** In a handler of 'data': the buffers that are there behind this one. They do not come again. */
  takeRest?(): readonly Buffer[];
}

/**
 * The buffers of `first` and then those of `rest`. A batch is asked for when the one before it has been taken and the stream is not
 * paused: who pauses it in the handler of 'data' is asked for nothing ahead.
 */
export class BatchStream extends Readable implements BatchReadable {
  #ready: Buffer[];
  readonly #rest: AsyncGenerator<readonly Buffer[]>;

  constructor(first: readonly Buffer[], rest: AsyncGenerator<readonly Buffer[]>) {
    super({ highWaterMark: 0 });
    this.#ready = [...first];
    this.#rest = rest;
  }

  takeRest(): readonly Buffer[] {
    // What has been pushed goes first.
    return this.readableLength > 0 ? [] : this.#ready.splice(0);
  }

  override _read(): void {
    const ready = this.#ready.shift();
    if (ready !== undefined) {
      this.push(ready);
      return;
    }
    this.#rest.next().then(
      ({ done, value }) => {
        this.#ready = done === true ? [] : [...value];
        this.push(this.#ready.shift() ?? null);
      },
      (error) => this.destroy(error),
    );
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    // Not awaited: what is under way may take its time, and releases its memory when it ends.
    this.#rest.return(undefined).catch(() => {});
    this.#ready = [];
    callback(error);
  }
}

// A folder of extent files in memory that can lose power: of each write under way then, every block may have been written or not.
import type { ExtentFile, ExtentIo, ListedExtent } from '../../../src/platform/extents/extent-io.ts';
import { BLOCK_BYTES } from '../../../src/platform/extents/extent-record.ts';

interface Writing {
  id: number;
  bytes: Buffer;
  offset: number;
  done: PromiseWithResolvers<void>;
}

export class SimulatedExtents implements ExtentIo {
  readonly isDirect = true;
  readonly #files = new Map<number, Buffer>();
  #writing: Writing[] = [];
  /** Numbers from 0 to below `count`. */
  readonly #pick: (count: number) => number;

  constructor(pick: (count: number) => number) {
    this.#pick = pick;
  }

  async list(): Promise<ListedExtent[]> {
    const listed = [...this.#files].map(([id, { length }]) => ({ id, sizeBytes: length }));
    return listed.sort((a, b) => a.id - b.id);
  }

  file(id: number): ExtentFile {
    return {
      write: (buffers, offset) => {
        const done = Promise.withResolvers<void>();
        // What is written is what the buffers hold when the write begins: a change of theirs would be a fault.
        this.#writing.push({ id, bytes: Buffer.concat(buffers), offset, done });
        return done.promise;
      },
      read: async (into, offset) => {
        let rest = (this.#files.get(id) ?? Buffer.alloc(0)).subarray(offset);
        let readBytes = 0;
        for (const buffer of into) {
          const count = rest.copy(buffer);
          rest = rest.subarray(count);
          readBytes += count;
        }
        return readBytes;
      },
      seal: async () => {},
      close: async () => {},
    };
  }

  async remove(id: number): Promise<void> {
    this.#files.delete(id);
  }

  /** Ends one of the writes under way, whichever. False: there is none. */
  step(): boolean {
    const [write] = this.#writing.splice(this.#pick(Math.max(1, this.#writing.length)), 1);
    if (write === undefined) return false;
    this.#put(write.id, write.bytes, write.offset);
    write.done.resolve();
    return true;
  }

  /** The first write under way fails, and nothing of it is written. */
  failWrite(error: Error): void {
    this.#writing.shift()?.done.reject(error);
  }

  /** Whoever waits for a write waits for ever. */
  losePower(): void {
    for (const { id, bytes, offset } of this.#writing) {
      for (let at = 0; at < bytes.length; at += BLOCK_BYTES)
        if (this.#pick(2) === 0) this.#put(id, bytes.subarray(at, at + BLOCK_BYTES), offset + at);
    }
    this.#writing = [];
  }

  flipBit(id: number, at: number): void {
    const file = this.#files.get(id);
    if (file !== undefined) file[at] = (file[at] ?? 0) ^ 1;
  }

  /** Fewer where the file ends before. */
  bytesAt(id: number, { offset, sizeBytes }: { offset: number; sizeBytes: number }): Buffer {
    return (this.#files.get(id) ?? Buffer.alloc(0)).subarray(offset, offset + sizeBytes);
  }

  /** Nothing is there any more. */
  wipe(): void {
    this.#files.clear();
    this.#writing = [];
  }

  sizeOf(id: number): number {
    return this.#files.get(id)?.length ?? 0;
  }

  #put(id: number, bytes: Buffer, offset: number): void {
    const before = this.#files.get(id) ?? Buffer.alloc(0);
    const file = Buffer.alloc(Math.max(before.length, offset + bytes.length));
    before.copy(file);
    bytes.copy(file, offset);
    this.#files.set(id, file);
  }
}

/** Ends the writes of `io` until the work has ended. `turn` is awaited before each; absent: a turn of the event loop. */
export async function endWritesDuring<T>(
  io: SimulatedExtents,
  work: Promise<T>,
  turn: () => Promise<void> = nextTurn,
): Promise<T> {
  let isOver = false;
  const ended = work.finally(() => {
    isOver = true;
  });
  ended.catch(() => {});
  while (!isOver) {
    await turn();
    if (!io.step()) await nextTurn();
  }
  return ended;
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

// The extent files of a simulated disk: each write takes time, and of one that is under way when its process ends or the power
// goes, any of its blocks may be there.
import type { ExtentIo } from '../../src/platform/extents/extent-io.ts';
import { BLOCK_BYTES, type RecordPlace, readHead } from '../../src/platform/extents/extent-record.ts';
import { SimulatedExtents } from '../support/disks/simulated-extents.ts';
import type { Chance } from './chance.ts';
import type { SimulatedProcess } from './clock.ts';
import type { DiskPace } from './disk.ts';

export class DiskExtents {
  /** How often each happened, ever. */
  readonly counts = { written: 0, usedAgain: 0, removed: 0 };
  readonly #chance: Chance;
  readonly #pace: () => Readonly<DiskPace>;
  readonly #files: SimulatedExtents;
  /** Of the process that has them open. */
  #session: object | undefined;
  #nextError: Error | undefined;

  constructor(chance: Chance, pace: () => Readonly<DiskPace>) {
    this.#chance = chance;
    this.#pace = pace;
    this.#files = new SimulatedExtents((count) => chance.int(0, count - 1));
  }

  /** Ends what an earlier process had open. */
  open(process: SimulatedProcess): ExtentIo {
    this.end();
    const session = {};
    this.#session = session;
    this.#nextError = undefined;
    const files = this.#files;
    return {
      isDirect: true,
      list: () => files.list(),
      file: (id) => {
        const file = files.file(id);
        return {
          ...file,
          write: (buffers, offset) => {
            if (this.#session !== session) return new Promise(() => {});
            this.counts.written++;
            if (offset === 0 && files.sizeOf(id) > 0) this.counts.usedAgain++;
            const { syncMinMs, syncMaxMs } = this.#pace();
            const written = file.write(buffers, offset);
            process.schedule(this.#chance.between(syncMinMs, syncMaxMs), 'writes into an extent', () => {
              if (this.#session === session) this.#step();
            });
            return written;
          },
          read: async (into, offset) => {
            const { slowReadShare, slowReadMaxMs } = this.#pace();
            if (this.#chance.happens(slowReadShare))
              await process.later(this.#chance.between(0, slowReadMaxMs), 'reads an extent', () => 0);
            return file.read(into, offset);
          },
        };
      },
      remove: async (id) => {
        if (this.#session !== session) return;
        this.counts.removed++;
        await files.remove(id);
      },
    };
  }

  #step(): void {
    if (this.#nextError === undefined) this.#files.step();
    else this.#files.failWrite(this.#nextError);
  }

  end(): void {
    this.#session = undefined;
    this.#files.losePower();
  }

  wipe(): void {
    this.end();
    this.#files.wipe();
  }

  failNextWrite(error: Error): void {
    this.#nextError = error;
  }

  /** Whether the head in this place is of the record that a row means. */
  has(key: Uint8Array, { fileId, offset, sequence }: RecordPlace): boolean {
    const head = readHead(this.#files.bytesAt(fileId, { offset, sizeBytes: BLOCK_BYTES }));
    return head?.sequence === sequence && Buffer.from(head.key).equals(key);
  }

  /** One bit of the record, in its head or in its body. */
  flipBit({ fileId, offset, bodyBytes }: RecordPlace, part: 'head' | 'body'): void {
    const at = part === 'head' ? this.#chance.int(0, 31) : BLOCK_BYTES + this.#chance.int(0, bodyBytes - 1);
    this.#files.flipBit(fileId, offset + at);
  }
}

// Bounded reads of chunk bytes. A drive may leave a read unanswered for any time: after the time limit the chunk's state is
// unknown, and nobody waits any longer. Such a read still occupies a thread, and threads are shared by all disks, so it
// keeps its place among the reads of its drive, the same chunk is not read again meanwhile, and a drive with several
// unanswered reads gets no more of them. A drive that stays so counts as failed in the end.

import { CANCELLED } from '../../base/async/cancelled.ts';
import { toHex } from '../../base/bytes/bytes.ts';
import { Corruption } from '../../base/corruption.ts';
import { DriveHangs } from '../../base/drive-hangs.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { KvPart, KvPort } from '../../ports/kv.ts';
import { ChunkUnread } from '../../types/chunk-refusals.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';

/** Counts only time in which this process ran, so that a stopped process does not blame its drive. */
const SLICES = 4;
const HANG_SLICES = 20;
const LATE = Symbol('late');

export interface ChunkReadsDeps {
  kv: Pick<KvPort, 'getMany' | 'readPart'>;
  clock: Pick<ClockPort, 'sleep'>;
  /** Called once, when the drive has answered too few reads for LIMITS.chunkReadsHangMs. */
  onHangs?: (error: DriveHangs) => void;
}

export class ChunkReads {
  readonly #kv: ChunkReadsDeps['kv'];
  readonly #clock: ChunkReadsDeps['clock'];
  readonly #onHangs: ChunkReadsDeps['onHangs'];
  readonly #waiting: (() => void)[] = [];
  #underWay = 0;
  /** Reads that the drive has not answered. `name` is undefined where the chunk has been rewritten. */
  readonly #unanswered = new Set<{ name: string | undefined }>();

  #isWatched = false;

  constructor({ kv, clock, onHangs }: ChunkReadsDeps) {
    this.#kv = kv;
    this.#clock = clock;
    this.#onHangs = onHangs;
  }

  /**
   * Like KvPort.getMany, chunk by chunk. Rejects with ChunkUnread where the bytes could not be read and are not known to be
   * lost.
   */
  async getMany(column: string, keys: readonly Uint8Array[]): Promise<(Uint8Array | undefined)[]> {
    const [key] = keys;
    if (column !== 'data' || key === undefined) return this.#kv.getMany(column, keys);
    const name = toHex(key);
    await this.#enter(name);
    return this.#read(name, () => this.#kv.getMany('data', keys));
  }

  /** Like KvPort.readPart, likewise. */
  async readPart(key: Uint8Array, part: KvPart): Promise<Uint8Array | undefined> {
    const { readPart } = this.#kv;
    if (readPart === undefined) return undefined;
    const name = toHex(key);
    await this.#enter(name);
    return this.#read(name, () => readPart.call(this.#kv, key, part));
  }

  /** Later reads of this key read other bytes: it was rewritten. */
  wasReplaced(key: Uint8Array): void {
    const name = toHex(key);
    for (const read of this.#unanswered) if (read.name === name) read.name = undefined;
  }

  #refuse(name: string): void {
    for (const read of this.#unanswered)
      if (read.name === name) throw new ChunkUnread(new Error('an earlier read of it has not been answered'));
    if (!this.#isRefusing()) return;
    const cause = new Error(`the drive has left ${this.#unanswered.size} reads unanswered`);
    throw new AppError('ServiceUnavailable', { cause });
  }

  async #read<T>(name: string, read: () => Promise<T>): Promise<T> {
    const reading = read();
    const left = () => this.#leave();
    // Not released before the drive answers, however late: until then the read occupies its thread.
    reading.then(left, left);
    const over = new AbortController();
    try {
      const outcome = await Promise.race([reading, this.#late(over.signal)]);
      if (outcome !== LATE) return outcome;
    } catch (error) {
      throw error instanceof Corruption || error instanceof AppError ? error : new ChunkUnread(error);
    } finally {
      over.abort(CANCELLED);
    }
    const unanswered = { name };
    this.#unanswered.add(unanswered);
    const ended = () => void this.#unanswered.delete(unanswered);
    reading.then(ended, ended);
    if (this.#isRefusing()) {
      // No place will come free for the waiting reads; they are refused.
      for (const wake of this.#waiting.splice(0)) wake();
      void this.#watch();
    }
    throw new ChunkUnread(new Error(`the drive has not answered for ${LIMITS.chunkReadMaxMs / 1000} s`));
  }

  #isRefusing(): boolean {
    return this.#unanswered.size >= LIMITS.chunkReadsUnansweredMax;
  }

  async #watch(): Promise<void> {
    if (this.#isWatched) return;
    this.#isWatched = true;
    for (let slice = 0; slice < HANG_SLICES; slice++) {
      await this.#clock.sleep(LIMITS.chunkReadsHangMs / HANG_SLICES);
      if (this.#isRefusing()) continue;
      this.#isWatched = false;
      return;
    }
    const text = `the drive has left ${this.#unanswered.size} reads unanswered`;
    this.#onHangs?.(new DriveHangs(`${text} for ${LIMITS.chunkReadsHangMs / 1000} s`));
  }

  async #late(signal: AbortSignal): Promise<typeof LATE> {
    for (let slice = 0; slice < SLICES && !signal.aborted; slice++)
      await this.#clock.sleep(LIMITS.chunkReadMaxMs / SLICES, signal);
    return LATE;
  }

  /** No more reads than threads: a read that waits for a thread is not waiting for the drive. */
  async #enter(name: string): Promise<void> {
    this.#refuse(name);
    for (let hasWaited = false; this.#underWay >= LIMITS.chunkReadsAtOnceMax; hasWaited = true) {
      // A read whose place was taken by a newcomer is the next in turn again.
      await new Promise<void>((resolve) =>
        hasWaited ? this.#waiting.unshift(resolve) : this.#waiting.push(resolve),
      );
      // The drive was found to hang while the read waited.
      this.#refuseOrPass(name);
    }
    this.#underWay++;
  }

  /** A turn that was not taken goes to the next read. */
  #refuseOrPass(name: string): void {
    try {
      this.#refuse(name);
    } catch (error) {
      if (this.#underWay < LIMITS.chunkReadsAtOnceMax) this.#waiting.shift()?.();
      throw error;
    }
  }

  #leave(): void {
    this.#underWay--;
    this.#waiting.shift()?.();
  }
}

// So many bytes a second for all who ask, whatever their number.
import { setTimeout as sleep } from 'node:timers/promises';

const MiB = 1024 * 1024;
/** What was missed longer ago than this is not made up for. */
const BEHIND_MS_MAX = 10_000;

export class Pacer {
  readonly #msPerByte: number;
  #dueMs = performance.now();

  /** undefined: as fast as it goes. */
  constructor(mibPerSecond: number | undefined) {
    this.#msPerByte = mibPerSecond === undefined ? 0 : 1000 / (mibPerSecond * MiB);
  }

  /** Resolves when the turn of these bytes has come. */
  async turn(bytes: number): Promise<void> {
    if (this.#msPerByte === 0) return;
    const nowMs = performance.now();
    const dueMs = Math.max(this.#dueMs, nowMs - BEHIND_MS_MAX);
    this.#dueMs = dueMs + bytes * this.#msPerByte;
    if (dueMs > nowMs) await sleep(dueMs - nowMs);
  }
}

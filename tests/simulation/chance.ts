// All chance of a simulation comes from one seed (sfc32). Parts of the world draw from forks of their own, so that a draw
// more in one of them does not change the others.
import type { RandomPort } from '../../src/ports/clock.ts';

export class Chance implements RandomPort {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    this.#a = seed | 0;
    this.#b = Math.imul(seed, 0x9e3779b1) ^ 0x243f6a88;
    this.#c = Math.floor(seed / 2 ** 32) ^ 0x13198a2e;
    for (let round = 0; round < 12; round++) this.#next();
  }

  /** An independent one, the same for the same label. Drawing from it does not change this one. */
  fork(label: string): Chance {
    let hash = 0x811c9dc5 ^ this.#a ^ Math.imul(this.#b, 31) ^ this.#c;
    for (let i = 0; i < label.length; i++) hash = Math.imul(hash ^ label.charCodeAt(i), 0x01000193);
    return new Chance(hash >>> 0);
  }

  /** At least 0, below 1. */
  float(): number {
    return this.#next() / 2 ** 32;
  }

  between(min: number, max: number): number {
    return min + (max - min) * this.float();
  }

  /** A whole number, both bounds included. */
  int(min: number, max: number): number {
    return min + Math.floor(this.float() * (max - min + 1));
  }

  happens(share: number): boolean {
    return this.float() < share;
  }

  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new Error('nothing to pick from');
    return list[this.int(0, list.length - 1)] as T;
  }

  shuffled<T>(list: readonly T[]): T[] {
    const shuffled = [...list];
    for (let i = shuffled.length - 1; i > 0; i--) {
      const other = this.int(0, i);
      [shuffled[i], shuffled[other]] = [shuffled[other] as T, shuffled[i] as T];
    }
    return shuffled;
  }

  bytes(sizeBytes: number): Uint8Array {
    const bytes = new Uint8Array(sizeBytes);
    for (let i = 0; i < sizeBytes; i++) bytes[i] = this.#next() >>> 24;
    return bytes;
  }

  #next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    return sum >>> 0;
  }
}

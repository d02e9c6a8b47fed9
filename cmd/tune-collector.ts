// Tells V8 how to count memory that lies outside of its heap, which is where nearly all of ours lies: bodies, sealed
// chunks, rows. It must be told before worker threads start. Sizes of heaps are left as they are.
import { setFlagsFromString } from 'node:v8';

/**
 * By default V8 begins to collect when heap and outside memory together have grown by as much as the heap alone may: with
 * a heap of 20 MiB every 8 MiB of bodies cost a full marking, which was half of the processor time of large GETs
 * (bench/RESULTS.md). With this the limit grows with both.
 */
export function tuneCollector(): void {
  setFlagsFromString('--external-memory-accounted-in-global-limit');
}

// Tells V8 when to collect: most of our memory lies outside of its heap (bodies, sealed chunks, rows), and by default it
// lets both together grow by no more than a small heap alone may. Said before worker threads start; holds for them, too.
import { setFlagsFromString } from 'node:v8';

/**
 * With a heap of 20 MiB every 8 MiB of bodies would cost a full marking, which was half of the processor time of large
 * GETs. Now heap and outside memory may grow by twice the heap in between. The bound does not follow what lies outside
 * (`--external-memory-accounted-in-global-limit` would): a crowd of slow clients must not make garbage dearer
 * (bench/RESULTS.md has the figures).
 */
const HEAP_GROWING_PERCENT = 200;

export function tuneCollector(): void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWING_PERCENT}`);
}

import { expect, test } from 'vitest';
import { LIMITS } from './limits.ts';
import { makeBlobId } from './names.ts';
import { mayBeOrphan } from './sweep-age.ts';

const NOW = 3 * LIMITS.sweepAfterMs;
const OLD = NOW - LIMITS.sweepAfterMs - 1;
const HOUR = 3_600_000;

test.each([
  ['old by both clocks', OLD, OLD, true],
  ['made by a clock that is behind, and just received', OLD, NOW - HOUR, false],
  ['received by a clock that is behind, and just made', NOW - HOUR, OLD, false],
  ['made by a clock that is ahead', NOW + HOUR, OLD, false],
  ['received by a clock that is ahead', OLD, NOW + HOUR, false],
  ['as old as no request may be, and not older', OLD + 1, OLD + 1, false],
])('a chunk is asked after when it is old by both clocks: %s', (_what, madeAtMs, receivedAtMs, may) => {
  const blobId = makeBlobId({ timeMs: madeAtMs, homeShard: 1, random: new Uint8Array(10) });
  expect(mayBeOrphan({ id: { blobId }, receivedAtMs }, NOW)).toBe(may);
});

// The room left for writers: what was measured, less the reserve, less what was admitted since.
import { beforeEach, expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { sealedBytes } from '../../base/crypto/seal.ts';
import { LIMITS } from '../../types/limits.ts';
import { chunkRoomLimitsOf, createDiskReserve, isFull, roomLimitsOf } from './disk-reserve.ts';

const GiB = 1024 ** 3;

let clock: ReturnType<typeof createManualClock>;
const disk = { freeBytes: 0, totalBytes: 0 };
let measureCount: number;
async function readSpace() {
  measureCount++;
  return { ...disk };
}
beforeEach(() => {
  clock = createManualClock(1e12);
  measureCount = 0;
  Object.assign(disk, { freeBytes: 2000, totalBytes: 1e6 });
});

test('a write reserves its size twice, and leaves the reserve alone', async () => {
  const reserve = createDiskReserve({ readSpace, clock, reserveBytes: 1000 });
  expect(await reserve.hold(501)).toBeUndefined();
  expect(await reserve.hold(500)).toBeDefined();
  expect(await reserve.hold(1)).toBeUndefined();
  // 2000 are free, 1000 of them held: what is for a full disk leaves half of the reserve.
  expect(await reserve.hold(251, { isForFullDisk: true })).toBeUndefined();
  expect(await reserve.hold(250, { isForFullDisk: true })).toBeDefined();
});

test('an admitted write counts until it shows in the measured free space', async () => {
  const reserve = createDiskReserve({ readSpace, clock, reserveBytes: 1000 });
  const first = await reserve.hold(300);
  const second = await reserve.hold(200);
  first?.release();
  expect(await reserve.hold(1), 'ended, and not measured yet').toBeUndefined();
  disk.freeBytes = 1700;
  clock.advance(2000);
  expect(await reserve.hold(200), 'the first is on the disk, the second under way').toBeUndefined();
  expect(await reserve.hold(150)).toBeDefined();
  second?.release();
});

test('measures once a second, and before it refuses', async () => {
  const reserve = createDiskReserve({ readSpace, clock, reserveBytes: 1000 });
  for (let count = 0; count < 10; count++) (await reserve.hold(1))?.release();
  expect(measureCount).toBe(1);
  disk.freeBytes = 1e6;
  expect(await reserve.hold(1000)).toBeUndefined();
  clock.advance(200);
  expect(await reserve.hold(1000)).toBeDefined();
  expect(measureCount).toBe(2);
});

test.each([
  ['of a large disk, what upkeep needs and no more', 1000 * GiB, LIMITS.diskReserveBytesMax],
  ['of a usual one, a share', 200 * GiB, 200 * GiB * LIMITS.diskReserveShare],
  ['of a smaller one, what upkeep needs', 20 * GiB, LIMITS.diskReserveBytesMin],
  ['of a tiny one, not all of it, in whole bytes', GiB, Math.round(GiB * LIMITS.diskReserveShareMax)],
])('the reserve %s', async (_name, totalBytes, reserveBytes) => {
  Object.assign(disk, { totalBytes, freeBytes: reserveBytes + 100 });
  const reserve = createDiskReserve({ readSpace, clock });
  expect(await reserve.hold(51)).toBeUndefined();
  expect(await reserve.hold(50)).toBeDefined();
  // The same bounds are used for alarms.
  expect(roomLimitsOf({ totalBytes })).toEqual({
    fullBelowBytes: reserveBytes,
    scarceBelowBytes: 2 * reserveBytes,
  });
});

test('a disk is full as soon as it refuses a whole chunk, above its reserve', async () => {
  const largestBytes = sealedBytes({ sizeBytes: LIMITS.chunkBytesMax, blockBytes: LIMITS.sealBlockBytes });
  const totalBytes = 1000 * GiB;
  const { fullBelowBytes } = chunkRoomLimitsOf({ totalBytes });
  for (const [freeBytes, takes] of [
    [fullBelowBytes - 1, false],
    [fullBelowBytes, true],
  ] as const) {
    Object.assign(disk, { totalBytes, freeBytes });
    const reserve = createDiskReserve({ readSpace, clock });
    expect((await reserve.hold(largestBytes)) !== undefined).toBe(takes);
    expect(isFull({ diskFreeBytes: freeBytes, diskTotalBytes: totalBytes })).toBe(!takes);
  }
  expect(fullBelowBytes).toBeGreaterThan(roomLimitsOf({ totalBytes }).fullBelowBytes);
});

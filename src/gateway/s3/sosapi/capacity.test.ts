// The room of the store as programs are told it: by disk, by copy, and read once for many.
import { describe, expect, test } from 'vitest';
import { createManualClock } from '../../../../tests/support/run/simulated.ts';
import { chunkRoomLimitsOf } from '../../../chunks/disk/disk-reserve.ts';
import { LIMITS } from '../../../types/limits.ts';
import { cacheCapacity, capacityOfDisks } from './capacity.ts';

const TiB = 1024 ** 4;
const disk = (diskTotalBytes: number, diskFreeBytes: number) => ({ diskTotalBytes, diskFreeBytes });
const { fullBelowBytes } = chunkRoomLimitsOf({ totalBytes: TiB });

describe('the capacity of disks', () => {
  test('of one is its room, and what is free beyond its reserve', () => {
    expect(capacityOfDisks([disk(TiB, TiB / 2)], { copies: 1 })).toEqual({
      totalBytes: TiB,
      availableBytes: TiB / 2 - fullBelowBytes,
    });
  });

  test('of several keeps the reserve of each: the room of one does not make up for another that is full', () => {
    const disks = [disk(TiB, TiB / 2), disk(TiB, fullBelowBytes / 2)];
    expect(capacityOfDisks(disks, { copies: 1 }).availableBytes).toBe(TiB / 2 - fullBelowBytes);
  });

  test('is counted once for all copies', () => {
    const disks = [disk(TiB, TiB / 2), disk(TiB, TiB / 2), disk(TiB, TiB / 2)];
    expect(capacityOfDisks(disks, { copies: 3 })).toEqual(
      capacityOfDisks([disk(TiB, TiB / 2)], { copies: 1 }),
    );
  });
});

test('one reading serves all who ask within some seconds, with the time at which it was made', async () => {
  const clock = createManualClock(1e12);
  let readCount = 0;
  const read = cacheCapacity(async () => ({ totalBytes: 10, availableBytes: 10 - ++readCount }), clock);
  const first = await Promise.all([read(), read()]);
  expect(first).toEqual([first[0], first[0]]);
  expect(first[0]).toEqual({ totalBytes: 10, availableBytes: 9, measuredAtMs: 1e12 });
  clock.advance(LIMITS.capacityKeptMs - 1);
  expect(await read()).toBe(first[0]);
  clock.advance(1);
  expect(await read()).toEqual({
    totalBytes: 10,
    availableBytes: 8,
    measuredAtMs: 1e12 + LIMITS.capacityKeptMs,
  });
});

// Writes of chunks while a node or a disk accepts connections and answers nothing: write-copies.ts, hanging-disks.ts.
import { describe, expect, test } from 'vitest';
import { placedDisks } from '../../tests/support/disks/placed-disks.ts';
import {
  chunkId,
  openReplicatedWorld,
  type ReplicatedWorld,
  settleAll,
  watch,
} from '../../tests/support/disks/replicated-world.ts';
import { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';

const PATIENCE_MS = LIMITS.lastCopyPatienceMs;
const chunk = () => new Uint8Array(1000).fill(7);

describe('where the hanging node is needed', () => {
  const { copySilentMaxMs, copyLateMs, diskSuspectMs } = LIMITS;
  const openWorld = (disksPerNode: number) => {
    const disks = placedDisks({ zones: 2, disksPerNode });
    const world = openReplicatedWorld({ disks });
    const hanging = disks.slice(disksPerNode).map(world.fakes.of);
    for (const disk of hanging) disk.mood = 'silent';
    const putLater = (number: number) => watch(world.chunks.put(chunkId(number), chunk()));
    const askedCount = () => hanging.reduce((count, { asked }) => count + asked.length, 0);
    return { ...world, hanging, putLater, askedCount };
  };
  const waitFor = async ({ stateAfter }: ReplicatedWorld, ms: number) => {
    for (let passedMs = 0; passedMs < ms; passedMs += 500) await stateAfter(500);
  };

  test.each([1, 6])(
    'a write waits for it for a bounded time, and the next ones do not: %i disks',
    async (n) => {
      const world = openWorld(n);
      const first = world.putLater(1);
      await waitFor(world, copyLateMs);
      const second = world.putLater(2);
      await waitFor(world, copySilentMaxMs - copyLateMs);
      expect(first).toMatchObject({ state: 'failed', error: { code: 'ServiceUnavailable' } });
      await waitFor(world, copyLateMs);
      expect(second).toMatchObject({ state: 'failed', error: { code: 'ServiceUnavailable' } });
      const asked = world.askedCount();
      const next = [3, 4, 5, 6, 7, 8].map(world.putLater);
      await world.stateAfter(0);
      for (const put of next) {
        expect(put).toMatchObject({ state: 'failed', error: { code: 'ServiceUnavailable' } });
        expect(put.error).toMatchObject({ cause: { message: expect.stringContaining(`${n} disks hang`) } });
      }
      expect(world.askedCount()).toBe(asked);
    },
  );

  test('one write tries the disk after its rest, with the same patience, and its outcome counts', async () => {
    const world = openWorld(1);
    const [hung] = world.hanging;
    world.putLater(1);
    await waitFor(world, copySilentMaxMs + diskSuspectMs);
    for (const isBack of [false, true]) {
      const puts = [2, 3, 4].map((number) => world.putLater(number));
      await waitFor(world, copySilentMaxMs - 500);
      expect(puts.map(({ state }) => state)).toEqual(['pending', 'failed', 'failed']);
      if (isBack) hung?.answerAgain();
      await waitFor(world, 500);
      expect(puts[0]?.state).toBe(isBack ? 'done' : 'failed');
      if (!isBack) await waitFor(world, diskSuspectMs);
    }
    const after = [5, 6, 7].map(world.putLater);
    await world.stateAfter(0);
    expect(after.map(({ state }) => state)).toEqual(['done', 'done', 'done']);
  });

  test('a disk that answers other writes is slow, and is waited for', async () => {
    const world = openWorld(1);
    const [slow] = world.hanging;
    const first = world.putLater(1);
    await world.stateAfter(0);
    if (slow !== undefined) slow.mood = 'well';
    for (const number of [2, 3, 4, 5]) {
      await waitFor(world, copyLateMs);
      await world.chunks.put(chunkId(number), chunk());
    }
    expect(first.state).toBe('pending');
    slow?.answerAgain();
    await world.stateAfter(0);
    expect(first.state).toBe('done');
  });

  test('only the hanging disk of a node is left alone', async () => {
    const world = openWorld(6);
    for (const disk of world.hanging.slice(1)) disk.mood = 'well';
    const puts = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(world.putLater);
    await waitFor(world, copySilentMaxMs + copyLateMs);
    expect(puts.map(({ state }) => state)).toEqual(puts.map(() => 'done'));
    const after = [11, 12, 13].map(world.putLater);
    await waitFor(world, PATIENCE_MS);
    expect(after.map(({ state }) => state)).toEqual(['done', 'done', 'done']);
  });

  test('another disk takes its copies: the first writes wait until it is late, later ones not at all', async () => {
    const disks = placedDisks({ zones: 3 });
    const world = openReplicatedWorld({ disks, copies: 2 });
    const [, hung] = disks.map(world.fakes.of);
    if (hung !== undefined) hung.mood = 'silent';
    const putAll = (numbers: number[]) =>
      numbers.map((one) => watch(world.chunks.put(chunkId(one), chunk())));
    const puts = putAll([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    await waitFor(world, copyLateMs + 500);
    expect(puts.map(({ state }) => state)).toEqual(puts.map(() => 'done'));
    const after = putAll([11, 12, 13, 14, 15, 16]);
    await world.stateAfter(PATIENCE_MS);
    expect(after.map(({ state }) => state)).toEqual(after.map(() => 'done'));
  });

  test('the hang is found in time even if timers fire a little early', async () => {
    const world = openWorld(1);
    const { sleep } = world.clock;
    world.clock.sleep = (ms, signal) => sleep(ms - 1, signal);
    const put = world.putLater(1);
    for (let passedMs = 0; passedMs < copySilentMaxMs; passedMs++) {
      if (passedMs === copySilentMaxMs - LIMITS.copyLookMs) expect(put.state).toBe('pending');
      world.clock.advance(1);
      await settleAll();
    }
    expect(put.state).toBe('failed');
  });
});

describe('a healthy disk is not taken for a hanging one', () => {
  const { copySilentMaxMs, copyLateMs, diskSuspectMs } = LIMITS;
  /** Two nodes with one disk each: both are needed. */
  const openPair = () => {
    const world = openReplicatedWorld({ disks: placedDisks({ zones: 2 }), copies: 2 });
    const [, slow = world.fakes.of({ id: '' })] = world.owners;
    return { ...world, slow, put: (number: number) => watch(world.chunks.put(chunkId(number), chunk())) };
  };

  test.each([7000, 9000, 60_000])('when this process did not run for %d ms', async (stoppedMs) => {
    const world = openReplicatedWorld({ disks: placedDisks({ zones: 3 }) });
    for (const disk of world.disks) disk.mood = 'silent';
    const put = watch(world.chunks.put(world.id, chunk()));
    await world.stateAfterStop(stoppedMs);
    expect(put.state).toBe('pending');
    // The answers in the sockets are read.
    for (const disk of world.disks) disk.answerAgain();
    await world.stateAfter(0);
    expect(put.state).toBe('done');
    const next = watch(world.chunks.put(chunkId(2), chunk()));
    await world.stateAfter(0);
    expect(next.state).toBe('done');
    expect(world.disks.map(({ abortedCount }) => abortedCount)).toEqual([0, 0, 0]);
  });

  test('when it answers a write that was refused meanwhile: the next writes continue at once', async () => {
    const world = openPair();
    world.slow.mood = 'silent';
    const put = world.put(1);
    await world.stateAfter(copySilentMaxMs);
    expect(put.state).toBe('failed');
    const refused = world.put(2);
    await world.stateAfter(0);
    expect(refused.state).toBe('failed');
    world.slow.answerAgain();
    await world.stateAfter(0);
    expect(world.slow.abortedCount).toBe(0);
    const next = world.put(3);
    await world.stateAfter(0);
    expect(next.state).toBe('done');
  });

  test('when several copies are sent there at once after its rest', async () => {
    const world = openPair();
    world.slow.mood = 'silent';
    world.put(1);
    await world.stateAfter(copySilentMaxMs);
    await world.chunks.close();
    await world.stateAfter(60_000);
    const puts = [2, 3, 4, 5].map(world.put);
    await world.stateAfter(30);
    world.slow.answerAgain();
    await world.stateAfter(0);
    expect(puts.map(({ state }) => state)).toEqual(['done', 'done', 'done', 'done']);
  });

  test('writes beside the trial wait only until the trial is late', async () => {
    const world = openPair();
    world.slow.mood = 'silent';
    world.put(1);
    await world.stateAfter(copySilentMaxMs + diskSuspectMs);
    const puts = [2, 3].map(world.put);
    await world.stateAfter(copyLateMs / 2);
    puts.push(world.put(4));
    expect(puts.map(({ state }) => state)).toEqual(['pending', 'pending', 'pending']);
    await world.stateAfter(copyLateMs / 2);
    expect(puts.map(({ state }) => state)).toEqual(['pending', 'failed', 'failed']);
    puts.push(world.put(5));
    await world.stateAfter(0);
    expect(puts.map(({ state }) => state)).toEqual(['pending', 'failed', 'failed', 'failed']);
    world.slow.answerAgain();
    await world.stateAfter(0);
    expect(puts[0]?.state).toBe('done');
  });

  test('while it answers that it is busy; a request that was not sent says nothing', async () => {
    for (const isSent of [true, false]) {
      const world = openPair();
      world.slow.mood = 'silent';
      const put = world.put(1);
      await world.stateAfter(0);
      world.slow.mood = 'busy';
      if (!isSent) world.slow.put = () => Promise.reject(new AppError('SlowDown'));
      for (let number = 2; number < 8; number++) {
        await world.stateAfter(1000);
        const other = world.put(number);
        await world.stateAfter(0);
        expect(other).toMatchObject({ state: 'failed' });
      }
      expect(put.state).toBe(isSent ? 'pending' : 'failed');
      world.slow.answerAgain();
      await world.stateAfter(0);
      expect(put.state).toBe(isSent ? 'done' : 'failed');
    }
  });
});

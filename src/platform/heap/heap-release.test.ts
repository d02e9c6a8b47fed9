import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import {
  AGAIN_MS_MAX,
  IDLE_RELEASED_EVERY_MS,
  RELEASED_BYTES_MIN,
  RELEASED_EVERY_MS,
  REST_BYTES_MIN,
  systemHeap,
  watchHeap,
} from './heap-release.ts';

const BASE_BYTES = 50 * 1024 * 1024;

function watched() {
  const clock = createManualClock(0);
  const stopping = new AbortController();
  const events: string[] = [];
  const note = (_fields: object, event: string) => void events.push(event);
  const log = { debug() {}, info: note, warn: note, error: note };
  /** `liveBytes`: what a release leaves. */
  const now = { totalBytes: BASE_BYTES, liveBytes: BASE_BYTES, busyShare: 0.5, releases: 0 };
  const release = () => {
    now.releases++;
    now.totalBytes = now.liveBytes;
  };
  const heap = { totalBytes: () => now.totalBytes, busyShare: () => now.busyShare, release };
  watchHeap({ clock, log, heap }, stopping.signal);
  const lookAt = async (totalBytes: number, laterMs = 5000) => {
    now.totalBytes = totalBytes;
    clock.advance(laterMs);
    await setImmediate();
    return now.releases;
  };
  return { now, lookAt, events, stopping };
}

test('a heap that has shrunk is given back once, and again after the next peak', async () => {
  const { lookAt, events, stopping } = watched();
  expect(await lookAt(BASE_BYTES + RELEASED_BYTES_MIN)).toBe(0);
  expect(await lookAt(BASE_BYTES)).toBe(1);
  expect(await lookAt(BASE_BYTES)).toBe(1);
  expect(await lookAt(BASE_BYTES + RELEASED_BYTES_MIN)).toBe(1);
  expect(await lookAt(BASE_BYTES), 'too soon').toBe(1);
  expect(await lookAt(BASE_BYTES, RELEASED_EVERY_MS)).toBe(2);
  expect(events).toEqual(['heap-released', 'heap-released']);
  stopping.abort();
  expect(await lookAt(BASE_BYTES + RELEASED_BYTES_MIN)).toBe(2);
});

test('a heap that has shrunk a little is left alone', async () => {
  const { lookAt } = watched();
  await lookAt(BASE_BYTES + RELEASED_BYTES_MIN - 1);
  expect(await lookAt(BASE_BYTES)).toBe(0);
});

test('a heap that has grown is collected and given back when the thread is idle', async () => {
  const { now, lookAt } = watched();
  expect(await lookAt(BASE_BYTES + RELEASED_BYTES_MIN)).toBe(0);
  now.busyShare = 0.1;
  expect(await lookAt(BASE_BYTES + RELEASED_BYTES_MIN)).toBe(1);
  expect(await lookAt(BASE_BYTES, RELEASED_EVERY_MS), 'nothing is left to give back').toBe(1);
  expect(await lookAt(BASE_BYTES + RELEASED_BYTES_MIN)).toBe(2);
  expect(await lookAt(BASE_BYTES + RELEASED_BYTES_MIN), 'too soon').toBe(2);
  expect(await lookAt(BASE_BYTES + RELEASED_BYTES_MIN, IDLE_RELEASED_EVERY_MS), 'it is idle still').toBe(3);
});

test.each([
  ['busy', 0.5],
  ['idle, as of uploads that trickle', 0.1],
])(
  'what a release in the middle of a crowd (%s) has left is given back once the crowd is gone',
  async (_, busyShare) => {
    const { now, lookAt } = watched();
    const crowdBytes = BASE_BYTES + REST_BYTES_MIN;
    now.busyShare = busyShare;
    now.liveBytes = crowdBytes;
    await lookAt(crowdBytes + RELEASED_BYTES_MIN);
    expect(await lookAt(crowdBytes)).toBe(1);
    now.busyShare = 0.1;
    now.liveBytes = BASE_BYTES;
    expect(await lookAt(crowdBytes), 'too soon').toBe(1);
    expect(await lookAt(crowdBytes, RELEASED_EVERY_MS)).toBe(2);
    expect(await lookAt(crowdBytes, AGAIN_MS_MAX), 'as much as a thread may grow').toBe(2);
  },
);

test('what stays is looked for after twice as long each time, an hour at most', async () => {
  const { now, lookAt } = watched();
  const neededBytes = BASE_BYTES + REST_BYTES_MIN;
  now.busyShare = 0.1;
  now.liveBytes = neededBytes;
  expect(await lookAt(neededBytes + RELEASED_BYTES_MIN)).toBe(1);
  let releases = 1;
  for (let waitMs = RELEASED_EVERY_MS; waitMs < 4 * AGAIN_MS_MAX; waitMs *= 2) {
    const longestMs = Math.min(waitMs, AGAIN_MS_MAX);
    expect(await lookAt(neededBytes, longestMs - 5000), `${waitMs}`).toBe(releases);
    expect(await lookAt(neededBytes), `${waitMs}`).toBe(++releases);
  }
  expect(await lookAt(neededBytes + RELEASED_BYTES_MIN, RELEASED_EVERY_MS), 'a crowd').toBe(releases + 1);
});

test('the heap of this thread is collected and given back', () => {
  const garbage = Array.from({ length: 200_000 }, (_, at) => ({ text: `object ${at}` }));
  expect(garbage).toHaveLength(200_000);
  garbage.length = 0;
  const before = systemHeap.totalBytes();
  systemHeap.release();
  expect(systemHeap.totalBytes()).toBeLessThan(before);
});

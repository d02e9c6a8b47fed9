import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../types/limits.ts';
import { type Batch, createFrameSender } from './frame-sender.ts';

/** A stream whose transport takes a frame when the test says so. */
function openStream(queueBytesMax = 1_000_000) {
  const frames: Batch[] = [];
  let taken: (() => void) | undefined;
  let drainedCount = 0;
  const sender = createFrameSender({ queueBytesMax, onTaken: () => drainedCount++ });
  const write = (batch: Batch, onTaken: () => void) => {
    frames.push(batch);
    taken = onTaken;
  };
  const take = () => {
    const done = taken;
    taken = undefined;
    done?.();
  };
  return { sender, frames, write, take, drainedCount: () => drainedCount };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
const payload = (sizeBytes: number) => Buffer.alloc(sizeBytes);
const numbers = (frames: readonly Batch[]) => frames.map((frame) => frame.numbers);

describe('a frame', () => {
  test('holds the messages of one turn, in order', async () => {
    const { sender, frames, write } = openStream();
    sender.attach(write);
    for (const number of [3, 1, 2]) sender.send(number, payload(10));
    expect(frames).toEqual([]);
    await turn();
    expect(numbers(frames)).toEqual([[3, 1, 2]]);
  });

  test('is sent one at a time: messages of the meantime share the next', async () => {
    const { sender, frames, write, take, drainedCount } = openStream();
    sender.attach(write);
    sender.send(1, payload(10));
    await turn();
    for (const number of [2, 3]) {
      sender.send(number, payload(10));
      await turn();
    }
    expect(numbers(frames)).toEqual([[1]]);
    take();
    await turn();
    expect(numbers(frames)).toEqual([[1], [2, 3]]);
    expect(drainedCount()).toBe(1);
  });

  test('is bounded, and a larger message has one of its own', async () => {
    const { sender, frames, write, take } = openStream(10 * LIMITS.rpcFrameBytes);
    sender.attach(write);
    const sizes = [LIMITS.rpcFrameBytes - 1, 1, 1, 2 * LIMITS.rpcFrameBytes, 1];
    for (const [number, size] of sizes.entries()) sender.send(number, payload(size));
    for (let i = 0; i < sizes.length; i++) {
      await turn();
      take();
    }
    expect(numbers(frames)).toEqual([[0, 1], [2], [3], [4]]);
  });

  test('may be empty, once for any number of requests', async () => {
    const { sender, frames, write, take } = openStream();
    sender.attach(write);
    sender.sendEmpty();
    sender.sendEmpty();
    await turn();
    take();
    await turn();
    expect(numbers(frames)).toEqual([[]]);
  });
});

describe('waiting messages', () => {
  test('are bounded, including what the transport has not taken; a single message always fits', async () => {
    const { sender, write, take } = openStream(100);
    sender.attach(write);
    expect([sender.send(1, payload(500)), sender.send(2, payload(1))]).toEqual([true, false]);
    await turn();
    expect([sender.send(3, payload(1)), sender.unsentBytes()]).toEqual([false, 500]);
    take();
    expect([sender.send(4, payload(60)), sender.send(5, payload(40)), sender.send(6, payload(1))]).toEqual([
      true,
      true,
      false,
    ]);
    expect(sender.unsentBytes()).toBe(100);
  });

  test('wait for the stream', async () => {
    const { sender, frames, write } = openStream();
    sender.send(1, payload(1));
    await turn();
    sender.attach(write);
    await turn();
    expect(numbers(frames)).toEqual([[1]]);
  });

  test('let urgent ones go first, within a bound of their own', async () => {
    const { sender, frames, write, take } = openStream(3 * LIMITS.rpcFrameBytes);
    sender.attach(write);
    for (const number of [1, 2, 3]) sender.send(number, payload(LIMITS.rpcFrameBytes));
    const urgent = { isUrgent: true };
    expect(sender.send(4, payload(1))).toBe(false);
    expect(sender.send(5, payload(10), urgent)).toBe(true);
    expect(sender.send(6, payload(LIMITS.rpcFrameBytes), urgent)).toBe(false);
    expect(sender.send(7, payload(10), urgent)).toBe(true);
    expect([sender.withdraw(7), sender.withdraw(7)]).toEqual([true, false]);
    for (let frame = 0; frame < 4; frame++) {
      await turn();
      take();
    }
    expect(numbers(frames)).toEqual([[5], [1], [2], [3]]);
  });

  test('can be taken back until they are sent', async () => {
    const { sender, frames, write } = openStream(10);
    sender.attach(write);
    sender.send(1, payload(5));
    sender.send(2, payload(5));
    expect([sender.withdraw(1), sender.withdraw(1), sender.unsentBytes()]).toEqual([true, false, 5]);
    await turn();
    expect(sender.withdraw(2)).toBe(false);
    expect(numbers(frames)).toEqual([[2]]);
  });

  test('stay after the end, so that they can be told from sent ones', async () => {
    const { sender, frames, write, take } = openStream();
    sender.attach(write);
    sender.send(1, payload(1));
    await turn();
    sender.send(2, payload(1));
    sender.close();
    take();
    await turn();
    expect(numbers(frames)).toEqual([[1]]);
    expect([sender.withdraw(1), sender.withdraw(2), sender.send(3, payload(1))]).toEqual([
      false,
      true,
      false,
    ]);
  });
});

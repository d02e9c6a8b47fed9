import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { systemClock } from '../../src/platform/system-clock.ts';
import type { ClockPort } from '../../src/ports/clock.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { GatewayThreads } from './gateway-threads.ts';
import { ThreadFailed } from './watched-threads.ts';

const entryOf = (source: string) => new URL(`data:text/javascript,${encodeURIComponent(source)}`);

/** Threads that run `source`, and the first failure of one. */
function startThreads(source: string, clock: ClockPort = systemClock) {
  const failed = Promise.withResolvers<Error>();
  const threads = new GatewayThreads({
    count: 2,
    clock,
    serve: () => {},
    onFailed: failed.resolve,
    entry: entryOf(source),
  });
  return { threads, failed: failed.promise };
}

const start = { shardCount: 1, fences: [], masterKeys: { activeKeyId: 'k', keys: [] } };
const config = loadConfig({ flags: { 'memory.bodyBuffer': '64MiB' } });

test('a thread that throws has failed, what is asked of it rejects, and closing waits for nothing', async () => {
  const { threads, failed } = startThreads(`setImmediate(() => { throw new Error('out of order'); })`);
  const opening = threads.open(config, start);
  await expect(opening).rejects.toMatchObject({ code: 'ServiceUnavailable' });
  const error = await failed;
  expect(error).toBeInstanceOf(ThreadFailed);
  expect((error.cause as Error).message).toBe('out of order');
  await threads.close(60_000);
  // Nobody is told any more, and nobody waits.
  await threads.takeIdentities([]);
});

test('a thread that ends by itself has failed', async () => {
  const { threads, failed } = startThreads('process.exit(3)');
  expect((await failed).message).toMatch(/^the gateway thread [12] has ended with 3$/);
  await threads.close(60_000);
});

test('threads that answer nothing have failed after so many pulses, however long each was', async () => {
  // Answers the call that opens it, by hand: nothing of the line is loaded into such a thread.
  const answering = `
    const { parentPort } = await import('node:worker_threads');
    const { Packr } = await import(${JSON.stringify(import.meta.resolve('msgpackr'))});
    const packr = new Packr({ useRecords: false });
    parentPort.on('message', ({ items }) => {
      for (const [kind, number, name] of packr.unpackMultiple(items))
        if (name === 'open') parentPort.postMessage({ items: packr.pack([2, number, '', 9000, false]), bodies: [] });
    });`;
  let sleptCount = 0;
  const clock = {
    ...systemClock,
    async sleep(ms: number, signal?: AbortSignal) {
      if (ms !== LIMITS.threadPulseMs) return systemClock.sleep(ms, signal);
      sleptCount++;
      await systemClock.sleep(1, signal);
    },
  };
  const { threads, failed } = startThreads(answering, clock);
  expect(await threads.open(config, start)).toBe(9000);
  const before = threads.oldestRequestMs();
  expect((await failed).message).toMatch(/answers nothing$/);
  expect(sleptCount).toBeGreaterThanOrEqual(LIMITS.threadPulsesMissedMax);
  // What may still be under way there is as old as its last answer.
  expect(threads.oldestRequestMs()).toBe(before);
  await threads.close(0);
});

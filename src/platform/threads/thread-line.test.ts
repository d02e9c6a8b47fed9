import { MessageChannel } from 'node:worker_threads';
import { afterEach, expect, test } from 'vitest';
import { BrokenInvariant } from '../../base/assert.ts';
import { ChunkUnread } from '../../types/chunk-refusals.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { type CallTable, remoteCalls, serveCalls } from './named-calls.ts';
import { createThreadLine, type Frame, type ThreadLine } from './thread-line.ts';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** Both ends of a line, with the messages that the first one sends. */
function openLine(onBroken: (error: Error) => void = () => {}): {
  near: ThreadLine;
  far: ThreadLine;
  sent: Frame[];
} {
  const { port1, port2 } = new MessageChannel();
  closers.push(() => port1.close());
  const sent: Frame[] = [];
  const noted = {
    postMessage(frame: Frame, moved: ArrayBuffer[]) {
      sent.push(frame);
      port1.postMessage(frame, moved);
    },
    on: port1.on.bind(port1),
  };
  return { near: createThreadLine(noted, onBroken), far: createThreadLine(port2, onBroken), sent };
}

test('questions of a turn go in one message, and each gets its own answer', async () => {
  const { near, far, sent } = openLine();
  const waiting: (() => void)[] = [];
  far.serve({
    double: async (value: number) => {
      // The answers come in another order than the questions.
      if (value < 3) await new Promise<void>((resolve) => waiting.push(resolve));
      else for (const go of waiting) go();
      return { value: 2 * value };
    },
  });
  const answers = await Promise.all([1, 2, 3].map((value) => near.ask('double', value)));
  expect(answers).toEqual([{ value: 2 }, { value: 4 }, { value: 6 }]);
  expect(sent).toHaveLength(1);
});

test('both ends ask, and what an answerer asks meanwhile does not disturb the message that it came in', async () => {
  const { near, far } = openLine();
  near.serve({ name: () => ({ value: 'near' }) });
  far.serve({ greet: async (word: string) => ({ value: `${word} ${(await far.ask('name')).value}` }) });
  const answers = await Promise.all(['hello', 'goodbye'].map((word) => near.ask('greet', word)));
  expect(answers.map(({ value }) => value)).toEqual(['hello near', 'goodbye near']);
});

test('a whole ArrayBuffer is moved, a view is copied, and shared memory stays shared', async () => {
  const { near, far } = openLine();
  far.serve({ echo: (_value, bytes) => ({ bytes }) });
  const whole = new Uint8Array(70_000).fill(7);
  const around = new Uint8Array(100).fill(1);
  const view = around.subarray(10, 20);
  const shared = new Uint8Array(new SharedArrayBuffer(16));
  const echoes = await Promise.all([whole, view, shared].map((bytes) => near.ask('echo', null, bytes)));
  expect(whole.byteLength).toBe(0);
  expect(around.byteLength).toBe(100);
  expect(echoes.map(({ bytes }) => bytes?.length)).toEqual([70_000, 10, 16]);
  expect(echoes[0]?.bytes?.every((byte) => byte === 7)).toBe(true);
  expect(echoes[1]?.bytes?.buffer.byteLength).toBe(10);
  shared[3] = 9;
  expect(echoes[2]?.bytes?.[3]).toBe(9);
});

test('one buffer in two questions is moved by the first alone', async () => {
  const { near, far } = openLine();
  far.serve({ sum: (_value, bytes = new Uint8Array()) => ({ value: bytes.reduce((a, b) => a + b, 0) }) });
  const bytes = Uint8Array.of(1, 2, 3);
  const sums = await Promise.all([near.ask('sum', null, bytes), near.ask('sum', null, bytes)]);
  expect(sums.map(({ value }) => value)).toEqual([6, 6]);
});

test('errors come back as what callers branch on, with the stack of the other side', async () => {
  const { near, far } = openLine();
  const cause = new Error('the disk');
  const thrown = [
    new AppError('SlowDown', {
      message: 'wait',
      status: 429,
      fields: { Key: 'k' },
      headers: { a: 'b' },
      cause,
    }),
    new ChunkUnread(cause),
    new BrokenInvariant('this holds'),
    new TypeError('no function'),
  ];
  far.serve({
    fail(at: number) {
      throw thrown[at];
    },
  });
  const caught = await Promise.all(thrown.map((_, at) => near.ask('fail', at).catch((error) => error)));
  expect(caught[0]).toMatchObject({ code: 'SlowDown', message: 'wait', status: 429, fields: { Key: 'k' } });
  expect(caught[0]).toBeInstanceOf(AppError);
  expect(caught[0].headers).toEqual({ a: 'b' });
  expect(caught[0].cause.stack).toBe(cause.stack);
  expect(caught[1]).toBeInstanceOf(ChunkUnread);
  expect(caught[2]).toBeInstanceOf(BrokenInvariant);
  expect(caught[3].stack).toBe(thrown[3]?.stack);
});

test('what is no plain data fails its own question, and no other one of that turn', async () => {
  const broken: Error[] = [];
  const { near, far } = openLine((error) => broken.push(error));
  const date = new Date(0);
  const loop: unknown[] = [];
  loop.push(loop);
  far.serve({
    echo: (value: unknown) => ({ value }),
    date: () => ({ value: { at: date } }),
    loop: () => ({ value: loop }),
    fail() {
      throw new AppError('SlowDown', { fields: { At: date as never } });
    },
  });
  const asked = [
    near.ask('echo', { at: date }),
    near.ask('echo', 2n ** 70n),
    near.ask('date'),
    near.ask('loop'),
    near.ask('fail'),
    near.ask('echo', 'plain'),
  ];
  const outcomes = await Promise.allSettled(asked);
  const kinds = ['rejected', 'rejected', 'rejected', 'rejected', 'rejected', 'fulfilled'];
  expect(outcomes.map(({ status }) => status)).toEqual(kinds);
  expect(outcomes[2]).toMatchObject({ reason: { message: 'a date is no plain data' } });
  expect(await asked.at(-1)).toEqual({ value: 'plain' });
  expect([broken, near.hasRoom()]).toEqual([[], true]);
});

test('a question that nobody answers rejects', async () => {
  const { near } = openLine();
  await expect(near.ask('nothing')).rejects.toThrow('somebody answers nothing');
});

test('what is told comes in order with what is asked, and its failure breaks the line', async () => {
  const broken = Promise.withResolvers<Error>();
  const { near, far } = openLine(broken.resolve);
  const heard: string[] = [];
  far.serve({
    note: (word: string) => {
      if (word === 'bad') throw new Error('not this word');
      heard.push(word);
      return {};
    },
    heard: () => ({ value: [...heard] }),
  });
  near.tell('note', 'first');
  near.tell('note', 'second');
  expect(await near.ask('heard')).toEqual({ value: ['first', 'second'] });
  near.tell('note', 'bad');
  expect((await broken.promise).message).toBe('not this word');
});

test('a line that ends rejects what is under way and what is asked later', async () => {
  const { near, far } = openLine();
  far.serve({ wait: () => new Promise(() => {}) });
  const waiting = near.ask('wait');
  near.end('the thread has ended');
  await expect(waiting).rejects.toMatchObject({ code: 'ServiceUnavailable' });
  await expect(near.ask('wait')).rejects.toMatchObject({ code: 'ServiceUnavailable' });
});

test('has room for so many questions under way', async () => {
  const { near, far } = openLine();
  const go = Promise.withResolvers<void>();
  far.serve({ wait: () => go.promise.then(() => ({})) });
  const all = [];
  while (near.hasRoom()) all.push(near.ask('wait'));
  expect(all).toHaveLength(LIMITS.callsInFlightMax);
  go.resolve();
  await Promise.all(all);
  expect(near.hasRoom()).toBe(true);
});

test('has room for so many bytes of questions under way', async () => {
  const { near, far } = openLine();
  far.serve({ wait: () => ({}) });
  const half = new Uint8Array(LIMITS.lineQuestionsBytesMax / 2);
  const all = [near.ask('wait', half)];
  expect(near.hasRoom()).toBe(true);
  all.push(near.ask('wait', half));
  expect(near.hasRoom()).toBe(false);
  await Promise.all(all);
  expect(near.hasRoom()).toBe(true);
});

test('a table of functions is called by name, with one argument and one result', async () => {
  const { near, far } = openLine();
  const table = {
    add: ({ a, b }: { a: number; b: number }) => a + b,
    now: async () => 'now',
  } satisfies CallTable;
  serveCalls(far, table);
  const remote = remoteCalls<typeof table>(near, ['add', 'now']);
  expect(await remote.add({ a: 1, b: 2 })).toBe(3);
  expect(await remote.now()).toBe('now');
});

import { expect, test } from 'vitest';
import { createSharedLooks } from './shared-looks.ts';

/** Looks that end when they are told to. */
function heldLooks() {
  const begun: { key: string; end(text: string): void; fail(error: Error): void }[] = [];
  const look = (key: string) =>
    new Promise<string>((end, fail) => {
      begun.push({ key, end, fail });
    });
  return { begun, looks: createSharedLooks(look) };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

test('who asks during a look has the next one, and shares it with all who came meanwhile', async () => {
  const { begun, looks } = heldLooks();
  const first = looks('a');
  const others = [looks('a'), looks('a'), looks('a')];
  const apart = looks('b');
  expect(begun.map(({ key }) => key)).toEqual(['a', 'b']);
  begun[0]?.end('old');
  expect(await first).toBe('old');
  await settle();
  const last = looks('a');
  expect(begun.map(({ key }) => key)).toEqual(['a', 'b', 'a']);
  begun[2]?.end('new');
  expect(await Promise.all(others)).toEqual(['new', 'new', 'new']);
  await settle();
  begun[3]?.end('newest');
  begun[1]?.end('apart');
  expect([await last, await apart]).toEqual(['newest', 'apart']);
  await settle();
  void looks('a');
  expect(begun).toHaveLength(5);
});

test('a look that hangs is not waited for: the next one begins beside it, and one more beside that', async () => {
  const begun: ((text: string) => void)[] = [];
  let ring = () => {};
  const clock = {
    sleep: (_ms: number, signal: AbortSignal) =>
      new Promise<void>((resolve) => {
        ring = resolve;
        signal.addEventListener('abort', () => resolve());
      }),
  };
  const looks = createSharedLooks(() => new Promise<string>((resolve) => void begun.push(resolve)), clock);
  const [first, second, third] = [looks('a'), looks('a'), looks('a')];
  await settle();
  expect(begun).toHaveLength(1);
  ring();
  await settle();
  expect(begun).toHaveLength(2);
  const fourth = looks('a');
  begun[1]?.('new');
  expect(await Promise.all([second, third])).toEqual(['new', 'new']);
  await settle();
  begun[2]?.('newest');
  expect(await fourth).toBe('newest');
  begun[0]?.('old');
  expect(await first).toBe('old');
});

test('an error is that of the look, and the next one begins all the same', async () => {
  const { begun, looks } = heldLooks();
  const outcomes = [looks('a'), looks('a'), looks('a')].map((look) =>
    look.catch((error: Error) => error.message),
  );
  begun[0]?.fail(new Error('away'));
  await settle();
  begun[1]?.fail(new Error('still away'));
  expect(await Promise.all(outcomes)).toEqual(['away', 'still away', 'still away']);
  await settle();
  void looks('a').catch(() => {});
  expect(begun).toHaveLength(3);
});

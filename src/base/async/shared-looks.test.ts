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

import { expect, test } from 'vitest';
import { makeBlobId } from '../../types/names.ts';
import { PendingDrops } from './pending-drops.ts';

const blobId = makeBlobId({ timeMs: 1000, homeShard: 1, random: new Uint8Array(8) });
const [a, b] = [
  { blobId, index: 0 },
  { blobId, index: 1 },
];

test('a drop that was ordered earlier is waited for, also when a later one of the same chunk ends first', async () => {
  const drops = new PendingDrops();
  const first = Promise.withResolvers<void>();
  const tracked = drops.track([a, b], first.promise);
  // Who ordered the later one has it when it has ended.
  await drops.track([a], Promise.resolve());
  let hasEnded = false;
  const ended = drops.ended([a])?.then(() => {
    hasEnded = true;
  });
  await new Promise(setImmediate);
  expect([drops.has(a), hasEnded]).toEqual([true, false]);
  first.resolve();
  await Promise.all([tracked, ended]);
  expect([drops.has(a), drops.has(b)]).toEqual([false, false]);
});

test('one that fails is none any more, and says so to who ordered it', async () => {
  const drops = new PendingDrops();
  await expect(drops.track([a], Promise.reject(new Error('no')))).rejects.toThrow('no');
  await drops.ended([a]);
  expect(drops.has(a)).toBe(false);
});

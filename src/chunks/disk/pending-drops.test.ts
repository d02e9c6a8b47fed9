import { expect, test } from 'vitest';
import { makeBlobId } from '../../types/names.ts';
import { PendingDrops } from './pending-drops.ts';

const blobId = makeBlobId({ timeMs: 1000, homeShard: 1, random: new Uint8Array(8) });
const [a, b] = [
  { blobId, index: 0 },
  { blobId, index: 1 },
];

test('waits for a drop that was ordered earlier, also when a later drop of the same chunk ends first', async () => {
  const drops = new PendingDrops();
  const first = Promise.withResolvers<void>();
  const tracked = drops.track([a, b], first.promise);
  // The caller of the later drop gets its result when that one has ended.
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

test('a drop that fails is no longer pending, and its caller gets the error', async () => {
  const drops = new PendingDrops();
  await expect(drops.track([a], Promise.reject(new Error('no')))).rejects.toThrow('no');
  await drops.ended([a]);
  expect(drops.has(a)).toBe(false);
});

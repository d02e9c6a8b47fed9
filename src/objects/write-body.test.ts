import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { CHUNK_BYTES, codeOf, openObjectWorld } from '../../tests/support/object-world.ts';
import { settleAll } from '../../tests/support/replicated-world.ts';
import { AppError } from '../model/errors.ts';
import { LIMITS } from '../model/limits.ts';

test('who hears that a write has failed does not wait for a disk that answers no drop', async () => {
  const answered = Promise.withResolvers<void>();
  const world = await openObjectWorld({
    interceptChunks: (chunks) => ({
      put: async (id, bytes) => {
        if (id.index === 0) return chunks.put(id, bytes);
        throw new AppError('ServiceUnavailable');
      },
      get: (id) => chunks.get(id),
      have: (ids) => chunks.have(ids),
      drop: (ids, fence) => answered.promise.then(() => chunks.drop(ids, fence)),
      list: (options) => chunks.list(options),
      usage: () => chunks.usage(),
      recount: () => chunks.recount(),
    }),
  });
  let code: string | undefined;
  const put = codeOf(world.put('k', randomBytes(3 * CHUNK_BYTES))).then((found) => {
    code = found;
  });
  // The codec works beside it.
  while ((await world.chunkCount()) === 0) await settleAll();
  for (let turn = 0; turn < 50; turn++) await settleAll();
  expect(code).toBeUndefined();
  world.metadata.clock.advance(LIMITS.abandonWaitMaxMs);
  await put;
  expect(code).toBe('ServiceUnavailable');
  // It goes on all the same.
  answered.resolve();
  await expect.poll(() => world.chunkCount()).toBe(0);
});

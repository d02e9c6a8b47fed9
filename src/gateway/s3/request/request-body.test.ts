// Bodies are bounded by their announced size, or, where none is announced, by what comes.
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  codeOf,
  openObjectWorld,
  readAll,
  sourceOf,
} from '../../../../tests/support/objects/object-world.ts';
import { AppError } from '../../../types/errors.ts';
import { boundBody } from './request-body.ts';

test('an announced size beyond the limit is EntityTooLarge before a byte is read', () => {
  const body = sourceOf(Buffer.alloc(11));
  expect(() => boundBody(10, body)).toThrow(AppError);
  expect(boundBody(11, body)).toBe(body);
});

test('a body of unknown size up to the limit passes', async () => {
  const body = randomBytes(100_000);
  const bound = boundBody(body.length, sourceOf(body, { blockBytes: 999, said: { sizeBytes: undefined } }));
  expect((await readAll(bound.stream)).equals(body)).toBe(true);
});

test('a body beyond the limit is EntityTooLarge, and nothing of it is stored', async () => {
  const world = await openObjectWorld();
  const source = sourceOf(randomBytes(2_000_001), { said: { sizeBytes: undefined } });
  const said = boundBody(2_000_000, source);
  expect(await codeOf(world.put('k', Buffer.alloc(0), { said }))).toBe('EntityTooLarge');
  expect([await world.chunkCount(), world.heldBytes()]).toEqual([0, 0]);
  await expect(world.find('k')).rejects.toThrow();
});

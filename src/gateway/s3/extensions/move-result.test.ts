// How much of a MoveObjectResult is in memory at once, whatever a key's versions are.
import { expect, test } from 'vitest';
import { must } from '../../../base/assert.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { ObjectKey, VersionId } from '../../../types/names.ts';
import { type MovedKey, moveBody, moveEntries } from './move-result.ts';

const TELLING = { isQuiet: false, versioning: 'enabled' } as const;
const PIECE_CHARACTERS_MAX = 80 * 1024;

const keyOf = (versionCount: number, character = 'k'): MovedKey => ({
  from: character.repeat(LIMITS.keyBytesMax) as ObjectKey,
  to: '"'.repeat(LIMITS.keyBytesMax),
  result: Array.from({ length: versionCount }, (_, at) => `version-${at}` as VersionId),
});

test('a key of ten thousand versions is written in small texts, made on demand', async () => {
  const body = moveBody(keyOf(10_000, '&'), TELLING);
  if (body.kind !== 'xml-stream') throw new Error('it is built as a whole');
  let characterCount = 0;
  let entryCount = 0;
  for await (const piece of body.texts) {
    expect(piece.length).toBeLessThan(PIECE_CHARACTERS_MAX);
    characterCount += piece.length;
    entryCount += piece.split('<MoveObject>').length - 1;
  }
  expect(entryCount).toBe(10_000);
  expect(characterCount).toBeGreaterThan(100e6);
});

test('a short document is complete at once', () => {
  const body = moveBody(keyOf(3), TELLING);
  const text = must(body.kind === 'xml' ? body.text : undefined, 'it has one piece');
  expect(text).toMatch(
    /^<\?xml .*\n<MoveObjectResult xmlns=.*<MoveCount>3<\/MoveCount><\/MoveObjectResult>$/,
  );
});

test('keys of a step: small ones together, large ones split, and an empty text for none', () => {
  const texts = [...moveEntries([keyOf(1), keyOf(1), keyOf(100), keyOf(1)], TELLING)];
  expect(Math.max(...texts.map(({ length }) => length))).toBeLessThan(PIECE_CHARACTERS_MAX);
  expect(texts.length).toBeLessThan(20);
  expect(texts.join('').split('<MoveObject>').length - 1).toBe(103);
  expect([...moveEntries([keyOf(5)], { ...TELLING, isQuiet: true })]).toEqual(['']);
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { withinOneTurn } from '../../../tests/support/run/loop-watch.ts';
import { findText } from './find-text.ts';

test('what is sought is found where indexOf finds it', () => {
  const few = fc.string({ unit: fc.constantFrom('a', 'b', 'é'), maxLength: 12 });
  const pieces = fc.array(few, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(pieces, few, fc.nat(600), fc.boolean(), ([piece = '', ...more], end, from, isIn) => {
      const part = `${piece.repeat(60)}${more.join('')}`.padEnd(251, 'ab');
      const text = `${piece.repeat(100)}${part.slice(0, 240)}${isIn ? part : ''}${end}${piece.repeat(9)}`;
      expect(findText(text, part, from)).toBe(text.indexOf(part, from));
      expect(findText(text, piece, from)).toBe(text.indexOf(piece, from));
    }),
  );
});

test('nothing makes it go back and forth', () => {
  const text = 'a'.repeat(30_000);
  const part = `${'a'.repeat(250)}b${'a'.repeat(255)}`;
  // 11 ms each by indexOf.
  withinOneTurn(() => {
    for (let at = 0; at < 50; at++) expect(findText(text, part, at)).toBe(-1);
  });
});

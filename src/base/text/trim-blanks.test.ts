import fc from 'fast-check';
import { test } from 'vitest';
import { trimBlanks } from './trim-blanks.ts';

test('removes spaces and tabs at both ends, and nothing else', () => {
  const text = fc.array(fc.constantFrom(' ', '\t', 'a', '\u00a0', '\ufeff', '\n')).map((all) => all.join(''));
  fc.assert(fc.property(text, (sent) => trimBlanks(sent) === sent.replace(/^[ \t]+|[ \t]+$/g, '')));
});

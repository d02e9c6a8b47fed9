// Compiled policies are kept by their text, and bounded by it.
import { expect, test } from 'vitest';
import { createPolicyCache } from './policy-cache.ts';

const TEXT = '{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*"}}';

test('a text is compiled once, until texts that are longer than all that is kept come', () => {
  const cache = createPolicyCache();
  const compiled = (text: string) => cache.named({ name: 'p', text, type: 'identity' }).policy;
  const first = compiled(TEXT);
  expect(compiled(TEXT)).toBe(first);
  for (let count = 1; count <= 40; count++) compiled(TEXT + ' '.repeat(128 * 1024 - count));
  expect(compiled(TEXT)).not.toBe(first);
  expect(compiled(TEXT)).toEqual({ ...first, about: expect.any(Function) });
});

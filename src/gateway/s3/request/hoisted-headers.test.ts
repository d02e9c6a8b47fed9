import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyText, outcomeOf } from '../../../../tests/support/run/properties.ts';
import { hoistedHeaders } from './hoisted-headers.ts';
import { parseQuery } from './query.ts';

const of = (query: string, headers: Record<string, string> = {}) => ({
  ...hoistedHeaders(headers, parseQuery(query).parameters),
});

test('headers in a presigned query have the meaning of headers', () => {
  expect(of('X-Amz-Signature=s&X-Amz-Expires=1&x-amz-acl=public-read&X-Amz-Meta-A=%C3%A9&prefix=x')).toEqual({
    'x-amz-acl': 'public-read',
    'x-amz-meta-a': '\u00c3\u00a9',
  });
});

test('so they have in version 2, with digests, which it signs as headers', () => {
  expect(
    of('Signature=s&Expires=1&x-amz-meta-a=b&x-amz-checksum-crc32=AAAAAA&X-Amz-Content-Sha256=00'),
  ).toEqual({
    'x-amz-meta-a': 'b',
    'x-amz-checksum-crc32': 'AAAAAA',
    'x-amz-content-sha256': '00',
  });
});

test('a sent header has precedence; checksums of the presigning are ignored', () => {
  expect(of('X-Amz-Signature=s&x-amz-acl=public-read', { 'x-amz-acl': 'private' })).toEqual({
    'x-amz-acl': 'private',
  });
  expect(
    of('X-Amz-Signature=s&x-amz-checksum-crc32=AAAAAA%3D%3D&x-amz-sdk-checksum-algorithm=CRC32'),
  ).toEqual({});
});

test('version 2 signs them as headers in its other form, too', () => {
  const { authorization: _, ...hoisted } = of('x-amz-meta-a=b', { authorization: 'AWS key:signature' });
  expect(hoisted).toEqual({ 'x-amz-meta-a': 'b' });
});

test.each([
  'x-amz-meta-a=b%0Ac',
  'x-amz-meta-a=b%0D',
  'x-amz-meta-a=%7F',
  'x-amz-checksum-crc32=a%0Ab',
  'x-amz-meta-a%20b=c',
  'x-amz-meta-%C3%A9=c',
])('%s cannot be a header', (query) => {
  expect(() => of(`X-Amz-Signature=s&${query}`)).toThrow('cannot be represented');
});

test('without a signature in the query nothing counts as a header', () => {
  expect(of('x-amz-acl=public-read')).toEqual({});
});

test('any presigned query gives headers that could have been sent, or is refused', () => {
  const name = fc.oneof(
    fc.constantFrom('x-amz-acl', 'X-Amz-Meta-A', 'x-amz-__proto__', '__proto__', 'x-amz-'),
    anyText,
  );
  const bytes = /^[\t\x20-\x7e\x80-\xff]*$/;
  fc.assert(
    fc.property(fc.array(fc.tuple(name, fc.oneof(anyText, fc.string()))), (pairs) => {
      const query = new Map([...pairs, ['X-Amz-Signature', 's']]);
      const outcome = outcomeOf(() => hoistedHeaders({ host: 'h' }, query));
      if ('code' in outcome) {
        expect(outcome.code).toBe('InvalidArgument');
        return;
      }
      for (const key of Object.keys(outcome.value)) {
        expect(key).toMatch(/^[!#$%&'*+.^_`|~0-9a-z-]+$/);
        expect(outcome.value[key]).toMatch(bytes);
      }
    }),
  );
});

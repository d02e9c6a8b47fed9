import fc from 'fast-check';
import { expect, test } from 'vitest';
import { byteText, expectLinear, outcomeOf } from '../../../../tests/support/run/properties.ts';
import { type AnswerHeaders, addObjectHeaders, parseObjectHeaders } from './object-headers.ts';

function shown(headers: Record<string, string>): AnswerHeaders {
  const answer: AnswerHeaders = {};
  addObjectHeaders(answer, parseObjectHeaders(headers));
  return answer;
}

test('content headers and user metadata are returned, other headers are not', () => {
  expect(
    shown({
      host: 'store.test',
      'content-length': '3',
      'content-type': 'text/plain',
      'content-disposition': 'attachment',
      'content-language': 'de',
      'cache-control': 'no-cache',
      expires: 'when it rains',
      'x-amz-meta-mtime': '1700000000.5',
      'x-amz-meta-empty': '',
      'x-amz-meta-name': '\u00c3\u00a4',
    }),
  ).toEqual({
    'Content-Type': 'text/plain',
    'Content-Disposition': 'attachment',
    'Content-Language': 'de',
    'Cache-Control': 'no-cache',
    Expires: 'when it rains',
    'x-amz-meta-mtime': '1700000000.5',
    'x-amz-meta-empty': '',
    'x-amz-meta-name': '\u00c3\u00a4',
  });
});

test.each(['__proto__', 'constructor', 'toString'])('user metadata may be called %s', (name) => {
  const headers = Object.assign(Object.create(null), { [`x-amz-meta-${name}`]: 'kept' });
  expect(shown(headers)).toMatchObject({ [`x-amz-meta-${name}`]: 'kept' });
  expect(Object.entries(parseObjectHeaders(headers).userMetadata)).toEqual([[name, 'kept']]);
});

test('an object without a type is binary', () => {
  expect(shown({})).toEqual({ 'Content-Type': 'binary/octet-stream' });
});

test.each([
  ['aws-chunked', undefined],
  ['AWS-Chunked', undefined],
  ['aws-chunked,gzip', 'gzip'],
  ['gzip, aws-chunked', 'gzip'],
  ['gzip, aws-chunked, br', 'gzip,br'],
  ['gzip', 'gzip'],
  ['aws-chunked, , aws-chunked', undefined],
])('Content-Encoding %j is kept as %j', (header, kept) => {
  expect(parseObjectHeaders({ 'content-encoding': header }).contentEncoding).toBe(kept);
});

test('user metadata is 2 KB at most, including names', () => {
  const ofBytes = (sizeBytes: number) => ({ 'x-amz-meta-key': 'v'.repeat(sizeBytes - 3) });
  expect(parseObjectHeaders(ofBytes(2048)).userMetadata.key).toHaveLength(2045);
  expect(() => parseObjectHeaders(ofBytes(2049))).toThrowError(
    expect.objectContaining({ code: 'MetadataTooLarge', fields: { Size: 2049, MaxSizeAllowed: 2048 } }),
  );
});

test('any metadata is returned unchanged, or refused as too large', () => {
  const name = fc.oneof(
    fc.constantFrom('__proto__', 'constructor', 'length', ''),
    fc.stringMatching(/^[!#$%&'*+.^_`|~0-9a-z-]{1,20}$/),
  );
  fc.assert(
    fc.property(fc.dictionary(name, byteText, { noNullPrototype: false }), byteText, (metadata, encoding) => {
      const headers: Record<string, string> = Object.create(null);
      for (const key of Object.keys(metadata)) headers[`x-amz-meta-${key}`] = metadata[key] ?? '';
      headers['content-encoding'] = encoding;
      const outcome = outcomeOf(() => parseObjectHeaders(headers));
      if ('code' in outcome) {
        expect(outcome.code).toBe('MetadataTooLarge');
        return;
      }
      expect(Object.entries(outcome.value.userMetadata)).toEqual(Object.entries(metadata));
      const answer: AnswerHeaders = {};
      addObjectHeaders(answer, outcome.value);
      for (const key of Object.keys(metadata)) expect(answer[`x-amz-meta-${key}`]).toBe(metadata[key]);
    }),
  );
  expectLinear((text) => parseObjectHeaders({ 'content-encoding': `${text}aws-chunked` }), {
    pieces: [',', ' ', ' ,', 'aws-chunked,', 'a'],
  });
});

import { expect, test } from 'vitest';
import { type AnswerHeaders, addObjectHeaders, parseObjectHeaders } from './object-headers.ts';

function shown(headers: Record<string, string>): AnswerHeaders {
  const answer: AnswerHeaders = {};
  addObjectHeaders(answer, parseObjectHeaders(headers));
  return answer;
}

test('content headers and user metadata come back, other headers do not', () => {
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

test('user metadata is 2 KB at most, names counted', () => {
  const ofBytes = (sizeBytes: number) => ({ 'x-amz-meta-key': 'v'.repeat(sizeBytes - 3) });
  expect(parseObjectHeaders(ofBytes(2048)).userMetadata.key).toHaveLength(2045);
  expect(() => parseObjectHeaders(ofBytes(2049))).toThrowError(
    expect.objectContaining({ code: 'MetadataTooLarge', fields: { Size: 2049, MaxSizeAllowed: 2048 } }),
  );
});

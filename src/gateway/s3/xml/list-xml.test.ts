import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AccountId, ObjectKey } from '../../../types/names.ts';
import {
  commonPrefixesXml,
  contentsXml,
  makeToken,
  nameWriter,
  percentEncode,
  readToken,
} from './list-xml.ts';

const owner = '000000000001' as AccountId;
const AT_ONCE = { turn: async () => {} };

test.each([
  ['dir/file.txt', 'dir/file.txt'],
  ['a b+c', 'a%20b%2Bc'],
  ['a&b<c>"d"', 'a%26b%3Cc%3E%22d%22'],
  ["(*)!'~", '%28%2A%29%21%27~'],
  ['ä€😀', '%C3%A4%E2%82%AC%F0%9F%98%80'],
  ['\u0001\n', '%01%0A'],
])('percent-encoding of %j', (name, encoded) => {
  expect(percentEncode(name)).toBe(encoded);
  expect(decodeURIComponent(encoded)).toBe(name);
});

test('an entry with all fields', async () => {
  const summary = {
    order: 1,
    isDeleteMarker: false,
    sizeBytes: 5,
    modifiedAtMs: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
    etag: '5d41402abc4b2a76b9719d911017c592',
    owner,
    checksum: { algorithm: 'CRC32', type: 'FULL_OBJECT' },
  } as const;
  const owners = new Map([[owner, '<Owner><ID>1</ID><DisplayName>me</DisplayName></Owner>']]);
  const objects = [{ key: 'a&b' as ObjectKey, summary }];
  expect(await contentsXml(AT_ONCE, objects, { writeName: nameWriter(false), owners })).toBe(
    '<Contents><Key>a&amp;b</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified>' +
      '<ETag>&quot;5d41402abc4b2a76b9719d911017c592&quot;</ETag>' +
      '<ChecksumAlgorithm>CRC32</ChecksumAlgorithm><ChecksumType>FULL_OBJECT</ChecksumType>' +
      '<Size>5</Size><Owner><ID>1</ID><DisplayName>me</DisplayName></Owner>' +
      '<StorageClass>STANDARD</StorageClass></Contents>',
  );
});

test('common prefixes are encoded like names', async () => {
  expect(await commonPrefixesXml(AT_ONCE, ['a b/'], nameWriter(true))).toBe(
    '<CommonPrefixes><Prefix>a%20b/</Prefix></CommonPrefixes>',
  );
  expect(await commonPrefixesXml(AT_ONCE, [], nameWriter(true))).toBe('');
});

test('a page of long names is written in several turns', async () => {
  const keys = Array.from({ length: 1000 }, (_, at) => `${'é'.repeat(500)}${at}`);
  let turnCount = 0;
  const turn = async () => {
    turnCount++;
  };
  const xml = await commonPrefixesXml({ turn }, keys, nameWriter(true));
  expect(xml.length).toBeGreaterThan(3_000_000);
  expect(turnCount).toBe(Math.floor(xml.length / (256 * 1024)));
});

test('a token decodes to its content', () => {
  for (const after of ['a', 'dir/', 'ä😀', '\u0001', 'x'.repeat(1024)])
    expect(readToken(makeToken(after))).toBe(after);
});

test.each(['', '1', '1a', 'x', 'token', '2YQ', '1YR', '1YWJjZ', '1_w', '1a=', '1a b'])(
  '%j is no token',
  (token) => {
    expect(() => readToken(token)).toThrowError(expect.objectContaining({ code: 'InvalidArgument' }));
  },
);

test('any text is a token or refused, and never starts the list again', () => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.base64String().map((tail) => `1${tail}`),
  );
  fc.assert(
    fc.property(text, (token) => {
      try {
        expect(readToken(token)).not.toBe('');
      } catch (error) {
        expect(error).toMatchObject({ code: 'InvalidArgument' });
      }
    }),
  );
});

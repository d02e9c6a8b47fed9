import fc from 'fast-check';
import { expect, test } from 'vitest';
import { outcomeOf } from '../../../../tests/support/run/properties.ts';
import { finishAtOnce } from '../../../base/async/steps.ts';
import { parseCompleteBody } from './complete-body.ts';

const parse = (body: Uint8Array) => finishAtOnce(parseCompleteBody(body));
const document = (inner: string) =>
  Buffer.from(`<CompleteMultipartUpload>${inner}</CompleteMultipartUpload>`);
const refusal = (code: string) => expect.objectContaining({ code });

test('parts with ETags quoted, escaped or bare, with or without a checksum', () => {
  expect(
    parse(
      document(
        '<Part><PartNumber>1</PartNumber><ETag>"aa"</ETag></Part>' +
          '<Part><ETag>&quot;bb&quot;</ETag><PartNumber> 2 </PartNumber><ChecksumCRC32>AAAAAA==</ChecksumCRC32></Part>' +
          '<Part><PartNumber>10000</PartNumber><ETag>cc</ETag></Part>',
      ),
    ),
  ).toEqual([
    { partNumber: 1, etag: 'aa' },
    { partNumber: 2, etag: 'bb', checksum: { algorithm: 'CRC32', value: 'AAAAAA==' } },
    { partNumber: 10000, etag: 'cc' },
  ]);
});

const part = (partNumber: string | number, more = '') =>
  `<Part><PartNumber>${partNumber}</PartNumber><ETag>e</ETag>${more}</Part>`;

test.each([
  ['no parts', ''],
  ['no ETag', '<Part><PartNumber>1</PartNumber></Part>'],
  ['no part number', '<Part><ETag>e</ETag></Part>'],
  ['a part number that is none', part('one')],
  ['two part numbers', part(1, '<PartNumber>2</PartNumber>')],
  ['10,001 parts', Array.from({ length: 10_001 }, (_, index) => part(index + 1)).join('')],
  ['an open element', '<Part>'],
])('%s: MalformedXML', (_name, inner) => {
  expect(() => parse(document(inner))).toThrowError(refusal('MalformedXML'));
});

test('another root: MalformedXML', () => {
  expect(() => parse(Buffer.from('<Delete/>'))).toThrowError(refusal('MalformedXML'));
});

test('no body: InvalidRequest', () => {
  expect(() => parse(Buffer.alloc(0))).toThrowError(refusal('InvalidRequest'));
});

test('part numbers out of range', () => {
  expect(() => parse(document(part(0)))).toThrowError(refusal('InvalidArgument'));
  expect(() => parse(document(part(-1)))).toThrowError(refusal('InvalidArgument'));
  expect(() => parse(document(part(10_001)))).toThrowError(refusal('InvalidPart'));
});

test.each([
  '<ChecksumCRC32>no</ChecksumCRC32>',
  '<ChecksumSHA1/>',
  '<ChecksumCRC32>AAAAAA==</ChecksumCRC32><ChecksumCRC32C>AAAAAA==</ChecksumCRC32C>',
])('%s: BadDigest', (more) => {
  expect(() => parse(document(part(1, more)))).toThrowError(refusal('BadDigest'));
});

test('every list of parts is read as it was written', () => {
  const parts = fc.array(
    fc.record({
      partNumber: fc.integer({ min: 1, max: 10_000 }),
      etag: fc.stringMatching(/^[0-9a-f]{32}$/),
      hasChecksum: fc.boolean(),
    }),
    { minLength: 1 },
  );
  fc.assert(
    fc.property(parts, fc.constantFrom('', '"', '&quot;'), (list, quote) => {
      const text = list.map(
        ({ partNumber, etag, hasChecksum }) =>
          `<Part><ETag>${quote}${etag}${quote}</ETag><PartNumber>${partNumber}</PartNumber>${hasChecksum ? '<ChecksumCRC32>AAAAAA==</ChecksumCRC32>' : ''}</Part>`,
      );
      const checksum = { algorithm: 'CRC32', value: 'AAAAAA==' };
      const read = outcomeOf(() => parse(document(text.join(' '))));
      expect(read).toEqual({
        value: list.map(({ partNumber, etag, hasChecksum }) => ({
          partNumber,
          etag,
          ...(hasChecksum && { checksum }),
        })),
      });
    }),
  );
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { expectLinear, nearly, outcomeOf } from '../../../../tests/support/run/properties.ts';
import { CHECKSUM_ALGORITHMS, CHECKSUM_BYTES, checksumHeader } from '../../../types/checksums.ts';
import {
  addChecksum,
  checksumXml,
  hasBodyDigest,
  isDigest,
  parseChecksumAlgorithm,
  parseObjectChecksum,
  parseUploadChecksum,
  wantsChecksum,
} from './checksum-headers.ts';
import type { AnswerHeaders } from './object-headers.ts';

const refusal = (code: string) => expect.objectContaining({ code });
const upload = (algorithm?: string, type?: string) =>
  parseUploadChecksum({
    ...(algorithm !== undefined && { 'x-amz-checksum-algorithm': algorithm }),
    ...(type !== undefined && { 'x-amz-checksum-type': type }),
  });

test.each([
  ['CRC32', undefined, 'COMPOSITE'],
  ['crc32c', undefined, 'COMPOSITE'],
  ['CRC64NVME', undefined, 'FULL_OBJECT'],
  ['SHA1', undefined, 'COMPOSITE'],
  ['SHA256', 'composite', 'COMPOSITE'],
  ['CRC32', 'FULL_OBJECT', 'FULL_OBJECT'],
])('an upload with %s, %s', (algorithm, type, resolved) => {
  expect(upload(algorithm, type)).toEqual({ algorithm: algorithm.toUpperCase(), type: resolved });
});

test.each([
  ['MD5', undefined],
  ['', undefined],
  [undefined, 'COMPOSITE'],
  ['CRC32', 'PARTIAL'],
  ['SHA1', 'FULL_OBJECT'],
  ['SHA256', 'FULL_OBJECT'],
  ['CRC64NVME', 'COMPOSITE'],
])('an upload with %s, %s is refused', (algorithm, type) => {
  expect(() => upload(algorithm, type)).toThrowError(refusal('InvalidRequest'));
});

test('no request for a checksum, none computed', () => {
  expect(upload()).toBeUndefined();
  expect(parseChecksumAlgorithm({})).toBeUndefined();
  expect(parseObjectChecksum({})).toBeUndefined();
});

test.each([
  [{ 'x-amz-checksum-crc32': 'AAAAAA==' }, { algorithm: 'CRC32', type: 'FULL_OBJECT', value: 'AAAAAA==' }],
  [{ 'x-amz-checksum-crc32': 'AAAAAA==-2' }, { algorithm: 'CRC32', type: 'COMPOSITE', value: 'AAAAAA==-2' }],
  [
    { 'x-amz-checksum-crc32': 'AAAAAA==', 'x-amz-checksum-type': 'COMPOSITE' },
    { algorithm: 'CRC32', type: 'COMPOSITE', value: 'AAAAAA==' },
  ],
  [
    { 'x-amz-checksum-sha1': 'AAAAAAAAAAAAAAAAAAAAAAAAAAA=' },
    { algorithm: 'SHA1', type: 'COMPOSITE', value: 'AAAAAAAAAAAAAAAAAAAAAAAAAAA=' },
  ],
])('the checksum of a whole object: %j', (headers, checksum) => {
  expect(parseObjectChecksum(headers as unknown as Record<string, string>)).toEqual(checksum);
});

test.each(['AAAA', 'no!', 'AAAAAA==-', 'AAAAAA==-0', 'AAAAAB', ''])('%j is no CRC32', (value) => {
  expect(() => parseObjectChecksum({ 'x-amz-checksum-crc32': value })).toThrowError(refusal('BadDigest'));
});

test('checksums are returned on request', () => {
  expect(wantsChecksum({})).toBe(false);
  expect(wantsChecksum({ 'x-amz-checksum-mode': 'ENABLED' })).toBe(true);
  expect(() => wantsChecksum({ 'x-amz-checksum-mode': 'maybe' })).toThrowError(refusal('InvalidRequest'));
});

test('a body digest is Content-MD5, a checksum or a trailer', () => {
  expect(hasBodyDigest({ 'x-amz-checksum-algorithm': 'CRC32', 'x-amz-content-sha256': 'e3b0' })).toBe(false);
  for (const name of ['content-md5', 'x-amz-checksum-crc32', 'x-amz-checksum-sha256', 'x-amz-trailer'])
    expect(hasBodyDigest({ [name]: 'x' })).toBe(true);
});

test('a checksum as header and as XML', () => {
  const checksum = { algorithm: 'CRC32', type: 'COMPOSITE', value: 'AAAAAA==-2' } as const;
  const answer: AnswerHeaders = {};
  addChecksum(answer, checksum);
  addChecksum(answer, undefined);
  expect(answer).toEqual({ 'x-amz-checksum-crc32': 'AAAAAA==-2', 'x-amz-checksum-type': 'COMPOSITE' });
  expect(checksumXml(checksum)).toBe(
    '<ChecksumCRC32>AAAAAA==-2</ChecksumCRC32><ChecksumType>COMPOSITE</ChecksumType>',
  );
  expect(checksumXml(undefined)).toBe('');
});

test('every digest is accepted in its own form only, whole or of parts', () => {
  const algorithms = fc.constantFrom(...CHECKSUM_ALGORITHMS);
  fc.assert(
    fc.property(
      algorithms,
      fc.uint8Array({ maxLength: 40 }),
      fc.integer({ min: 1, max: 10_000 }),
      (algorithm, bytes, parts) => {
        const value = Buffer.from(bytes).toString('base64');
        expect(isDigest(algorithm, value)).toBe(bytes.length === CHECKSUM_BYTES[algorithm]);
        const header = checksumHeader(algorithm);
        const outcome = outcomeOf(() => parseObjectChecksum({ [header]: `${value}-${parts}` }));
        if (!isDigest(algorithm, value)) expect(outcome).toEqual({ code: 'BadDigest' });
        else
          expect(outcome).toMatchObject({
            value: { algorithm, type: 'COMPOSITE', value: `${value}-${parts}` },
          });
      },
    ),
  );
});

test('any texts are checksums, or refused', () => {
  const texts = nearly(
    ['AAAAAA==', 'AAAAAA==-3', 'CRC32', 'SHA256', 'COMPOSITE', 'ENABLED'],
    ['=', '-', 'A', ' ', '0', '\xff', '_'],
  );
  fc.assert(
    fc.property(texts, texts, (one, other) => {
      const headers = {
        'x-amz-checksum-crc32': one,
        'x-amz-checksum-sha256': one,
        'x-amz-checksum-type': other,
      };
      const more = { 'x-amz-checksum-algorithm': one, 'x-amz-checksum-mode': one };
      outcomeOf(() => parseObjectChecksum(headers));
      outcomeOf(() => parseUploadChecksum({ ...headers, ...more }));
      outcomeOf(() => wantsChecksum(more));
    }),
  );
  expectLinear((text) => parseObjectChecksum({ 'x-amz-checksum-crc32': text }), {
    pieces: ['A', '=', '-', '1', ' '],
    starts: ['', 'AAAAAA==-'],
  });
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyText, expectLinear, nearly, outcomeOf } from '../../../../tests/support/run/properties.ts';
import { makeVersionId } from '../../../types/names.ts';
import { parseCopySource } from './copy-source.ts';

const VERSION = makeVersionId(new Uint8Array(24).fill(7));

test.each([
  ['bucket/key', 'bucket', 'key'],
  ['/bucket/key', 'bucket', 'key'],
  ['bucket/dir/key', 'bucket', 'dir/key'],
  ['bucket//key', 'bucket', '/key'],
  ['bucket%2Fdir%2Fa%20b', 'bucket', 'dir/a b'],
  ['bucket/a+b', 'bucket', 'a+b'],
  ['bucket/a%2Bb%3Fc', 'bucket', 'a+b?c'],
  ['bucket/%C3%A4', 'bucket', 'ä'],
  ['bucket/\u00c3\u00a4', 'bucket', 'ä'],
  ['bucket/100%25', 'bucket', '100%'],
  ['bucket/a?b', 'bucket', 'a?b'],
  ['No_Bucket/key', 'No_Bucket', 'key'],
])('%s', (header, bucket, key) => {
  expect(parseCopySource(header)).toEqual({ bucket, key });
});

test('a version id follows the key', () => {
  expect(parseCopySource(`bucket/key?versionId=${VERSION}`)).toEqual({
    bucket: 'bucket',
    key: 'key',
    versionId: VERSION,
  });
  expect(parseCopySource('bucket/a?versionId=x?versionId=null')).toEqual({
    bucket: 'bucket',
    key: 'a?versionId=x',
    versionId: 'null',
  });
});

test.each([
  '',
  '/',
  'bucket',
  'bucket/',
  '/bucket',
  '//key',
  'bucket/%FF',
  'bucket/100%',
  'bucket/key?versionId=',
  'bucket/key?versionId=no',
  `bucket/${'k'.repeat(1025)}`,
])('%j is refused', (header) => {
  expect(() => parseCopySource(header)).toThrowError(expect.objectContaining({ code: 'InvalidArgument' }));
});

test('what a client encodes is what is read', () => {
  const name = fc.string({ unit: fc.constantFrom('a', '-', '.', '1'), minLength: 1, maxLength: 63 });
  fc.assert(
    fc.property(name, anyText, fc.boolean(), fc.boolean(), (bucket, key, hasVersion, hasSlash) => {
      const version = hasVersion ? `?versionId=${VERSION}` : '';
      const header = `${hasSlash ? '/' : ''}${bucket}/${encodeURIComponent(key)}${version}`;
      expect(parseCopySource(header)).toEqual({ bucket, key, ...(hasVersion && { versionId: VERSION }) });
    }),
  );
});

test('any text is a source or InvalidArgument', () => {
  const texts = nearly(
    ['/bucket/key', `bucket/a%20b?versionId=${VERSION}`],
    ['/', '%', '%2F', '%FF', '%00', '?versionId=', '\xff', '#'],
  );
  fc.assert(
    fc.property(texts, (text) => {
      const outcome = outcomeOf(() => parseCopySource(text));
      if ('value' in outcome) expect(outcome.value.key).not.toBe('');
      else expect(outcome.code).toBe('InvalidArgument');
    }),
  );
  expectLinear(parseCopySource, { pieces: ['/', '%', '%2F', '?versionId=', 'a'], starts: ['', 'bucket/'] });
});

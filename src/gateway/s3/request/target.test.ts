import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PARAMETER_NAMES } from '../../../../tests/support/fuzz/fuzz-words.ts';
import { cpuMs } from '../../../../tests/support/run/cpu-time.ts';
import { anyText, byteText, expectLinear } from '../../../../tests/support/run/properties.ts';
import { AppError } from '../../../types/errors.ts';
import { parseQuery } from './query.ts';
import { bucketLabelOf, checkNames, parseTarget } from './target.ts';

const codeOf = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    return error instanceof AppError ? error.code : String(error);
  }
  return 'none';
};

describe('path style', () => {
  test.each([
    ['/', 'service', '', ''],
    ['/?x-id=ListBuckets', 'service', '', ''],
    ['/b', 'bucket', 'b', ''],
    ['/b/', 'bucket', 'b', ''],
    ['/b?list-type=2', 'bucket', 'b', ''],
    ['/b/k', 'object', 'b', 'k'],
    ['/b//k', 'object', 'b', '/k'],
    ['/b//', 'object', 'b', '/'],
    ['/b/../x/./y', 'object', 'b', '../x/./y'],
    ['/b/a%2Fb', 'object', 'b', 'a/b'],
    ['/b/a+b%20c%2B', 'object', 'b', 'a+b c+'],
    ['/b/%25zz', 'object', 'b', '%zz'],
    ['/b/%C3%A9', 'object', 'b', 'é'],
    ['/b/\u00c3\u00a9', 'object', 'b', 'é'],
    ['/b/%EF%BB%BFk', 'object', 'b', '\ufeffk'],
    ['/a%2Fb', 'bucket', 'a/b', ''],
    ['http://host:9000/b/k?x', 'object', 'b', 'k'],
    ['HTTPS://host', 'service', '', ''],
    ['http://host?x', 'service', '', ''],
    ['*', 'service', '', ''],
  ])('%s is %s %s %s', (uri, level, bucket, key) => {
    expect(parseTarget(uri, undefined)).toMatchObject({ level, bucket, key });
  });

  test.each([
    '/b/%',
    '/b/%zz',
    '/b/%00',
    '/b/%FF',
    '/b/%C3',
    '/%',
    '/b?%',
    '/b?a=%zz',
    '/b?a=%FF',
    '/b?a=%00',
    'b/k',
    '',
    '/b/k#f',
    'ftp://h/b',
  ])('%j is InvalidURI', (uri) => {
    expect(codeOf(() => parseTarget(uri, undefined))).toBe('InvalidURI');
  });
});

test('virtual-host style: the whole path is the key', () => {
  expect(parseTarget('/', 'b')).toMatchObject({ level: 'bucket', bucket: 'b', key: '' });
  expect(parseTarget('/k/%20', 'b')).toMatchObject({
    level: 'object',
    bucket: 'b',
    key: 'k/ ',
    path: '/k/%20',
  });
  expect(parseTarget('//', 'b')).toMatchObject({ level: 'object', bucket: 'b', key: '/' });
});

test('the bucket is the label before one of our domains', () => {
  const domains = ['eu.s3.test', 's3.test'];
  expect(bucketLabelOf('b.s3.test:9000', domains)).toBe('b');
  expect(bucketLabelOf('B.C.S3.test.', domains)).toBe('b.c');
  expect(bucketLabelOf('b.eu.s3.test', domains)).toBe('b');
  expect(bucketLabelOf('eu.s3.test', domains)).toBeUndefined();
  expect(bucketLabelOf('s3.test', domains)).toBeUndefined();
  expect(bucketLabelOf('xs3.test', domains)).toBeUndefined();
  expect(bucketLabelOf('[::1]:9000', domains)).toBeUndefined();
  expect(bucketLabelOf('127.0.0.1', [])).toBeUndefined();
});

test('an empty label before a domain is refused', () => {
  const domains = ['s3.test'];
  expect(bucketLabelOf('.s3.test', domains)).toBe('');
  expect(codeOf(() => parseTarget('/', ''))).toBe('InvalidBucketName');
  expect(codeOf(() => parseTarget('/key', ''))).toBe('InvalidBucketName');
  expect(codeOf(() => checkNames(parseTarget('/', bucketLabelOf('..s3.test', domains))))).toBe(
    'InvalidBucketName',
  );
});

test('any host is a label under a domain, or none, in bounded time', () => {
  const piece = fc.constantFrom(
    '.',
    '..',
    's3.test',
    'eu',
    ':',
    '9000',
    '[::1]',
    'B',
    '\u00ff',
    '127.0.0.1',
    ' ',
    '',
  );
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      const host = pieces.join('');
      const label = bucketLabelOf(host, ['eu.s3.test', 's3.test']);
      if (label !== undefined) expect(host.toLowerCase().startsWith(`${label}.`)).toBe(true);
    }),
  );
  const startedMs = cpuMs();
  bucketLabelOf(`${'.s3.test:'.repeat(20_000)}x`, ['s3.test']);
  expect(cpuMs() - startedMs).toBeLessThan(1000);
});

test('names are checked: bucket rules, key length in bytes', () => {
  expect(checkNames(parseTarget('/bucket/k', undefined))).toEqual({ bucket: 'bucket', key: 'k' });
  expect(checkNames(parseTarget('/', undefined))).toEqual({ bucket: '', key: '' });
  for (const bad of ['/Bucket', '/ab', '/1.2.3.4', '/a..b', '/holdfast-admin', '/a%2Fb', '/b%20c/k']) {
    expect(codeOf(() => checkNames(parseTarget(bad, undefined)))).toBe('InvalidBucketName');
  }
  expect(codeOf(() => parseTarget('//k', undefined))).toBe('InvalidBucketName');
  expect(checkNames(parseTarget(`/bucket/${'%C3%A9'.repeat(512)}`, undefined)).key).toHaveLength(512);
  expect(codeOf(() => checkNames(parseTarget(`/bucket/${'%C3%A9'.repeat(512)}a`, undefined)))).toBe(
    'KeyTooLongError',
  );
});

test('the first value of an unknown parameter counts, a plus is a space, no value is empty', () => {
  const { parameters, pairs } = parseTarget('/b?a=1&a=2&uploads&&p=x+y%2Bz&=v&e=', undefined).query;
  expect([...parameters]).toEqual([
    ['a', '1'],
    ['uploads', ''],
    ['p', 'x y+z'],
    ['', 'v'],
    ['e', ''],
  ]);
  expect(pairs).toHaveLength(6);
});

test.each([
  'force_delete=true&force_delete=false',
  'versionId=null&versionId=null',
  'uploadId=a&partNumber=1&uploadId=b',
  'X-Amz-Signature=a&x-amz-signature=b',
  'x-amz-acl=private&X-Amz-Acl=public-read',
  'Expires=1&Signature=a&Expires=2',
  'response-content-type=a&response-content-type=b',
  'prefix=a&%70refix=b',
])('a parameter that is read and there twice is refused: %s', (query) => {
  expect(codeOf(() => parseTarget(`/b?${query}`, undefined))).toBe('InvalidArgument');
});

test('every parameter of an operation is known, and may occur once', () => {
  for (const name of PARAMETER_NAMES.filter((name) => !/^(?:__proto__|constructor|x|)$/.test(name))) {
    const sent = encodeURIComponent(name);
    expect([name, codeOf(() => parseTarget(`/b?${sent}=1&a=2&${sent}=1`, undefined))]).toEqual([
      name,
      'InvalidArgument',
    ]);
  }
});

test('an InvalidURI names the path only', () => {
  for (const uri of ['/b/k?secret=%zz', '/b/k#secret', '/b/k?a=%00secret', '/b/k?secret#x']) {
    try {
      parseTarget(uri, undefined);
      expect.unreachable();
    } catch (error) {
      expect(error).toMatchObject({ code: 'InvalidURI', fields: { URI: '/b/k' } });
    }
  }
});

test('any request line is a target, InvalidURI or InvalidBucketName', () => {
  const piece = fc.constantFrom(
    '/',
    '%',
    '%2F',
    '%00',
    '%C3',
    '?',
    '&',
    '=',
    '+',
    '#',
    '..',
    'a',
    '\u00ff',
    '*',
    'http://',
  );
  const line = fc.oneof(
    fc.array(piece).map((pieces) => pieces.join('')),
    fc.string({ unit: fc.nat(255).map((code) => String.fromCharCode(code)) }).map((bytes) => `/${bytes}`),
  );
  fc.assert(
    fc.property(line, fc.option(fc.constant('label'), { nil: undefined }), (uri, label) => {
      const code = codeOf(() => checkNames(parseTarget(uri, label)));
      expect(['none', 'InvalidURI', 'InvalidBucketName']).toContain(code);
    }),
  );
});

test('what a client encodes is decoded to the bucket, the key and the parameters', () => {
  const pairs = fc.array(fc.tuple(anyText, anyText), { maxLength: 5 });
  fc.assert(
    fc.property(anyText, anyText, pairs, fc.boolean(), (bucket, key, parameters, isVirtualHost) => {
      const query = parameters.map((pair) => pair.map(encodeURIComponent).join('=')).join('&');
      const path = `${isVirtualHost ? '' : `/${encodeURIComponent(bucket)}`}/${encodeURIComponent(key)}`;
      const target = parseTarget(`${path}?${query}`, isVirtualHost ? bucket : undefined);
      expect(target).toMatchObject({ level: 'object', bucket, key });
      const firstOnes = new Map([...parameters].reverse());
      expect(new Map(target.query.parameters)).toEqual(firstOnes);
    }),
  );
});

test('any bytes are a query or InvalidURI, in linear time', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(byteText, fc.constantFrom('&', '=', '%41', '+', '__proto__'))), (parts) => {
      expect(['none', 'InvalidURI']).toContain(codeOf(() => parseQuery(parts.join(''))));
    }),
  );
  const pieces = ['/', '%', '%41', '%2F', '?', '&', '=', 'a=b&', '+', '.', '#', ':', '\xff', '%C3%A9'];
  expectLinear((text) => parseTarget(text, undefined), {
    pieces,
    starts: ['/b/', '/b?', '', 'http://'],
    end: '',
  });
  expectLinear((text) => bucketLabelOf(text, ['s3.test']), {
    pieces: ['.', ':', ':1', 'a.', '.s3.test'],
    end: '',
  });
});

test('a path longer than any key is not decoded, and parameters are bounded', () => {
  expect(codeOf(() => parseTarget(`/b/${'%41'.repeat(10_000)}`, undefined))).toBe('KeyTooLongError');
  expect(codeOf(() => parseTarget(`/${'b'.repeat(63)}/${'%41'.repeat(1024)}`, undefined))).toBe('none');
  expect(codeOf(() => parseTarget(`/b?${'a&'.repeat(1023)}`, undefined))).toBe('none');
  expect(codeOf(() => parseTarget(`/b?${'a&'.repeat(1024)}`, undefined))).toBe('InvalidArgument');
});

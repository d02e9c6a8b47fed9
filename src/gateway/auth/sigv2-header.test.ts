import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  ACCOUNT,
  AWS,
  DAY_MS,
  EMPTY_SHA256,
  HOST,
  openSigningWorld,
  type Sent,
} from '../../../tests/support/objects/signing-world.ts';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import { nearly } from '../../../tests/support/run/properties.ts';
import { type SigV2Options, signHeadersV2 } from '../../../tests/support/servers/sigv2-client.ts';
import type { AppError } from '../../types/errors.ts';

const { outcome, identify, metadata } = await openSigningWorld();

/** A GET of the bucket, signed, with changes before it is; `extra` headers come after. */
function signedV2(
  change: Partial<SigV2Options & Omit<Sent, 'headers'> & { nowMs: number }> = {},
  extra: Readonly<Record<string, string>> = {},
): Sent {
  const {
    uri = '/',
    method = 'GET',
    resource = '/examplebucket/',
    headers = {},
    nowMs = DAY_MS,
    ...rest
  } = change;
  const credentials = change.credentials ?? AWS;
  const signed = signHeadersV2({ method, resource, headers, credentials, nowMs });
  return { ...rest, method, uri, headers: Object.entries({ host: HOST, ...signed, ...extra }) };
}

describe("AWS's examples", async () => {
  const { outcome: at2007, clock: clock2007 } = await openSigningWorld(Date.parse('2007-03-27T19:36:42Z'));
  const id = AWS.accessKey;
  const cases: [string, string, Sent & { signature: string; headers: [string, string][] }][] = [
    [
      'GET of an object',
      '2007-03-27T19:36:42Z',
      {
        uri: '/photos/puppy.jpg',
        headers: [['Date', 'Tue, 27 Mar 2007 19:36:42 +0000']],
        signature: 'bWq2s1WEIj+Ydj0vQ697zp+IXMU=',
      },
    ],
    [
      'PUT of an object',
      '2007-03-27T21:15:45Z',
      {
        method: 'PUT',
        uri: '/photos/puppy.jpg',
        headers: [
          ['Content-Type', 'image/jpeg'],
          ['Content-Length', '94328'],
          ['Date', 'Tue, 27 Mar 2007 21:15:45 +0000'],
        ],
        signature: 'MyyxeRY7whkBe+bq8fHCL/2kKUg=',
      },
    ],
    [
      'a list',
      '2007-03-27T19:42:41Z',
      {
        uri: '/?prefix=photos&max-keys=50&marker=puppy',
        headers: [
          ['User-Agent', 'Mozilla/5.0'],
          ['Date', 'Tue, 27 Mar 2007 19:42:41 +0000'],
        ],
        signature: 'htDYFYduRNen8P9ZfE/s9SuKy0U=',
      },
    ],
    [
      'GET ?acl',
      '2007-03-27T19:44:46Z',
      {
        uri: '/?acl',
        headers: [['Date', 'Tue, 27 Mar 2007 19:44:46 +0000']],
        signature: 'c2WLPFtWHVgbEmeEG93a4cG37dM=',
      },
    ],
    [
      'an upload with many headers',
      '2007-03-27T21:06:08Z',
      {
        method: 'PUT',
        uri: '/db-backup.dat.gz',
        hostBucket: 'static.johnsmith.net',
        headers: [
          ['User-Agent', 'curl/7.15.5'],
          ['Date', 'Tue, 27 Mar 2007 21:06:08 +0000'],
          ['x-amz-acl', 'public-read'],
          ['content-type', 'application/x-download'],
          ['Content-MD5', '4gJE4saaMU4BqNR0kLY+lw=='],
          ['X-Amz-Meta-ReviewedBy', 'joe@johnsmith.net'],
          ['X-Amz-Meta-ReviewedBy', 'jane@johnsmith.net'],
          ['X-Amz-Meta-FileChecksum', '0x02661779'],
          ['X-Amz-Meta-ChecksumAlgorithm', 'crc32'],
          ['Content-Disposition', 'attachment; filename=database.dat'],
          ['Content-Encoding', 'gzip'],
          ['Content-Length', '5913339'],
        ],
        signature: 'ilyl83RwaSoYIEdixDQcA4OnAnc=',
      },
    ],
    [
      'all my buckets',
      '2007-03-28T01:29:59Z',
      {
        uri: '/',
        hostBucket: null,
        headers: [['Date', 'Wed, 28 Mar 2007 01:29:59 +0000']],
        signature: 'qGdzdERIC03wnaRNKh6OqZehG9s=',
      },
    ],
    [
      'a path as it was encoded',
      '2007-03-28T01:49:49Z',
      {
        uri: '/dictionary/fran%C3%A7ais/pr%c3%a9f%c3%a8re',
        hostBucket: null,
        headers: [['Date', 'Wed, 28 Mar 2007 01:49:49 +0000']],
        signature: 'DNEZGsoieTZ92F3bUfSPQcbGmlM=',
      },
    ],
  ];
  test.each(cases)('%s', async (_name, time, { signature, headers, ...sent }) => {
    clock2007.shiftWall(Date.parse(time) - clock2007.wallMs());
    const all: [string, string][] = [
      ...headers,
      ['Host', 's3.amazonaws.com'],
      ['Authorization', `AWS ${id}:${signature}`],
    ];
    const hostBucket = sent.hostBucket === undefined ? 'johnsmith' : sent.hostBucket;
    expect(await at2007({ ...sent, hostBucket, headers: all })).toBe('account');
    expect(await at2007({ ...sent, hostBucket, headers: all, method: 'POST' })).toBe(
      '403 SignatureDoesNotMatch',
    );
  });
});

describe('spellings that clients use', () => {
  test.each<[string, Parameters<typeof signedV2>[0]]>([
    ['an object in virtual-host style', { uri: '/k', resource: '/examplebucket/k' }],
    ['an object in path style', { uri: '/bucket/k%20/', resource: '/bucket/k%20/', hostBucket: null }],
    [
      'a bucket in path style, with its slash',
      { uri: '/bucket/?delete', resource: '/bucket/?delete', hostBucket: null },
    ],
    ['the service', { uri: '/', resource: '/', hostBucket: null }],
    ['a parameter that is no sub-resource', { uri: '/?prefix=a&x-id=b&list-type=2' }],
    [
      'sub-resources, sorted',
      { uri: '/k?uploadId=u&partNumber=1', resource: '/examplebucket/k?partNumber=1&uploadId=u' },
    ],
    [
      'a sub-resource whose value is of no account',
      { uri: '/?uploads=', resource: '/examplebucket/?uploads' },
    ],
    [
      'overrides, decoded',
      {
        uri: '/k?response-content-type=text%2Fplain&response-content-disposition=a%20b+c',
        resource: '/examplebucket/k?response-content-disposition=a b c&response-content-type=text/plain',
      },
    ],
    ['one that is not of AWS', { uri: '/k?compose', resource: '/examplebucket/k?compose' }],
    ['another type and digest', { method: 'PUT', headers: { 'content-type': 'a/b', 'content-md5': 'x' } }],
    [
      'a header of the vendor under its other name',
      { headers: { 'x-std-meta-a': '1', 'x-amz-meta-b': '\u00e9' } },
    ],
    ['a digest of the body, which it needs not', { headers: { 'x-amz-content-sha256': EMPTY_SHA256 } }],
    ['x-amz-date alone', { headers: { 'x-amz-date': 'Fri, 24 May 2013 00:00:00 +0000' } }],
    ['x-amz-date in the basic form', { headers: { 'x-amz-date': '20130524T000000Z' } }],
    ['a date in another zone', { headers: { date: 'Fri, 24 May 2013 02:00:00 +0200' } }],
  ])('%s', async (_name, change) => {
    expect(await outcome(signedV2(change))).toBe('account');
  });

  test('accepts any case of the scheme, and repeated and folded headers', async () => {
    const sent = signedV2({ headers: { 'x-amz-meta-a': 'one,two  three' } });
    const headers = sent.headers.flatMap(([name, value]): [string, string][] => {
      if (name === 'authorization') return [[name, value.replace('AWS', 'aws')]];
      if (name !== 'x-amz-meta-a') return [[name, value]];
      return [
        ['X-Amz-Meta-A', 'one '],
        ['x-amz-meta-a', 'two  three'],
      ];
    });
    expect(await outcome({ ...sent, headers })).toBe('account');
  });

  test('authenticates the caller, without a seed for chunks', async () => {
    expect(await identify(signedV2())).toEqual({
      signedAtMs: DAY_MS,
      caller: {
        kind: 'account',
        principal: expect.objectContaining({ id: 'root' }),
        account: expect.objectContaining({ accountId: ACCOUNT }),
        accessKey: AWS.accessKey,
        signatureVersion: 'SigV2',
        authType: 'AuthHeader',
      },
    });
  });
});

test('s3-behaviour 15: the resource of a bucket ends in a slash although its path does not', async () => {
  const bucket = { hostBucket: null, uri: '/bucket?versioning' };
  expect(await outcome(signedV2({ ...bucket, resource: '/bucket/?versioning' }))).toBe('account');
  // What AWS itself computes.
  expect(await outcome(signedV2({ ...bucket, resource: '/bucket?versioning' }))).toBe('account');
  expect(await outcome(signedV2({ ...bucket, resource: '/bucket//?versioning' }))).toBe(
    '403 SignatureDoesNotMatch',
  );
  const object = { hostBucket: null, uri: '/bucket/key', resource: '/bucket/key/' };
  expect(await outcome(signedV2(object))).toBe('403 SignatureDoesNotMatch');
  const error = await identify(signedV2({ ...bucket, resource: '/wrong' })).catch(
    (caught: AppError) => caught,
  );
  expect(error).toMatchObject({
    fields: { StringToSign: expect.stringMatching(/\n\/bucket\/\?versioning$/) },
  });
});

describe('s3-behaviour 15: dates', () => {
  test.each([
    ['', '403 AccessDenied'],
    ['Bad Date', '403 AccessDenied'],
    ['Tue, 07 Jul 1950 21:53:04 GMT', '403 AccessDenied'],
    ['Wed, 31 Dec 1969 23:59:59 GMT', '403 AccessDenied'],
    ['Fri, 24 May 2013 00:00:00 CEST', '403 AccessDenied'],
    ['Tue, 07 Jul 2010 21:53:04 GMT', '403 RequestTimeTooSkewed'],
    ['Tue, 07 Jul 2030 21:53:04 GMT', '403 RequestTimeTooSkewed'],
    ['Tue, 07 Jul 9999 21:53:04 GMT', '403 RequestTimeTooSkewed'],
    ['Fri, 24 May 2013 00:15:00 GMT', 'account'],
    ['Thu, 23 May 2013 23:44:59 GMT', '403 RequestTimeTooSkewed'],
  ])('%j', async (date, expected) => {
    expect(await outcome(signedV2({ headers: { date } }))).toBe(expected);
    // x-amz-date overrides a Date that is good, and one that is not.
    expect(
      await outcome(signedV2({ headers: { 'x-amz-date': date, date: 'Fri, 24 May 2013 00:00:00 GMT' } })),
    ).toBe(expected);
    expect(await outcome(signedV2({ headers: { 'x-amz-date': date, date: 'nonsense' } }))).toBe(expected);
  });

  test('without a date', async () => {
    const sent = signedV2();
    const headers = sent.headers.filter(([name]) => name !== 'date');
    expect(await outcome({ ...sent, headers })).toBe('403 AccessDenied');
  });

  test('a date far off is quoted in the error as it was sent', async () => {
    const date = 'Tue, 07 Jul 2010 21:53:04 GMT';
    const error = await identify(signedV2({ headers: { date } })).catch((caught: AppError) => caught);
    expect(error).toMatchObject({ fields: { RequestTime: date, MaxAllowedSkewMilliseconds: 900_000 } });
  });
});

describe('refused signatures', () => {
  test.each([
    ['AWS', '400 InvalidArgument'],
    ['AWS ', '400 InvalidArgument'],
    ['AWS HAHAHA', '400 InvalidArgument'],
    ['AWS :signature', '400 InvalidArgument'],
    ['AWS key:', '400 InvalidArgument'],
    ['AWS key:a:b', '400 InvalidArgument'],
    ['AWS  key:signature', '400 InvalidArgument'],
    ['AWS nobody:signature', '403 InvalidAccessKeyId'],
    [`AWS ${AWS.accessKey}:signature`, '403 SignatureDoesNotMatch'],
    [`AWS ${AWS.accessKey}:\u00e9`, '403 SignatureDoesNotMatch'],
  ])('%s', async (authorization, expected) => {
    expect(await outcome(signedV2({}, { authorization }))).toBe(expected);
  });

  test('refuses any change, addition or removal on the way', async () => {
    const sent = signedV2({
      method: 'PUT',
      uri: '/k',
      resource: '/examplebucket/k',
      headers: { 'content-md5': 'x' },
    });
    const changed: Partial<Sent>[] = [
      { uri: '/K' },
      { uri: '/k/' },
      { uri: '/%6B' },
      { uri: '/k?acl' },
      { uri: '/k?append' },
      { uri: '/k?renameObject' },
      { uri: '/k?x-amz-acl=public-read' },
      { uri: '/k?X-Amz-Acl=public-read' },
      { uri: '/k?response-expires=0' },
      { hostBucket: 'another' },
      { method: 'DELETE' },
      { headers: [...sent.headers, ['x-amz-acl', 'public-read']] },
      { headers: [...sent.headers, ['x-std-acl', 'public-read']] },
      { headers: [...sent.headers, ['content-type', 'text/html']] },
      { headers: sent.headers.filter(([name]) => name !== 'content-md5') },
    ];
    for (const change of changed)
      expect(await outcome({ ...sent, ...change })).toBe('403 SignatureDoesNotMatch');
  });

  test('a wrong signature is answered with the expected string, as AWS does', async () => {
    const error = await identify(signedV2({ resource: '/wrong', headers: { 'x-amz-meta-a': 'é' } })).catch(
      (caught: AppError) => caught,
    );
    expect(error).toMatchObject({ code: 'SignatureDoesNotMatch' });
    expect((error as AppError).fields).toEqual({
      AWSAccessKeyId: AWS.accessKey,
      StringToSign: expect.stringMatching(
        /^GET\n\n\nFri, 24 May 2013 00:00:00 GMT\nx-amz-meta-a:.\n\/examplebucket\/$/,
      ),
      SignatureProvided: expect.stringMatching(/^[A-Za-z0-9+/]{27}=$/),
      StringToSignBytes: expect.stringMatching(/^47 45 54 0a 0a 0a 46 72 69 2c 20 /),
    });
  });

  test('refuses a session token, two signatures at once, and version 2 where it is disabled', async () => {
    expect(await outcome(signedV2({ headers: { 'x-amz-security-token': 'token' } }))).toBe(
      '400 InvalidToken',
    );
    expect(await outcome(signedV2({ uri: '/?AWSAccessKeyId=k' }))).toBe('400 InvalidArgument');
    expect(await outcome(signedV2({ uri: '/?X-Amz-Algorithm=AWS4-HMAC-SHA256' }))).toBe(
      '400 InvalidArgument',
    );
    const off = await identify(signedV2({ takesSigV2: false })).catch((caught: AppError) => caught);
    expect(off).toMatchObject({
      code: 'InvalidRequest',
      message: expect.stringContaining('AWS4-HMAC-SHA256'),
    });
  });

  test('a suspended account gets its own error only with the right secret', async () => {
    await metadata.execute('set-account', { accountId: ACCOUNT, changes: { state: 'suspended' } });
    expect(await outcome(signedV2())).toBe('403 AccountProblem');
    expect(await outcome(signedV2({ credentials: { ...AWS, secretKey: 'wrong' } }))).toBe(
      '403 SignatureDoesNotMatch',
    );
  });
});

test('any headers and any query get an answer, never a fault', async () => {
  const valid = signedV2().headers.find(([name]) => name === 'authorization')?.[1] ?? '';
  const texts = nearly(
    [valid, new Date(DAY_MS).toUTCString(), '20130524T000000Z'],
    ['AWS ', ':', ' ', '=', '\xff', '0'],
  );
  const names = fc.constantFrom(
    'Signature',
    'AWSAccessKeyId',
    'Expires',
    'x-amz-date',
    'uploads',
    'response-expires',
    '',
  );
  await fc.assert(
    fc.asyncProperty(
      texts,
      texts,
      texts,
      fc.array(fc.tuple(names, texts), { maxLength: 5 }),
      async (...drawn) => {
        const [authorization, date, meta, pairs] = drawn;
        const query = pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&');
        const headers = Object.entries({
          host: HOST,
          authorization: `AWS ${authorization}`,
          date,
          'x-amz-meta-a': meta,
        });
        for (const sent of [headers, headers.filter(([name]) => name !== 'authorization')]) {
          expect(await outcome({ uri: `/k?${query}`, headers: sent })).toMatch(
            /^(?:40[03] |501 |anonymous|account)/,
          );
        }
      },
    ),
    { numRuns: amountOf({ short: 40, long: 200 }) },
  );
});

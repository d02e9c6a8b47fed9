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
  signed,
} from '../../../tests/support/objects/signing-world.ts';
import { cpuMs } from '../../../tests/support/run/cpu-time.ts';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import { signHeaders } from '../../../tests/support/servers/s3-client.ts';
import { signHeadersV2 } from '../../../tests/support/servers/sigv2-client.ts';
import { textToBytes } from '../../base/text/uri.ts';

const { outcome, metadata } = await openSigningWorld();

describe("AWS's examples", () => {
  const credential = `Credential=${AWS.accessKey}/20130524/us-east-1/s3/aws4_request`;
  const date = ['x-amz-date', '20130524T000000Z'] as const;
  const emptyBody = ['x-amz-content-sha256', EMPTY_SHA256] as const;

  test.each<[string, Sent]>([
    [
      'GET of a range',
      {
        uri: '/test.txt',
        headers: [
          ['Host', HOST],
          [
            'Authorization',
            `AWS4-HMAC-SHA256 ${credential},SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41`,
          ],
          ['Range', 'bytes=0-9'],
          emptyBody,
          date,
        ],
      },
    ],
    [
      'PUT of an object',
      {
        method: 'PUT',
        uri: '/test$file.text',
        headers: [
          ['Host', HOST],
          ['Date', 'Fri, 24 May 2013 00:00:00 GMT'],
          [
            'Authorization',
            `AWS4-HMAC-SHA256 ${credential},SignedHeaders=date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class,Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd`,
          ],
          date,
          ['x-amz-storage-class', 'REDUCED_REDUNDANCY'],
          ['x-amz-content-sha256', '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072'],
        ],
      },
    ],
    [
      'GET ?lifecycle',
      {
        uri: '/?lifecycle',
        headers: [
          ['Host', HOST],
          [
            'Authorization',
            `AWS4-HMAC-SHA256 ${credential},SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543`,
          ],
          date,
          emptyBody,
        ],
      },
    ],
    [
      'a list',
      {
        uri: '/?max-keys=2&prefix=J',
        headers: [
          ['Host', HOST],
          [
            'Authorization',
            `AWS4-HMAC-SHA256 ${credential},SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7`,
          ],
          date,
          emptyBody,
        ],
      },
    ],
    [
      'a presigned GET',
      {
        uri: '/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404',
        headers: [['Host', HOST]],
      },
    ],
  ])('%s', async (_name, sent) => {
    expect(await outcome(sent)).toBe('account');
  });
});

describe('spellings that clients use', () => {
  test.each([
    '/',
    '//double//slash/../and/./dots',
    '/a%20b%2Bc%25d',
    '/a+b',
    "/unencoded!$&'()*,:;=@~key",
    '/%E6%97%A5%e6%9c%ac',
    '/?uploads',
    '/?prefix=a%20b&delimiter=%2F&a=&b',
    '/?prefix=a+b',
    '/?z=1&a=2&a=1&A=3&a%20=0',
    '/?x-id=GetObject&list-type=2',
    '/?marker=%7F',
  ])('%s', async (uri) => {
    expect(await outcome(signed({ uri }))).toBe('account');
  });

  test('repeated headers, runs of blanks, bytes that are no UTF-8, odd case and spacing', async () => {
    const headers = {
      host: HOST,
      'x-amz-content-sha256': EMPTY_SHA256,
      'x-amz-meta-a': 'one,two  three',
      'x-amz-meta-b': '\u00ff\u00e9',
    };
    const sent = signed({ headers });
    const spelled = sent.headers
      .filter(([name]) => name !== 'x-amz-meta-a')
      .map(([name, value]): [string, string] => [
        name.toUpperCase(),
        name === 'authorization' ? value.replaceAll(', ', ' , ') : value,
      ]);
    const repeated: [string, string][] = [
      ['X-Amz-Meta-A', 'one'],
      ['x-amz-meta-a', ' two \t three '],
    ];
    expect(await outcome({ ...sent, headers: [...spelled, ...repeated] })).toBe('account');
  });

  test.each(['eu-west-3', 'us-east', 'garage', 'x_y.z'])('the region %s', async (region) => {
    expect(await outcome(signed({ region }))).toBe('account');
  });

  test.each(['Fri, 24 May 2013 00:00:00 GMT', 'Fri, 24 May 2013 00:00:00 -0000', '20130524T000000Z'])(
    's3-behaviour 14: dated by Date alone: %s',
    async (date) => {
      const headers = { host: HOST, 'x-amz-content-sha256': EMPTY_SHA256, date };
      expect(await outcome(signed({ headers }))).toBe('account');
    },
  );

  test.each(['/a%2Fb', '/%e6%9c%ac', '/%61'])('%s, signed as it is sent', async (uri) => {
    expect(await outcome(signed({ uri, isPathVerbatim: true }))).toBe('account');
    expect(await outcome(signed({ uri: `${uri}x`, isPathVerbatim: true }, { host: 'inner' }))).toBe(
      '403 SignatureDoesNotMatch',
    );
  });

  test('an access key with slashes is read as a key, and is unknown', async () => {
    const credentials = { ...AWS, accessKey: 'a/b' };
    expect(await outcome(signed({ credentials }))).toBe('403 InvalidAccessKeyId');
  });

  test('x-std- is signed under its own name and means x-amz-', async () => {
    const headers = { host: HOST, 'x-std-content-sha256': EMPTY_SHA256, 'x-std-date': '20130524T000000Z' };
    const { headers: all } = signHeaders({
      method: 'GET',
      uri: '/',
      headers: { ...headers, date: 'unused' },
      credentials: AWS,
      nowMs: DAY_MS,
      signedNames: Object.keys(headers).sort(),
      payloadHash: EMPTY_SHA256,
    });
    const { date: _, ...sent } = all;
    expect(await outcome({ headers: Object.entries(sent) })).toBe('account');
  });

  test('a signature for another of our host names than the one that arrives', async () => {
    const sent = signed({ headers: { host: 'public.example', 'x-amz-content-sha256': EMPTY_SHA256 } });
    const headers = sent.headers.map(([name, value]): [string, string] => [
      name,
      name === 'host' ? 'inner:9000' : value,
    ]);
    expect(await outcome({ ...sent, headers, otherHosts: ['x', 'public.example'] })).toBe('account');
    expect(await outcome({ ...sent, headers, otherHosts: ['x'] })).toBe('403 SignatureDoesNotMatch');
  });
});

test('no credentials at all are an anonymous caller', async () => {
  expect(await outcome({ headers: [['host', HOST]] })).toBe('anonymous');
});

describe('accounts and keys', () => {
  test('a suspended account gets its own error only with the right secret', async () => {
    const accountId = ACCOUNT;
    expect(await outcome(signed())).toBe('account');
    await metadata.execute('set-account', { accountId, changes: { state: 'suspended' } });
    expect(await outcome(signed())).toBe('403 AccountProblem');
    expect(await outcome(signed({ credentials: { ...AWS, secretKey: 'wrong' } }))).toBe(
      '403 SignatureDoesNotMatch',
    );
    await metadata.execute('set-account', { accountId, changes: { state: 'paid' } });
    expect(await outcome(signed())).toBe('account');
  });

  test('another service has its own name in the credential scope', async () => {
    const sent = signed({ service: 'holdfast' });
    expect(await outcome({ ...sent, service: 'holdfast' })).toBe('account');
    expect(await outcome(sent)).toBe('400 AuthorizationHeaderMalformed');
  });
});

describe('any request gets an answer, never a fault', () => {
  const SCOPE = '20130524/us-east-1/s3/aws4_request';
  const piece = fc.constantFrom(
    'AWS4-HMAC-SHA256',
    'AWS',
    'aws',
    'Credential=',
    `${AWS.accessKey}/${SCOPE}`,
    'SignedHeaders=host;x-amz-date',
    'Signature=',
    AWS.accessKey,
    ...[' ', ',', ':', '/', ';', '=', '\t', '0', '%', '\u00a0', '\u00ff'],
    '20130524T000000Z',
    'Fri, 24 May 2013 00:00:00 GMT',
    '+0200',
  );
  const bytes = fc.string({
    unit: fc.integer({ min: 1, max: 255 }).map((code) => String.fromCharCode(code)),
  });
  const text = fc.oneof(
    fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join('')),
    bytes,
  );
  const name = fc.constantFrom(
    ...['Algorithm', 'Credential', 'Date', 'Expires', 'SignedHeaders', 'Signature'].map(
      (part) => `X-Amz-${part}`,
    ),
    ...['AWSAccessKeyId', 'Expires', 'Signature', 'x-amz-security-token', 'acl', 'versionId', 'prefix'],
  );
  const query = fc
    .array(fc.tuple(name, text), { maxLength: 9 })
    .map((pairs) => pairs.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join('&'));
  const header = fc.tuple(
    fc.constantFrom(
      'authorization',
      'date',
      'x-amz-date',
      'x-amz-content-sha256',
      'content-md5',
      'x-std-acl',
    ),
    text,
  );
  const ANSWER = /^(?:40[03] |501 |account$|anonymous$)/;

  test('of any headers and query', async () => {
    const hostBucket = fc.constantFrom('examplebucket', null);
    await fc.assert(
      fc.asyncProperty(
        fc.array(header, { maxLength: 5 }),
        query,
        hostBucket,
        async (headers, search, bucket) => {
          const sent: Sent = {
            uri: `/k?${search}`,
            hostBucket: bucket,
            headers: [['host', HOST], ...headers],
          };
          expect(await outcome(sent)).toMatch(ANSWER);
        },
      ),
      { numRuns: amountOf({ short: 100, long: 500 }) },
    );
  });

  test('with well-formed signature fields of any content', async () => {
    await fc.assert(
      fc.asyncProperty(text, text, text, async (one, two, date) => {
        const forms = [
          `AWS ${one}:${two}`,
          `AWS4-HMAC-SHA256 Credential=${one}/${SCOPE}, SignedHeaders=${two}, Signature=${date}`,
          `AWS4-HMAC-SHA256 Credential=${AWS.accessKey}/${one}, SignedHeaders=host, Signature=${two}`,
        ];
        for (const authorization of forms) {
          const headers: [string, string][] = [
            ['host', HOST],
            ['authorization', authorization],
            ['x-amz-content-sha256', EMPTY_SHA256],
            ['date', date],
          ];
          expect(await outcome({ headers })).toMatch(ANSWER);
          expect(
            await outcome({ headers: [...headers.slice(0, 3), ['date', 'Fri, 24 May 2013 00:00:00 GMT']] }),
          ).toMatch(ANSWER);
        }
      }),
    );
  });

  test('in bounded time', async () => {
    for (const unit of [
      ' ',
      ',',
      ':',
      ';',
      '=',
      '/',
      '&',
      '9',
      'x-amz-a;',
      'AWS ',
      'X-Amz-Date=',
      '%20',
      '+',
    ]) {
      const long = unit.repeat(Math.ceil(64_000 / unit.length));
      const startedMs = cpuMs();
      for (const prefix of [
        '',
        'AWS ',
        'AWS a:',
        `AWS4-HMAC-SHA256 Credential=${AWS.accessKey}/${SCOPE},Signature=0,SignedHeaders=`,
      ]) {
        const dated: [string, string][] = [['x-amz-date', '20130524T000000Z']];
        await outcome({ headers: [['host', HOST], ['authorization', prefix + long], ...dated] });
        await outcome({
          headers: [
            ['host', HOST],
            ['authorization', `${prefix}a:b`],
            ['x-amz-date', long],
          ],
        });
        await outcome({
          headers: [
            ['host', HOST],
            ['authorization', `AWS ${AWS.accessKey}:b`],
            ...dated,
            ['x-amz-meta-a', long],
          ],
        });
      }
      await outcome({ uri: `/?AWSAccessKeyId=a&Signature=b&Expires=${long}`, headers: [['host', HOST]] });
      await outcome({ uri: `/?${long}`, headers: [['host', HOST]] });
      expect(cpuMs() - startedMs, unit).toBeLessThan(2000);
    }
  });
});

test('whatever our own signers sign is accepted, byte for byte', async () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 8 }).filter((all) => !all.includes('\u0000'));
  const segment = text.map(encodeURIComponent);
  const path = fc.array(segment, { maxLength: 4 }).map((segments) => `/${segments.join('/')}`);
  const value = fc.string({ unit: fc.constantFrom('a', ' ', '\u00c3\u00a0', '\u00e9', ','), maxLength: 6 });
  const headerValue = value.map((all) => all.replace(/^ +| +$/g, '').replace(/ +/g, ' '));
  const version = fc.option(segment, { nil: undefined });
  await fc.assert(
    fc.asyncProperty(path, headerValue, version, async (key, meta, versionId) => {
      const search = versionId === undefined ? '' : `?prefix=x&versionId=${versionId}`;
      const headers = { host: HOST, 'x-amz-content-sha256': EMPTY_SHA256, 'x-amz-meta-a': meta };
      expect(await outcome(signed({ uri: key + search, headers }))).toBe('account');
      const resource =
        versionId === undefined ? '' : `?versionId=${textToBytes(decodeURIComponent(versionId))}`;
      const v2 = signHeadersV2({
        method: 'GET',
        resource: `/examplebucket${key}${resource}`,
        headers: { 'x-amz-meta-a': meta },
        credentials: AWS,
        nowMs: DAY_MS,
      });
      expect(await outcome({ uri: key + search, headers: Object.entries({ host: HOST, ...v2 }) })).toBe(
        'account',
      );
    }),
  );
});

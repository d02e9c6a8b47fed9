import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  AWS,
  DAY_MS,
  EMPTY_SHA256,
  HOST,
  openSigningWorld,
  signed,
} from '../../../tests/support/objects/signing-world.ts';
import { cutOut, keptBytesOf } from '../../../tests/support/run/kept-memory.ts';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import type { Credentials } from '../../../tests/support/servers/s3-client.ts';
import type { AppError } from '../../types/errors.ts';
import { readHeaderFields } from './sigv4-header.ts';

const { outcome, identify } = await openSigningWorld();

describe('refused header signatures', () => {
  const authorization = (value: string) => outcome(signed({}, { authorization: value }));
  const scope = '20130524/us-east-1/s3/aws4_request';

  test.each([
    ['', '403 AccessDenied'],
    ['Basic dXNlcjpwYXNz', '400 InvalidArgument'],
    ['AWS4-ECDSA-P256-SHA256 Credential=x', '400 InvalidArgument'],
    ['AWS4-HMAC-SHA256', '400 AuthorizationHeaderMalformed'],
    ['AWS4-HMAC-SHA256 nonsense', '400 AuthorizationHeaderMalformed'],
    [`AWS4-HMAC-SHA256 Credential=K/${scope}, SignedHeaders=host`, '400 AuthorizationHeaderMalformed'],
    [
      `AWS4-HMAC-SHA256 Credential=K/${scope}, SignedHeaders=, Signature=0`,
      '400 AuthorizationHeaderMalformed',
    ],
    ['AWS4-HMAC-SHA256 Credential=K, SignedHeaders=host, Signature=0', '400 AuthorizationHeaderMalformed'],
    [
      `AWS4-HMAC-SHA256 Credential=/${scope}, SignedHeaders=host, Signature=0`,
      '400 AuthorizationHeaderMalformed',
    ],
    [
      'AWS4-HMAC-SHA256 Credential=K/2013/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0',
      '400 AuthorizationHeaderMalformed',
    ],
    [
      'AWS4-HMAC-SHA256 Credential=K/20130524/us east/s3/aws4_request, SignedHeaders=host, Signature=0',
      '400 AuthorizationHeaderMalformed',
    ],
    [
      'AWS4-HMAC-SHA256 Credential=K/20130524/us-east-1/ec2/aws4_request, SignedHeaders=host, Signature=0',
      '400 AuthorizationHeaderMalformed',
    ],
    [
      'AWS4-HMAC-SHA256 Credential=K/20130524/us-east-1/s3/aws5_request, SignedHeaders=host, Signature=0',
      '400 AuthorizationHeaderMalformed',
    ],
    [
      'AWS4-HMAC-SHA256 Credential=K/20130525/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0',
      '400 AuthorizationHeaderMalformed',
    ],
  ])('%s', async (value, expected) => {
    expect(await authorization(value)).toBe(expected);
  });

  test.each([
    ['Bad Date', '403 AccessDenied'],
    ['', '403 AccessDenied'],
    ['Tue, 07 Jul 1950 00:00:00 GMT', '403 AccessDenied'],
    ['19500707T000000Z', '403 AccessDenied'],
    ['20130524T250000Z', '403 AccessDenied'],
  ])('the date %j', async (date, expected) => {
    expect(await outcome(signed({}, { 'x-amz-date': date }))).toBe(expected);
  });

  test('a clock that is off by more than 15 minutes', async () => {
    expect(await outcome(signed({ nowMs: DAY_MS + 15 * 60_000 }))).toBe('account');
    expect(await outcome(signed({ nowMs: DAY_MS + 15 * 60_000 + 1000 }))).toBe('403 RequestTimeTooSkewed');
    expect(await outcome(signed({ nowMs: DAY_MS - 16 * 60_000 }))).toBe('403 RequestTimeTooSkewed');
  });

  test('unsigned headers that must be signed', async () => {
    const error = await identify(
      signed({}, { 'x-amz-acl': 'private', 'X-Std-Meta-A': '1', 'x-svc-quiet': 'true' }),
    ).catch((caught: AppError) => caught);
    expect(error).toMatchObject({
      code: 'AccessDenied',
      fields: { HeadersNotSigned: 'x-amz-acl, x-std-meta-a' },
    });
    const md5 = await identify(signed({}, { 'content-md5': 'x' })).catch((caught: AppError) => caught);
    expect(md5).toMatchObject({ fields: { HeadersNotSigned: 'content-md5' } });
    const noHost = signed({ signedNames: ['x-amz-content-sha256', 'x-amz-date'] });
    expect(await outcome(noHost)).toBe('403 AccessDenied');
  });

  test("SignedHeaders in another order than AWS's, or with a name twice", async () => {
    const names = ['host', 'x-amz-content-sha256', 'x-amz-date'];
    expect(await outcome(signed({ signedNames: names }))).toBe('account');
    expect(await outcome(signed({ signedNames: names.toReversed() }))).toBe('403 SignatureDoesNotMatch');
    expect(await outcome(signed({ signedNames: ['host', ...names] }))).toBe('403 SignatureDoesNotMatch');
  });

  test('the digest of the body is signed even if it is not listed', async () => {
    expect(await outcome(signed({ signedNames: ['host', 'x-amz-date'] }))).toBe('account');
  });

  test('a missing or malformed digest', async () => {
    expect(await outcome(signed({ headers: { host: HOST } }))).toBe('400 InvalidRequest');
    for (const value of ['', 'abc', 'STREAMING-SOMETHING', `${EMPTY_SHA256}0`]) {
      expect(await outcome(signed({ headers: { host: HOST, 'x-amz-content-sha256': value } }))).toBe(
        '400 InvalidArgument',
      );
    }
    const ecdsa = { host: HOST, 'x-amz-content-sha256': 'STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD' };
    expect(await outcome(signed({ headers: ecdsa }))).toBe('501 NotImplemented');
  });

  test('an unknown key, a wrong secret, a session token, two forms at once', async () => {
    const sent = (credentials: Credentials) => outcome(signed({ credentials }));
    expect(await sent({ ...AWS, accessKey: 'AKIANOBODY' })).toBe('403 InvalidAccessKeyId');
    expect(await sent({ ...AWS, secretKey: 'wrong' })).toBe('403 SignatureDoesNotMatch');
    const headers = { host: HOST, 'x-amz-content-sha256': EMPTY_SHA256, 'x-amz-security-token': 'token' };
    expect(await outcome(signed({ headers }))).toBe('400 InvalidToken');
    expect(await outcome(signed({ uri: '/?X-Amz-Algorithm=AWS4-HMAC-SHA256' }))).toBe('400 InvalidArgument');
    expect(await outcome(signed({ uri: '/?Signature=x&AWSAccessKeyId=y' }))).toBe('400 InvalidArgument');
  });

  test('a wrong signature is answered with the expected string', async () => {
    const error = await identify(
      signed({ credentials: { ...AWS, secretKey: 'wrong' }, uri: '/k?a=b' }),
    ).catch((caught: AppError) => caught);
    expect(error).toMatchObject({
      code: 'SignatureDoesNotMatch',
      fields: {
        AWSAccessKeyId: AWS.accessKey,
        SignatureProvided: expect.stringMatching(/^[0-9a-f]{64}$/),
        StringToSign: expect.stringMatching(
          /^AWS4-HMAC-SHA256\n20130524T000000Z\n20130524\/us-east-1\/s3\/aws4_request\n[0-9a-f]{64}$/,
        ),
        CanonicalRequest: `GET\n/k\na=b\nhost:${HOST}\nx-amz-content-sha256:${EMPTY_SHA256}\nx-amz-date:20130524T000000Z\n\nhost;x-amz-content-sha256;x-amz-date\n${EMPTY_SHA256}`,
        StringToSignBytes: expect.stringMatching(/^41 57 53 34 /),
        CanonicalRequestBytes: expect.stringMatching(/^47 45 54 0a /),
      },
    });
  });

  test('a signature of a wrong length', async () => {
    const sent = signed();
    for (const signature of ['0', 'é', 'f'.repeat(63), 'F'.repeat(65)]) {
      const headers = sent.headers.map(([name, value]): [string, string] => [
        name,
        name === 'authorization' ? value.replace(/Signature=.*/, `Signature=${signature}`) : value,
      ]);
      expect(await outcome({ ...sent, headers })).toBe('403 SignatureDoesNotMatch');
    }
  });
});

test('a header is understood alike, whatever others have begun with the same text', () => {
  const claim = 'AWS4-HMAC-SHA256 Credential=K/20130524/us-east-1/s3/aws4_request, SignedHeaders=host';
  const [own, others] = ['a'.repeat(64), 'b'.repeat(64)];
  const signatureIn = (authorization: string) =>
    readHeaderFields({ authorization, 'x-amz-date': '20130524T000000Z' }, 's3').signature;
  for (const field of ['XSignature', 'X Signature']) {
    expect(signatureIn(`${claim}, Signature=${own}, ${field}=${own}`)).toBe(own);
    expect(signatureIn(`${claim}, Signature=${own}, ${field}=${others}`)).toBe(own);
  }
  for (const signature of [own, others])
    expect(signatureIn(`${claim},Signature=${signature}`)).toBe(signature);
});

test('nothing is kept of a header that is longer than any that fits', async () => {
  const MiB = 1024 * 1024;
  const claim =
    'AWS4-HMAC-SHA256 Credential=somebody-or-nobody/20130524/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-date';
  const keptBytes = await keptBytesOf(() => {
    const authorization = cutOut(`${claim}, Signature=${'a'.repeat(16 * MiB)}`, 0);
    readHeaderFields({ authorization, 'x-amz-date': '20130524T000000Z' }, 's3');
  });
  expect(keptBytes).toBeLessThan(8 * MiB);
});

test('any headers and any query get an answer, never a fault', async () => {
  const piece = fc.constantFrom(
    'AWS4-HMAC-SHA256',
    'AWS ',
    ' ',
    ',',
    '=',
    '/',
    ':',
    'Credential',
    'SignedHeaders',
    'Signature',
    `${AWS.accessKey}/20130524/us-east-1/s3/aws4_request`,
    'host;x-amz-date;x-amz-content-sha256',
    '20130524T000000Z',
    'Fri, 24 May 2013 00:00:00 GMT',
    '\u00ff',
    '0'.repeat(64),
  );
  const text = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(''));
  const parameter = fc.constantFrom(
    'Algorithm',
    'Credential',
    'Date',
    'Expires',
    'SignedHeaders',
    'Signature',
  );
  const query = fc.array(fc.tuple(parameter, text), { maxLength: 7 });
  await fc.assert(
    fc.asyncProperty(text, text, text, query, async (authorization, date, digest, parameters) => {
      const pairs = parameters.map(([name, value]) => `X-Amz-${name}=${encodeURIComponent(value)}`);
      const headers = [
        ['host', HOST],
        ['authorization', authorization],
        ['x-amz-date', date],
        ['x-amz-content-sha256', digest === '' ? EMPTY_SHA256 : digest],
      ] as const;
      for (const sent of [headers, headers.filter(([name]) => name !== 'authorization')]) {
        expect(await outcome({ uri: `/?${pairs.join('&')}`, headers: sent })).toMatch(
          /^(?:40[03] |501 |anonymous)/,
        );
      }
    }),
    { numRuns: amountOf({ short: 40, long: 200 }) },
  );
});

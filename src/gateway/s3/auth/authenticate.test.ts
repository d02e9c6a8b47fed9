import { describe, expect, test } from 'vitest';
import { openMetadata } from '../../../../tests/support/metadata-shards.ts';
import {
  type Credentials,
  presign,
  type SigningOptions,
  signHeaders,
} from '../../../../tests/support/s3-client.ts';
import { createManualClock } from '../../../../tests/support/simulated.ts';
import { createKeyring } from '../../../adapters/memory-keyring.ts';
import { utf8 } from '../../../lib/bytes.ts';
import { AppError } from '../../../model/errors.ts';
import type { AccountId } from '../../../model/names.ts';
import { readHeaders } from '../../request-headers.ts';
import { parseTarget } from '../target.ts';
import { type Authentication, authenticate } from './authenticate.ts';
import { createIdentities } from './identities.ts';
import { readPayload } from './payload-form.ts';

// The credentials and the day of AWS's own examples ("Authenticating requests: using the authorization header").
const AWS: Credentials = {
  accessKey: 'AKIAIOSFODNN7EXAMPLE',
  secretKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
};
const DAY_MS = Date.parse('2013-05-24T00:00:00Z');
const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const HOST = 'examplebucket.s3.amazonaws.com';

const clock = createManualClock(DAY_MS);
const metadata = await openMetadata();
const keyring = createKeyring();
const identities = createIdentities({ metadata: metadata.shards, keyring, clock });
await metadata.execute('create-account', {
  account: {
    accountId: '000000000007' as AccountId,
    name: 'example',
    email: 'e@example.com',
    canonicalId: '7'.repeat(64),
    state: 'paid',
    bucketsMax: 1,
    isRoot: false,
  },
  accessKey: { accessKey: AWS.accessKey, sealedSecret: keyring.wrap(utf8(AWS.secretKey)) },
});

interface Sent {
  method?: string;
  uri?: string;
  /** In the order and spelling sent. */
  headers: readonly (readonly [string, string])[];
  otherHosts?: readonly string[];
  service?: string;
}

function identify(sent: Sent): Promise<Authentication> {
  const { method = 'GET', uri = '/', service = 's3' } = sent;
  const headers = readHeaders(sent.headers.flat());
  const { pathBytes, query } = parseTarget(uri, 'examplebucket');
  return (async () => {
    const { hash: payloadHash } = readPayload(headers.values, query.parameters);
    const request = {
      method,
      pathBytes,
      query,
      headers,
      payloadHash,
      otherHosts: () => sent.otherHosts ?? [],
    };
    return authenticate({ identities, clock, service }, request);
  })();
}

async function outcome(sent: Sent): Promise<string> {
  try {
    return (await identify(sent)).caller.kind;
  } catch (error) {
    if (error instanceof AppError) return `${error.status} ${error.code}`;
    throw error;
  }
}

/** A request as our own client signs it, then changed. */
function signed(change: Partial<SigningOptions> = {}, extra: Readonly<Record<string, string>> = {}): Sent {
  const options = {
    method: 'GET',
    uri: '/',
    headers: { host: HOST, 'x-amz-content-sha256': EMPTY_SHA256 },
    credentials: AWS,
    nowMs: DAY_MS,
    ...change,
  };
  const { headers } = signHeaders(options);
  return { method: options.method, uri: options.uri, headers: Object.entries({ ...headers, ...extra }) };
}

function presigned(expiresSeconds: number | string, change: Partial<SigningOptions> = {}): Sent {
  const headers = change.headers ?? { host: HOST };
  const uri = presign({
    method: 'GET',
    uri: '/test.txt',
    credentials: AWS,
    nowMs: DAY_MS,
    ...change,
    headers,
    expiresSeconds,
  });
  return { method: change.method ?? 'GET', uri, headers: Object.entries(headers) };
}

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

describe('what clients send, in every spelling', () => {
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
    'dated by Date alone: %s',
    async (date) => {
      const headers = { host: HOST, 'x-amz-content-sha256': EMPTY_SHA256, date };
      expect(await outcome(signed({ headers }))).toBe('account');
    },
  );

  test('an access key with slashes cannot be ours, but is read as one', async () => {
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

  test('another host than the one that arrives, where it is one of ours', async () => {
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

describe('header signatures that are refused', () => {
  const authorization = (value: string) => outcome(signed({}, { authorization: value }));
  const scope = '20130524/us-east-1/s3/aws4_request';

  test.each([
    ['', '403 AccessDenied'],
    ['Basic dXNlcjpwYXNz', '400 InvalidArgument'],
    ['AWS HAHAHA', '400 InvalidArgument'],
    ['AWS key:signature', '400 InvalidRequest'],
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

  test('headers that must be signed and are not', async () => {
    const error = await identify(
      signed({}, { 'x-amz-acl': 'private', 'X-Std-Meta-A': '1', 'x-svc-quiet': 'true' }),
    ).catch((caught: AppError) => caught);
    expect(error).toMatchObject({
      code: 'AccessDenied',
      fields: { HeadersNotSigned: 'x-amz-acl, x-std-meta-a' },
    });
    const noHost = signed({ signedNames: ['x-amz-content-sha256', 'x-amz-date'] });
    expect(await outcome(noHost)).toBe('403 AccessDenied');
  });

  test('no digest, or one that is none', async () => {
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

  test('a wrong signature is told what was expected', async () => {
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

  test('a digest of another length than a signature', async () => {
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

describe('presigned URLs', () => {
  test.each([
    [1, 'account'],
    [604_800, 'account'],
    [0, '403 AccessDenied'],
    [-1, '403 AccessDenied'],
    [604_801, '403 AccessDenied'],
    ['soon', '400 AuthorizationQueryParametersError'],
    ['', '400 AuthorizationQueryParametersError'],
  ])('good for %j seconds', async (seconds, expected) => {
    expect(await outcome(presigned(seconds))).toBe(expected);
  });

  test('in the past and in the future', async () => {
    expect(await outcome(presigned(60, { nowMs: DAY_MS - 60_000 }))).toBe('account');
    expect(await outcome(presigned(60, { nowMs: DAY_MS - 61_000 }))).toBe('403 AccessDenied');
    expect(await outcome(presigned(60, { nowMs: DAY_MS + 14 * 60_000 }))).toBe('account');
    expect(await outcome(presigned(60, { nowMs: DAY_MS + 16 * 60_000 }))).toBe('403 AccessDenied');
  });

  test('with headers and parameters of its own', async () => {
    const headers = { host: HOST, 'content-type': 'text/plain', 'x-amz-meta-a': 'b' };
    expect(await outcome(presigned(60, { method: 'PUT', headers, uri: '/k?partNumber=1&uploadId=u' }))).toBe(
      'account',
    );
    const sent = presigned(60, { method: 'PUT', headers });
    const changed = sent.headers.map(([name, value]): [string, string] => [
      name,
      name === 'x-amz-meta-a' ? 'c' : value,
    ]);
    expect(await outcome({ ...sent, headers: changed })).toBe('403 SignatureDoesNotMatch');
    expect(await outcome({ ...sent, headers: [...sent.headers, ['x-amz-acl', 'private']] })).toBe(
      '403 AccessDenied',
    );
    expect(await outcome({ ...sent, uri: `${sent.uri}&extra=1` })).toBe('403 SignatureDoesNotMatch');
    expect(await outcome({ ...sent, method: 'GET' })).toBe('403 SignatureDoesNotMatch');
  });

  test.each([
    [
      'X-Amz-Algorithm=AWS4-HMAC-SHA256',
      'X-Amz-Algorithm=AWS4-HMAC-SHA1',
      '400 AuthorizationQueryParametersError',
    ],
    [/X-Amz-Credential=[^&]*&/, '', '400 AuthorizationQueryParametersError'],
    [/X-Amz-Credential=[^&]*/, 'X-Amz-Credential=key', '400 AuthorizationQueryParametersError'],
    [/X-Amz-Date=[^&]*/, 'X-Amz-Date=yesterday', '400 AuthorizationQueryParametersError'],
    [/X-Amz-Date=[^&]*/, 'X-Amz-Date=20130525T000000Z', '400 AuthorizationQueryParametersError'],
    [/X-Amz-SignedHeaders=[^&]*/, 'X-Amz-SignedHeaders=', '403 AccessDenied'],
    [/X-Amz-Signature=.*/, 'X-Amz-Signature=0', '403 SignatureDoesNotMatch'],
    [/X-Amz-Signature=.*/, 'X-Amz-Security-Token=t&X-Amz-Signature=0', '400 InvalidToken'],
    [/X-Amz-Algorithm=.*/, 'AWSAccessKeyId=k&Expires=1&Signature=s', '400 InvalidRequest'],
  ])('changed: %s to %s', async (pattern, replacement, expected) => {
    const sent = presigned(60);
    expect(await outcome({ ...sent, uri: sent.uri?.replace(pattern, replacement) ?? '' })).toBe(expected);
  });
});

describe('accounts and keys', () => {
  test('a suspended account is told so, but only to who knows its secret', async () => {
    const accountId = '000000000007' as AccountId;
    await metadata.execute('set-account', { accountId, changes: { state: 'suspended' } });
    expect(await outcome(signed())).toBe('account');
    clock.advance(1001);
    const now = { nowMs: DAY_MS + 1000 };
    expect(await outcome(signed(now))).toBe('403 AccountProblem');
    expect(await outcome(signed({ ...now, credentials: { ...AWS, secretKey: 'wrong' } }))).toBe(
      '403 SignatureDoesNotMatch',
    );
    await metadata.execute('set-account', { accountId, changes: { state: 'paid' } });
    expect(await outcome(signed(now))).toBe('403 AccountProblem');
    identities.forget();
    expect(await outcome(signed(now))).toBe('account');
  });

  test('another service has its own name in the scope', async () => {
    const sent = signed({ service: 'holdfast' });
    expect(await outcome({ ...sent, service: 'holdfast' })).toBe('account');
    expect(await outcome(sent)).toBe('400 AuthorizationHeaderMalformed');
  });
});

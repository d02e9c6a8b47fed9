// POST of an object by a form: what its fields do, who may send it, what its policy allows, and every refusal, which leaves the
// key as it was.
import { createHash, randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { keyAnswer, keyHeaders } from '../support/servers/customer-keys.ts';
import {
  type Fields,
  FORM_TYPE,
  type Form,
  formBody,
  policyOf,
  postBody,
  postForm,
  signerFields,
  signForm,
  signPolicyV2,
  signPolicyV4,
} from '../support/servers/forms.ts';
import { ownServerTest } from '../support/servers/own-server-test.ts';
import { pathOf, send, sendBare } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, fieldsOf, useApi, xmlOf } from '../support/servers/s3-api.ts';
import { taggingXml, tagsOf } from '../support/servers/tagging.ts';

const MiB = 1024 * 1024;
const api = useApi({ settings: { domain: 's3.test', 'memory.bodyBuffer': '64MiB' } });
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
});

const md5 = (text: Buffer | string) => createHash('md5').update(text).digest('hex');
const get = (key: string) => api.send({ method: 'GET', path: pathOf(bucket, key) });

/** Signs by version 4, each field with a condition that it is as it is. */
const post = (fields: Fields, form: Omit<Form, 'fields'> = {}, conditions?: readonly unknown[]) =>
  postForm(api.server, bucket, { fields: signForm(api.server, bucket, fields, conditions), ...form });

describe('what is stored, and the answer', () => {
  test.each([0, 1, 65_535, 65_537, MiB + 1])('a file of %i bytes', async (sizeBytes) => {
    const file = randomBytes(sizeBytes);
    const answer = await post([['key', `sizes/${sizeBytes}`]], { file });
    expectStatus(answer, 204);
    expect(answer.body).toHaveLength(0);
    expect(answer.headers).not.toHaveProperty('content-type');
    expect(answer.headers.etag).toBe(`"${md5(file)}"`);
    expect(answer.headers.location).toBe(`${api.server.endpoint}/${bucket}/sizes%2F${sizeBytes}`);
    expect((await get(`sizes/${sizeBytes}`)).body.equals(file)).toBe(true);
  });

  test('the fields that an object keeps, in any case; other fields, and the type of the part, change nothing', async () => {
    const kept: Fields = [
      ['Cache-Control', 'no-cache'],
      ['content-type', 'text/plain'],
      ['Content-Disposition', 'attachment; filename="ä"'],
      ['CONTENT-ENCODING', 'gzip, aws-chunked'],
      ['Expires', 'Thu, 01 Dec 2030 16:00:00 GMT'],
      ['X-Amz-Meta-Text', 'ä€'],
      ['x-amz-meta-none', ''],
      ['x-amz-storage-class', 'STANDARD_IA'],
      ['x-amz-server-side-encryption', 'AES256'],
      ['acl', 'private'],
    ];
    expectStatus(await post([['kEy', 'kept'], ...kept, ['submit', 'Upload'], ['x-ignore-me', 'x']]), 204);
    const bytes = (text: string) => Buffer.from(text).toString('latin1');
    expect((await get('kept')).headers).toMatchObject({
      'cache-control': 'no-cache',
      'content-type': 'text/plain',
      'content-disposition': bytes('attachment; filename="ä"'),
      'content-encoding': 'gzip',
      expires: 'Thu, 01 Dec 2030 16:00:00 GMT',
      'x-amz-meta-text': bytes('ä€'),
      'x-amz-meta-none': '',
    });
    await post([['key', 'untyped']]);
    expect((await get('untyped')).headers['content-type']).toBe('binary/octet-stream');
  });

  test.each<[string, string | null, string]>([
    ['in/${filename}', 'a file é.txt', 'in/a file é.txt'],
    ['${filename}', 'C:\\dir\\photo.jpg', 'photo.jpg'],
    ['a-${filename}-${filename}', 'x', 'a-x-x'],
    ['in/${filename}', '', 'in/'],
    ['in/${filename}', null, 'in/${filename}'],
    ['\\$foo.txt', 'x', '\\$foo.txt'],
  ])('the key %s of a file called %j is %s', async (key, fileName, stored) => {
    const answer = await post([['key', key]], { fileName, file: stored }, [['starts-with', '$key', '']]);
    expectStatus(answer, 204);
    expect((await get(stored)).body.toString()).toBe(stored);
  });

  test('a policy is held against the key with the name of the file in it', async () => {
    const named: Fields = [['key', 'user/${filename}']];
    expectStatus(await post(named, { fileName: 'x' }, [{ key: 'user/x' }]), 204);
    expectError(await post(named, { fileName: 'x' }, [{ key: 'user/${filename}' }]), {
      status: 403,
      code: 'AccessDenied',
    });
  });

  test('s3-behaviour 17: tagging applies as the header would', async () => {
    const xml = (value: string) =>
      `<Tagging><TagSet><Tag><Key>a b</Key><Value>${value}</Value></Tag></TagSet></Tagging>`;
    expectStatus(
      await post([
        ['key', 'tagged'],
        ['tagging', xml('é=')],
      ]),
      204,
    );
    expect(await tagsOf(api, { bucket, key: 'tagged' })).toEqual([['a b', 'é=']]);
    const refused = { status: 400, code: 'InvalidTag' } as const;
    expectError(
      await post([
        ['key', 'tagged'],
        ['tagging', xml('x'.repeat(257))],
      ]),
      refused,
    );
    const noXml = { status: 400, code: 'MalformedXML' } as const;
    expectError(
      await post([
        ['key', 'tagged'],
        ['tagging', 'a=b'],
      ]),
      noXml,
    );
  });

  test('s3-behaviour 17: digests apply as headers would, and need no condition', async () => {
    const crc = ['x-amz-checksum-crc32', 'poTHxg=='] as const;
    const file = '0123456789';
    const fields = signForm(api.server, bucket, [
      ['key', 'digests'],
      ['Content-MD5', Buffer.from(md5(file), 'hex').toString('base64')],
    ]);
    const answer = await postForm(api.server, bucket, { fields: [...fields, crc], file });
    expectStatus(answer, 204);
    expect(answer.headers).toMatchObject({
      'x-amz-checksum-crc32': crc[1],
      'x-amz-checksum-type': 'FULL_OBJECT',
    });
    const bad = { status: 400, code: 'BadDigest' } as const;
    expectError(await postForm(api.server, bucket, { fields: [...fields, [crc[0], 'AAAAAA==']], file }), bad);
    expectError(
      await postForm(api.server, bucket, { fields: [...fields, [crc[0], 'sailorjerry']], file }),
      bad,
    );
    expectError(await postForm(api.server, bucket, { fields, file: 'other' }), bad);
    const two = [...fields, crc, ['x-amz-checksum-sha1', 'AAAAAAAAAAAAAAAAAAAAAAAAAAA='] as const];
    expectError(await postForm(api.server, bucket, { fields: two, file }), {
      status: 400,
      code: 'InvalidRequest',
    });
    expect((await get('digests')).body.toString()).toBe(file);
  });

  test('an object that is encrypted with a customer’s key', async () => {
    const key = randomBytes(32);
    const answer = await post([['key', 'sealed'], ...Object.entries(keyHeaders(key))], { file: 'secret' });
    expectStatus(answer, 204);
    expect(answer.headers).toMatchObject(keyAnswer(key));
    expectError(await get('sealed'), { status: 400, code: 'InvalidRequest' });
    const opened = await api.send({
      method: 'GET',
      path: pathOf(bucket, 'sealed'),
      headers: keyHeaders(key),
    });
    expect(opened.body.toString()).toBe('secret');
    const wrong = Object.entries({
      ...keyHeaders(key),
      'x-amz-server-side-encryption-customer-algorithm': 'AES',
    });
    expectError(await post([['key', 'sealed'], ...wrong]), {
      status: 400,
      code: 'InvalidEncryptionAlgorithmError',
    });
  });

  test('conditions of writes', async () => {
    await post([['key', 'once']], { file: 'first' });
    const failed = { status: 412, code: 'PreconditionFailed' } as const;
    expectError(
      await post(
        [
          ['key', 'once'],
          ['if-none-match', '*'],
        ],
        { file: 'second' },
      ),
      failed,
    );
    expect((await get('once')).body.toString()).toBe('first');
    const body = formBody({ fields: signForm(api.server, bucket, [['key', 'once']]) });
    expectError(await postBody(api.server, bucket, body, { 'if-none-match': '*' }), failed);
    // Who has the form, and not the right to read, would try one ETag after the other.
    for (const name of ['if-match', 'if-none-match'])
      expectError(await postBody(api.server, bucket, body, { [name]: '"x"' }), {
        status: 403,
        code: 'AccessDenied',
        HeadersNotSigned: name,
      });
    // A header beside the field would widen what was signed.
    const signed = formBody({
      fields: signForm(api.server, bucket, [
        ['key', 'once'],
        ['if-match', '"other"'],
      ]),
    });
    expectError(await postBody(api.server, bucket, signed, { 'if-match': '*' }), {
      status: 400,
      code: 'InvalidArgument',
      ArgumentName: 'if-match',
    });
    const missing = { status: 404, code: 'NoSuchKey' } as const;
    expectError(
      await post([
        ['key', 'not there'],
        ['If-Match', '"x"'],
      ]),
      missing,
    );
  });

  test.each(['s3.test', 's3.test:8080'])('a bucket in the host BUCKET.%s', async (domain) => {
    const fields = signForm(api.server, bucket, [
      ['key', 'by/host'],
      ['success_action_status', '201'],
    ]);
    const body = formBody({ fields });
    const host = `${bucket}.${domain}`;
    const headers = { host, 'content-type': FORM_TYPE, 'content-length': String(body.length) };
    const answer = await sendBare(api.server, { method: 'POST', path: '/', headers, body });
    expectStatus(answer, 201);
    expect(fieldsOf(answer).Location).toBe(`http://${host}/by%2Fhost`);
  });

  ownServerTest('the log names the operation and who has signed', async () => {
    const answer = await post([['key', 'logged']]);
    const line = api.server.logs().find(({ requestId }) => requestId === answer.headers['x-amz-request-id']);
    expect(line).toMatchObject({
      logName: 'REST.POST.OBJECT',
      signatureVersion: 'SigV4',
      key: 'logged',
      bucket,
    });
    expect(line?.account).toBeDefined();
  });
});

describe('s3-behaviour 18: how a form is answered', () => {
  test('success_action_status of 200 and 204: nothing in the body', async () => {
    for (const status of [200, 204]) {
      const answer = await post([
        ['key', 'status'],
        ['success_action_status', String(status)],
      ]);
      expectStatus(answer, status);
      expect(answer.body).toHaveLength(0);
    }
  });

  test('201: a document with Location, Bucket, Key, ETag', async () => {
    const answer = await post(
      [
        ['key', 'a/é&.txt'],
        ['success_action_status', '201'],
      ],
      { file: 'x' },
    );
    expectStatus(answer, 201);
    expect(answer.headers['content-type']).toBe('application/xml');
    expect(xmlOf(answer).name).toBe('PostResponse');
    const Location = `${api.server.endpoint}/${bucket}/a%2F%C3%A9%26.txt`;
    expect(fieldsOf(answer)).toEqual({ Location, Bucket: bucket, Key: 'a/é&.txt', ETag: `"${md5('x')}"` });
    expect(answer.headers.location).toBe(Location);
  });

  test.each(['404', '', '2xx'])('any other value means 204: "%s"', async (status) => {
    const answer = await post([
      ['key', 'status'],
      ['success_action_status', status],
    ]);
    expectStatus(answer, 204);
    expect(answer.body).toHaveLength(0);
  });

  test.each(['success_action_redirect', 'redirect'])(
    '%s: 303 with bucket, key and etag appended',
    async (name) => {
      const answer = await post(
        [
          ['key', 'a/b c'],
          [name, 'http://example.test/done?x=1'],
          ['success_action_status', '201'],
        ],
        { file: 'x' },
      );
      expectStatus(answer, 303);
      expect(answer.body).toHaveLength(0);
      expect(answer.headers.location).toBe(
        `http://example.test/done?x=1&bucket=${bucket}&key=a%2Fb+c&etag=%22${md5('x')}%22`,
      );
    },
  );

  test('what is no URL is passed over', async () => {
    expectStatus(
      await post([
        ['key', 'x'],
        ['success_action_redirect', '/relative'],
      ]),
      204,
    );
  });
});

describe('who has signed', () => {
  const policy = () => policyOf([{ bucket }, ['starts-with', '$key', '']]);

  test('version 2', async () => {
    const fields: Fields = [['key', 'v2'], ...signPolicyV2(api.server, policy())];
    expectStatus(await postForm(api.server, bucket, { fields }), 204);
    expectStatus(await get('v2'), 200);
  });

  test('names of fields in any case', async () => {
    for (const fields of [
      signPolicyV2(api.server, policy()),
      signForm(api.server, bucket, [], [['starts-with', '$key', '']]),
    ]) {
      const shouted = fields.map(([name, value]) => [name.toUpperCase(), value] as const);
      expectStatus(await postForm(api.server, bucket, { fields: [['Key', 'x'], ...shouted] }), 204);
    }
  });

  test('s3-behaviour 19: a wrong signature, and another policy than was signed', async () => {
    const wrong = { status: 403, code: 'SignatureDoesNotMatch' } as const;
    const signer = signerFields(api.server);
    for (const fields of [signPolicyV2(api.server, policy()), signPolicyV4(api.server, policy(), signer)]) {
      const swapped = fields.map(
        ([name, value]) =>
          [name, name.endsWith('signature') ? [...value].reverse().join('') : value] as const,
      );
      const answer = await postForm(api.server, bucket, { fields: [['key', 'wrong'], ...swapped] });
      expectError(answer, { ...wrong, StringToSign: fields.find(([name]) => name === 'policy')?.[1] ?? '' });
      const other = fields.map(
        ([name, value]) => [name, name === 'policy' ? value.slice(0, -2) : value] as const,
      );
      expectError(await postForm(api.server, bucket, { fields: [['key', 'wrong'], ...other] }), wrong);
    }
    expectStatus(await get('wrong'), 404);
  });

  test('a policy that tells a token is not repeated', async () => {
    const told = policyOf([{ bucket }, { 'x-amz-security-token': 'a-secret' }]);
    const fields: Fields = [['key', 'x'], ...signPolicyV2({ ...api.server, secretKey: 'other' }, told)];
    const answer = await postForm(api.server, bucket, { fields });
    expectError(answer, { status: 403, code: 'SignatureDoesNotMatch', StringToSign: '***' });
  });

  test('an unknown access key', async () => {
    const fields: Fields = [['key', 'x'], ...signPolicyV2({ ...api.server, accessKey: 'foo' }, policy())];
    const expected = { status: 403, code: 'InvalidAccessKeyId', AWSAccessKeyId: 'foo' } as const;
    expectError(await postForm(api.server, bucket, { fields }), expected);
  });

  test('another account without any right', async () => {
    const other = await api.makeAccount();
    const fields: Fields = [['key', 'x'], ...signPolicyV2(other, policy())];
    expectError(await postForm(other, bucket, { fields }), { status: 403, code: 'AccessDenied' });
  });

  test('an account that is suspended, or expects another owner of the bucket', async () => {
    const fields = signForm(api.server, bucket, [['key', 'x']]);
    const owner = { 'x-amz-expected-bucket-owner': '000000000000' };
    const answer = await postBody(api.server, bucket, formBody({ fields }), owner);
    expectError(answer, { status: 403, code: 'AccessDenied' });
  });

  test('fields of a signature that are missing are named as AWS names them', async () => {
    const missing = (name: string) => ({
      status: 400,
      code: 'InvalidArgument' as const,
      Message: `Bucket POST must contain a field named '${name}'.  If it is specified, please check the order of the fields.`,
      ArgumentName: name,
    });
    const names = ['X-Amz-Algorithm', 'X-Amz-Credential', 'X-Amz-Date', 'X-Amz-Signature', 'policy', 'key'];
    const all = signForm(api.server, bucket, [['key', 'x']]);
    for (const name of names) {
      const fields = all.filter(([given]) => given !== name.toLowerCase());
      expectError(await postForm(api.server, bucket, { fields }), missing(name));
    }
    const v2: Fields = [['key', 'x'], ...signPolicyV2(api.server, policy())];
    for (const name of ['AWSAccessKeyId', 'Signature']) {
      const fields = v2.filter(([given]) => given.toLowerCase() !== name.toLowerCase());
      expectError(await postForm(api.server, bucket, { fields }), missing(name));
    }
  });

  test.each<[string, Record<string, string>, Record<string, string>]>([
    ['another algorithm', { 'x-amz-algorithm': 'x' }, { ArgumentName: 'X-Amz-Algorithm' }],
    [
      'a date that is none',
      { 'x-amz-date': '2030' },
      { Message: 'X-Amz-Date must be formated via ISO8601 Long format' },
    ],
    ['a credential that is none', { 'x-amz-credential': 'x' }, { ArgumentName: 'X-Amz-Credential' }],
    [
      'a credential of another service',
      { 'x-amz-credential': 'k/20300101/us-east-1/iam/aws4_request' },
      { ArgumentName: 'X-Amz-Credential' },
    ],
    ['both versions', { signature: 'x', AWSAccessKeyId: 'x' }, { ArgumentName: 'AWSAccessKeyId' }],
  ])('%s is InvalidArgument', async (_what, changed, told) => {
    const fields = new Map([...signForm(api.server, bucket, [['key', 'x']]), ...Object.entries(changed)]);
    const answer = await postForm(api.server, bucket, { fields: [...fields] });
    expectError(answer, { status: 400, code: 'InvalidArgument', ...told });
  });

  test('a token that is none of ours', async () => {
    const answer = await post([
      ['key', 'x'],
      ['x-amz-security-token', 'x'],
    ]);
    expectError(answer, { status: 400, code: 'InvalidToken' });
  });

  test('a form that is signed as other requests are is refused before it is read', async () => {
    const body = formBody({ fields: [['key', 'x']] });
    const headers = { 'content-type': FORM_TYPE };
    const refused = { status: 400, code: 'InvalidArgument', ArgumentName: 'Authorization' } as const;
    expectError(await send(api.server, { method: 'POST', path: `/${bucket}`, headers, body }), refused);
    const presigned = `${bucket}?AWSAccessKeyId=x&Signature=x&Expires=1`;
    expectError(await postBody(api.server, presigned, body), refused);
  });

  test('s3-behaviour 17: anybody may post without a policy where the bucket is publicly writable, and all fields apply', async () => {
    const owner = await api.makeAccount();
    const open = await api.makeBucket(owner);
    const asOwner = (method: string, path: string, headers: Record<string, string> = {}) =>
      api.send({ method, path, headers }, owner);
    expectStatus(await asOwner('PUT', `/${open}?acl`, { 'x-amz-acl': 'public-read-write' }), 200);
    const fields: Fields = [
      ['key', 'foo.txt'],
      ['acl', 'public-read'],
      ['Content-Type', 'text/plain'],
      ['tagging', taggingXml([['0', '0']]).toString()],
      ['x-amz-checksum-crc32', 'poTHxg=='],
      ['x-amz-meta-a', 'b'],
    ];
    expectStatus(await postForm(api.server, open, { fields, file: '0123456789' }), 204);
    const read = await api.sendAnonymous({ method: 'GET', path: `/${open}/foo.txt` });
    expectStatus(read, 200);
    expect(read.body.toString()).toBe('0123456789');
    expect(read.headers).toMatchObject({ 'content-type': 'text/plain', 'x-amz-meta-a': 'b' });
    const sized: Fields = [
      ['key', 'bad'],
      ['x-amz-checksum-crc32', 'AAAAAA=='],
    ];
    expectError(await postForm(api.server, open, { fields: sized }), { status: 400, code: 'BadDigest' });
    const granted = (name: string, value: string) =>
      postForm(api.server, open, {
        fields: [
          ['key', 'bad'],
          [name, value],
        ],
      });
    expectError(await granted('acl', 'unknown'), { status: 400, code: 'InvalidArgument' });
    const unresolvable = { status: 400, code: 'UnresolvableGrantByEmailAddress' } as const;
    expectError(await granted('x-amz-grant-read', 'emailAddress="nobody@example.org"'), unresolvable);
    const many = Array.from({ length: 101 }, () => `id="${owner.canonicalId}"`).join(',');
    expectError(await granted('x-amz-grant-read', many), { status: 400, code: 'MalformedACLError' });
    // Whoever names a key must have its secret: a wrong one is not nobody.
    const wrong: Fields = [['key', 'bad'], ...signPolicyV2({ ...api.server, accessKey: 'foo' }, policy())];
    expectError(await postForm(api.server, open, { fields: wrong }), {
      status: 403,
      code: 'InvalidAccessKeyId',
    });
    expectStatus(await asOwner('GET', `/${open}/bad`), 404);
  });

  test('a bucket policy sees that a request is a form: s3:authType is POST', async () => {
    const owner = await api.makeAccount();
    const guarded = await api.makeBucket(owner);
    const statement = {
      Effect: 'Deny',
      Principal: '*',
      Action: 's3:PutObject',
      Resource: `arn:aws:s3:::${guarded}/*`,
      Condition: { StringEquals: { 's3:authType': 'POST', 's3:signatureversion': 'AWS4-HMAC-SHA256' } },
    };
    const body = Buffer.from(JSON.stringify({ Version: '2012-10-17', Statement: [statement] }));
    expectStatus(await api.send({ method: 'PUT', path: `/${guarded}?policy`, body }, owner), 204);
    const fields = signForm(owner, guarded, [['key', 'x']]);
    expectError(await postForm(owner, guarded, { fields }), { status: 403, code: 'AccessDenied' });
    const v2: Fields = [['key', 'x'], ...signPolicyV2(owner, policyOf([{ bucket: guarded }, { key: 'x' }]))];
    expectStatus(await postForm(owner, guarded, { fields: v2 }), 204);
    expectStatus(await api.send({ method: 'PUT', path: `/${guarded}/x`, body }, owner), 200);
  });

  test('s3-behaviour 17: nobody may write where the bucket is not publicly writable, whatever an unsigned policy says', async () => {
    const denied = { status: 403, code: 'AccessDenied' } as const;
    expectError(await postForm(api.server, bucket, { fields: [['key', 'anonymous']] }), denied);
    const fields: Fields = [
      ['key', 'anonymous'],
      ['policy', policy()],
    ];
    expectError(await postForm(api.server, bucket, { fields }), denied);
    expectStatus(await get('anonymous'), 404);
  });
});

describe('s3-behaviour 19: the policy', () => {
  const signed = (policy: string): Fields => [['key', 'foo'], ...signPolicyV2(api.server, policy)];
  const all = () => [{ bucket }, { key: 'foo' }];

  test.each<[string, Record<string, unknown>]>([
    ['missing expiration', { expiration: undefined }],
    ['unparsable expiration', { expiration: '2030-01-01 00:00:00' }],
    ['EXPIRATION', { expiration: undefined, EXPIRATION: '2030-01-01T00:00:00Z' }],
    ['missing conditions', { conditions: undefined }],
    ['empty conditions', { conditions: [] }],
    ['a condition that is empty', { conditions: [{}] }],
    ['a malformed content-length-range', { conditions: [['content-length-range', 0]] }],
  ])('%s is 400 InvalidPolicyDocument', async (_what, others) => {
    const answer = await postForm(api.server, bucket, { fields: signed(policyOf(all(), others)) });
    expectError(answer, { status: 400, code: 'InvalidPolicyDocument' });
  });

  test('a value that does not match, a field that is not covered, an expired policy are 403', async () => {
    const denied = (problem: string) => ({
      status: 403,
      code: 'AccessDenied' as const,
      Message: `Invalid according to Policy: ${problem}`,
    });
    const send403 = (conditions: unknown[], fields: Fields = [], others = {}) =>
      postForm(api.server, bucket, { fields: [...fields, ...signed(policyOf(conditions, others))] });
    expectError(
      await send403([{ bucket }, ['starts-with', '$key', 'user/']]),
      denied('Policy Condition failed: ["starts-with", "$key", "user/"]'),
    );
    expectError(await send403(all(), [['x-amz-meta-a', 'x']]), denied('Extra input fields: x-amz-meta-a'));
    expectError(await send403([{ key: 'foo' }]), denied('Extra input fields: bucket'));
    const expiration = new Date(Date.now() - 1000).toISOString();
    expectError(await send403(all(), [], { expiration }), denied('Policy expired.'));
    expectStatus(await get('foo'), 404);
  });

  test('a policy for another bucket', async () => {
    const other = await api.makeBucket();
    const fields: Fields = [['bucket', bucket], ...signed(policyOf(all()))];
    expectError(await postForm(api.server, other, { fields }), { status: 403, code: 'AccessDenied' });
  });

  test('a body outside of content-length-range is 400', async () => {
    const sized = (file: string) =>
      postForm(api.server, bucket, {
        fields: signed(policyOf([...all(), ['content-length-range', 5, 10]])),
        file,
      });
    expectError(await sized('123456789012'), { status: 400, code: 'EntityTooLarge', MaxSizeAllowed: 10 });
    expectError(await sized('1'), {
      status: 400,
      code: 'EntityTooSmall',
      ProposedSize: 1,
      MinSizeAllowed: 5,
    });
    expectStatus(await get('foo'), 404);
    expectStatus(await sized('12345'), 204);
    expectStatus(await sized('1234567890'), 204);
  });
});

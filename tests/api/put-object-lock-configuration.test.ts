// PutObjectLockConfiguration and GetObjectLockConfiguration: which documents are taken, what clears one, and which buckets
// may have a lock.
import { createHash } from 'node:crypto';
import { GetObjectLockConfigurationCommand, PutObjectLockConfigurationCommand } from '@aws-sdk/client-s3';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { getRetention, makeLockBucket, putVersion } from '../support/servers/locks.ts';
import { expectError, expectStatus, fieldsOf, useApi } from '../support/servers/s3-api.ts';
import { makeVersionedBucket, setVersioning } from '../support/servers/versions.ts';

const api = useApi();
const NAMESPACE = ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"';
const ENABLED = '<ObjectLockEnabled>Enabled</ObjectLockEnabled>';
const document = (inner: string, namespace = '') =>
  `<ObjectLockConfiguration${namespace}>${inner}</ObjectLockConfiguration>`;
const ruleOf = (inner: string) => `<Rule><DefaultRetention>${inner}</DefaultRetention></Rule>`;
const CLEARED = ruleOf('<Mode></Mode><Days></Days>');
const shown = (inner: string) =>
  `<?xml version="1.0" encoding="UTF-8"?>\n${document(ENABLED + inner, NAMESPACE)}`;

let bucket: string;
const put = (body: string, { name = bucket, headers = {} as Record<string, string> } = {}) =>
  api.send({ method: 'PUT', path: `/${name}?object-lock`, headers, body: Buffer.from(body) });
const get = (name = bucket) => api.send({ method: 'GET', path: `/${name}?object-lock` });
const textOf = async (answer: ReturnType<typeof get>) => String((await answer).body);

describe('documents', () => {
  beforeEach(async () => {
    bucket = await makeVersionedBucket(api);
  });

  test('a bucket without one has none', async () => {
    const none = { status: 404, code: 'ObjectLockConfigurationNotFoundError', BucketName: bucket } as const;
    expectError(await get(), none);
  });

  test('a lock without a rule is switched on, and clears nothing', async () => {
    const answer = await put(document(ENABLED));
    expectStatus(answer, 200);
    expect(answer.body).toHaveLength(0);
    expect(await textOf(get())).toBe(shown(''));
    expectStatus(await put(document(ENABLED)), 200);
    expect(await textOf(get())).toBe(shown(''));
  });

  test.each([
    ['GOVERNANCE', '<Days>1</Days>'],
    ['COMPLIANCE', '<Days>36500</Days>'],
    ['GOVERNANCE', '<Years>1</Years>'],
    ['COMPLIANCE', '<Years>100</Years>'],
  ])('a default of %s and %s, with and without a namespace', async (mode, period) => {
    for (const namespace of ['', NAMESPACE]) {
      const answer = await put(document(ENABLED + ruleOf(`${period}<Mode>${mode}</Mode>`), namespace));
      expectStatus(answer, 200);
      expect(answer.body).toHaveLength(0);
      expect(await textOf(get())).toBe(shown(ruleOf(`<Mode>${mode}</Mode>${period}`)));
    }
  });

  test.each([
    ['no rule', document(ENABLED)],
    ['the elements of one with nothing in them', document(ENABLED + CLEARED)],
  ])('service 4.1: %s clears the default, and the answer shows it', async (_name, clearing) => {
    await put(document(ENABLED + ruleOf('<Mode>GOVERNANCE</Mode><Days>1</Days>')));
    for (let time = 1; time <= 2; time++) {
      const answer = await put(clearing);
      expectStatus(answer, 200);
      expect(String(answer.body)).toBe(shown(CLEARED));
      expect(await textOf(get())).toBe(shown(CLEARED));
    }
    const versionId = await putVersion(api, { bucket, key: 'k' });
    const none = { status: 404, code: 'NoSuchObjectLockConfiguration' } as const;
    expectError(await getRetention(api, { bucket, key: 'k', versionId }), none);
    const rule = ruleOf('<Mode>COMPLIANCE</Mode><Days>2</Days>');
    expect((await put(document(ENABLED + rule))).body).toHaveLength(0);
    expect(await textOf(get())).toBe(shown(rule));
  });

  const days = '<Days>1</Days>';
  const mode = '<Mode>GOVERNANCE</Mode>';
  test.each([
    ['nothing', ''],
    ['no XML', '{}'],
    ['another root', `<Other>${ENABLED}</Other>`],
    ['no ObjectLockEnabled', document('')],
    ['a rule alone', document(ruleOf(mode + days))],
    ['another ObjectLockEnabled', document('<ObjectLockEnabled>Disabled</ObjectLockEnabled>')],
    ['an empty rule', document(`${ENABLED}<Rule/>`)],
    ['an empty default', document(`${ENABLED}<Rule><DefaultRetention/></Rule>`)],
    ['a mode alone', document(ENABLED + ruleOf(mode))],
    ['a mode and no days', document(ENABLED + ruleOf(`${mode}<Days></Days>`))],
    ['a period alone', document(ENABLED + ruleOf(days))],
    ['days and years', document(ENABLED + ruleOf(`${mode}${days}<Years>1</Years>`))],
    ['an unknown mode', document(ENABLED + ruleOf(`<Mode>abc</Mode>${days}`))],
    ['a mode in small letters', document(ENABLED + ruleOf(`<Mode>governance</Mode>${days}`))],
    ['a period that is no number', document(ENABLED + ruleOf(`${mode}<Days>one</Days>`))],
    ['a period with a fraction', document(ENABLED + ruleOf(`${mode}<Days>1.5</Days>`))],
    ['two modes', document(ENABLED + ruleOf(`${mode}${mode}${days}`))],
  ])('s3-behaviour 41: %s is MalformedXML, and nothing is set', async (_name, body) => {
    expectError(await put(body), { status: 400, code: 'MalformedXML' });
    expectStatus(await get(), 404);
  });

  test.each(['<Days>0</Days>', '<Days>-1</Days>', '<Years>0</Years>', '<Years>-1</Years>'])(
    's3-behaviour 41: %s is InvalidRetentionPeriod',
    async (period) => {
      const refused = { status: 400, code: 'InvalidRetentionPeriod' } as const;
      expectError(await put(document(ENABLED + ruleOf(mode + period))), refused);
      expectStatus(await get(), 404);
    },
  );

  test.each([
    ['Days', '36501'],
    ['Days', '999999999'],
    ['Years', '101'],
  ])('%s of %s are too many', async (ArgumentName, ArgumentValue) => {
    const period = `<${ArgumentName}>${ArgumentValue}</${ArgumentName}>`;
    const refused = { status: 400, code: 'InvalidArgument', ArgumentName, ArgumentValue } as const;
    expectError(await put(document(ENABLED + ruleOf(mode + period))), refused);
  });

  test('an event hold is refused, and not passed over', async () => {
    const body = document(
      ENABLED + ruleOf(`${mode}${days}<DefaultEventHold><Days>1</Days></DefaultEventHold>`),
    );
    expectError(await put(body), { status: 501, code: 'NotImplemented' });
  });

  test('a digest is verified if it is sent', async () => {
    const body = document(ENABLED);
    const digestOf = (text: string) => createHash('md5').update(text).digest('base64');
    const sent = (of: string) => put(body, { headers: { 'content-md5': digestOf(of) } });
    expectError(await sent('other'), { status: 400, code: 'BadDigest' });
    expectStatus(await sent(body), 200);
  });

  test('through the SDK', async () => {
    const Rule = { DefaultRetention: { Mode: 'GOVERNANCE', Days: 3 } } as const;
    const ObjectLockConfiguration = { ObjectLockEnabled: 'Enabled', Rule } as const;
    await api.s3.send(new PutObjectLockConfigurationCommand({ Bucket: bucket, ObjectLockConfiguration }));
    const read = await api.s3.send(new GetObjectLockConfigurationCommand({ Bucket: bucket }));
    expect(read.ObjectLockConfiguration).toEqual(ObjectLockConfiguration);
  });
});

describe('buckets', () => {
  const unversioned = {
    status: 409,
    code: 'InvalidBucketState',
    Message: "Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration",
  } as const;
  let locked: string;
  beforeAll(async () => {
    locked = await makeLockBucket(api);
  });

  test('without versions there is no lock', async () => {
    const name = await api.makeBucket();
    expectError(await put(document(ENABLED), { name }), unversioned);
    await setVersioning(api, name, 'Suspended');
    expectError(await put(document(ENABLED), { name }), unversioned);
    expectStatus(await get(name), 404);
  });

  test.each(['Suspended'])('s3-behaviour 41: with a lock versioning cannot be %s', async (status) => {
    const body = Buffer.from(`<VersioningConfiguration><Status>${status}</Status></VersioningConfiguration>`);
    expectError(await api.send({ method: 'PUT', path: `/${locked}?versioning`, body }), {
      status: 409,
      code: 'InvalidBucketState',
      Message:
        'An Object Lock configuration is present on this bucket, so the versioning state cannot be changed.',
    });
    const answer = await api.send({ method: 'GET', path: `/${locked}?versioning` });
    expect(fieldsOf(answer)).toEqual({ Status: 'Enabled' });
    await setVersioning(api, locked, 'Enabled');
  });

  test('only the owner may read or set it', async () => {
    const stranger = await api.makeAccount();
    const path = `/${locked}?object-lock`;
    for (const method of ['GET', 'PUT']) {
      const body = method === 'PUT' ? { body: Buffer.from(document(ENABLED)) } : {};
      expectError(await api.send({ method, path, ...body }, stranger), { status: 403, code: 'AccessDenied' });
    }
    expectError(await get('no-such-bucket-at-all'), { status: 404, code: 'NoSuchBucket' });
  });
});

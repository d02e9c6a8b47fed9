// PutBucketVersioning.
import { GetBucketVersioningCommand, PutBucketVersioningCommand } from '@aws-sdk/client-s3';
import { beforeEach, expect, test } from 'vitest';
import { expectError, expectStatus, fieldsOf, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
let bucket: string;
beforeEach(async () => {
  bucket = await api.makeBucket();
});

const document = (inner: string) =>
  `<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${inner}</VersioningConfiguration>`;
const status = (text: string) => `<Status>${text}</Status>`;
const set = (body: string, headers: Record<string, string> = {}) =>
  api.send({ method: 'PUT', path: `/${bucket}?versioning`, headers, body: Buffer.from(body) });
const get = async () => fieldsOf(await api.send({ method: 'GET', path: `/${bucket}?versioning` }));

test('enabled, suspended and enabled again', async () => {
  for (const wanted of ['Enabled', 'Enabled', 'Suspended', 'Enabled']) {
    const answer = await set(document(status(wanted)));
    expectStatus(answer, 200);
    expect(answer.body).toHaveLength(0);
    expect(await get()).toEqual({ Status: wanted });
  }
});

test('a bucket without versions can be suspended', async () => {
  expectStatus(await set(document(status('Suspended'))), 200);
  expect(await get()).toEqual({ Status: 'Suspended' });
});

test('through the SDK', async () => {
  const VersioningConfiguration = { Status: 'Enabled' } as const;
  await api.s3.send(new PutBucketVersioningCommand({ Bucket: bucket, VersioningConfiguration }));
  expect(await api.s3.send(new GetBucketVersioningCommand({ Bucket: bucket }))).toMatchObject({
    Status: 'Enabled',
  });
});

test.each(['MfaDelete', 'MFADelete'])('%s is read, and shown once it was ever set', async (name) => {
  const disabled = `<${name}>Disabled</${name}>`;
  expectStatus(await set(document(status('Enabled') + disabled)), 200);
  expect(await get()).toEqual({ Status: 'Enabled', MfaDelete: 'Disabled' });
  expectStatus(await set(document(status('Suspended'))), 200);
  expect(await get()).toEqual({ Status: 'Suspended', MfaDelete: 'Disabled' });
});

test('MfaDelete without a status leaves the status as it is', async () => {
  expectStatus(await set(document('<MfaDelete>Disabled</MfaDelete>')), 200);
  expect(await get()).toEqual({ MfaDelete: 'Disabled' });
});

test.each(['MfaDelete', 'MFADelete'])('%s cannot be enabled without a second factor', async (name) => {
  const enabled = `<${name}>Enabled</${name}>`;
  const illegal = { status: 400, code: 'IllegalVersioningConfigurationException' } as const;
  expectError(await set(document(enabled)), illegal);
  expectError(await set(document(status('Suspended') + enabled)), illegal);
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await set(document(status('Enabled') + enabled)), denied);
  expect(await get()).toEqual({});
  expectStatus(await set(document(status('Enabled'))), 200);
  expectError(await set(document(enabled)), denied);
  const withCode = await set(document(enabled), { 'x-amz-mfa': 'serial 123456' });
  expectError(withCode, denied);
  expect(await get()).toEqual({ Status: 'Enabled' });
});

test.each([
  ['no body', '', 'MissingRequestBodyError'],
  ['no XML', 'Enabled', 'MalformedXML'],
  ['another root', '<Versioning><Status>Enabled</Status></Versioning>', 'MalformedXML'],
  ['an unknown status', document(status('enabled')), 'MalformedXML'],
  ['a status that objects inherit', document(status('constructor')), 'MalformedXML'],
  ['an empty status', document(status('')), 'MalformedXML'],
  ['two statuses', document(status('Enabled') + status('Enabled')), 'MalformedXML'],
  ['an unknown MfaDelete', document(`${status('Enabled')}<MfaDelete>Off</MfaDelete>`), 'MalformedXML'],
  [
    'both spellings',
    document('<MfaDelete>Disabled</MfaDelete><MFADelete>Disabled</MFADelete>'),
    'MalformedXML',
  ],
  ['nothing', document(''), 'IllegalVersioningConfigurationException'],
] as const)('%s is refused', async (_name, body, code) => {
  expectError(await set(body), { status: 400, code });
  expect(await get()).toEqual({});
});

test('only the owner may set it', async () => {
  const body = Buffer.from(document(status('Enabled')));
  const path = `/${bucket}?versioning`;
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await api.send({ method: 'PUT', path, body }, await api.makeAccount()), denied);
  const anonymous = await fetch(api.server.endpoint + path, { method: 'PUT', body });
  expect(anonymous.status).toBe(403);
  expect(await get()).toEqual({});
  const nowhere = await api.send({ method: 'PUT', path: '/no-such-bucket-here?versioning', body });
  expectError(nowhere, { status: 404, code: 'NoSuchBucket' });
});

// GetBucketAcl: the list of a private bucket.
import { GetBucketAclCommand } from '@aws-sdk/client-s3';
import { expect, test } from 'vitest';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();

test('the owner, and its one grant', async () => {
  const owner = await api.makeAccount();
  const bucket = await api.makeBucket(owner);
  const answer = await api.send({ method: 'GET', path: `/${bucket}?acl` }, owner);
  expectStatus(answer, 200);
  const identity = `<ID>${owner.canonicalId}</ID><DisplayName>${owner.name}</DisplayName>`;
  expect(answer.body.toString()).toBe(
    '<?xml version="1.0" encoding="UTF-8"?>\n<AccessControlPolicy xmlns="http://s3.amazonaws.com/doc/2006-03-01/">' +
      `<Owner>${identity}</Owner><AccessControlList><Grant>` +
      `<Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="CanonicalUser">${identity}</Grantee>` +
      '<Permission>FULL_CONTROL</Permission></Grant></AccessControlList></AccessControlPolicy>',
  );
  const viaSdk = await owner.s3.send(new GetBucketAclCommand({ Bucket: bucket }));
  const { canonicalId: ID, name: DisplayName } = owner;
  expect(viaSdk).toMatchObject({
    Owner: { ID, DisplayName },
    Grants: [{ Grantee: { Type: 'CanonicalUser', ID, DisplayName }, Permission: 'FULL_CONTROL' }],
  });
});

test('only the owner may read, and only of an existing bucket', async () => {
  const bucket = await api.makeBucket();
  const denied = { status: 403, code: 'AccessDenied' } as const;
  const path = `/${bucket}?acl`;
  const stranger = await api.makeAccount();
  expectError(await api.send({ method: 'GET', path }, stranger), denied);
  expectError(await api.sendAnonymous({ method: 'GET', path }), denied);
  const headers = { 'x-amz-expected-bucket-owner': stranger.canonicalId };
  expectError(await api.send({ method: 'GET', path, headers }), denied);
  const nowhere = await api.send({ method: 'GET', path: '/no-such-bucket-here?acl' });
  expectError(nowhere, { status: 404, code: 'NoSuchBucket' });
});

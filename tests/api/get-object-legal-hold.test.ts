// GetObjectLegalHold: of a version that never had one, and through the SDK.
import { GetObjectLegalHoldCommand } from '@aws-sdk/client-s3';
import { expect, test } from 'vitest';
import {
  getLegalHold,
  legalHoldXml,
  makeLockBucket,
  putVersion,
  sendLegalHold,
} from '../support/servers/locks.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();

test('none, then ON, then OFF', async () => {
  const bucket = await makeLockBucket(api);
  const object = { bucket, key: 'k', versionId: await putVersion(api, { bucket, key: 'k' }) };
  expectError(await getLegalHold(api, object), {
    status: 404,
    code: 'NoSuchObjectLockConfiguration',
    Message: 'The specified object does not have a ObjectLock configuration',
  });
  const place = { Bucket: bucket, Key: 'k', VersionId: object.versionId };
  for (const Status of ['ON', 'OFF']) {
    expectStatus(await sendLegalHold(api, object, legalHoldXml(Status)), 200);
    const { LegalHold } = await api.s3.send(new GetObjectLegalHoldCommand(place));
    expect(LegalHold).toEqual({ Status });
  }
});

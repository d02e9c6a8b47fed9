// GetObjectRetention and GetObjectLegalHold where object lock cannot be set.
import { beforeAll, describe, test } from 'vitest';
import { expectError, useApi } from '../support/servers/s3-api.ts';
import { makeVersionedBucket, versionOf } from '../support/servers/versions.ts';

const api = useApi();
let bucket: string;
let versionId: string;
beforeAll(async () => {
  bucket = await makeVersionedBucket(api);
  await api.put(bucket, 'k', 'bytes');
  versionId = versionOf(await api.send({ method: 'HEAD', path: `/${bucket}/k` }));
});

describe.each(['retention', 'legal-hold'])('?%s', (query) => {
  const ask = (target: string) => api.send({ method: 'GET', path: `/${bucket}/${target}` });

  test('the bucket has no object lock, whatever the object', async () => {
    const refused = {
      status: 400,
      code: 'InvalidRequest',
      Message: 'Bucket is missing Object Lock Configuration',
    } as const;
    for (const target of [`k?${query}`, `k?${query}&versionId=${versionId}`, `none?${query}`]) {
      expectError(await ask(target), refused);
    }
  });

  test('a malformed version id is refused as such', async () => {
    expectError(await ask(`k?${query}&versionId=`), { status: 400, code: 'InvalidArgument' });
  });

  test('only the owner may read', async () => {
    const denied = { status: 403, code: 'AccessDenied' } as const;
    const path = `/${bucket}/k?${query}`;
    expectError(await api.send({ method: 'GET', path }, await api.makeAccount()), denied);
    expectError(await api.sendAnonymous({ method: 'GET', path }), denied);
  });
});

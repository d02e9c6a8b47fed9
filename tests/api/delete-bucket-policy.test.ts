// DeleteBucketPolicy: also where there is none. Strangers are refused in get-bucket-policy.test.ts.
import { expect, test } from 'vitest';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();

test('the policy is gone, and to delete it again changes nothing', async () => {
  const bucket = await api.makeBucket();
  const path = `/${bucket}?policy`;
  const body = Buffer.from(
    JSON.stringify({
      Version: '2012-10-17',
      Statement: {
        Effect: 'Deny',
        Principal: '*',
        Action: 's3:DeleteObject',
        Resource: `arn:aws:s3:::${bucket}/*`,
      },
    }),
  );
  expectStatus(await api.send({ method: 'PUT', path, body }), 204);
  expect((await api.send({ method: 'GET', path })).body.equals(body)).toBe(true);
  for (let time = 0; time < 2; time++) {
    const answer = await api.send({ method: 'DELETE', path });
    expectStatus(answer, 204);
    expect(answer.body).toHaveLength(0);
    expectError(await api.send({ method: 'GET', path }), { status: 404, code: 'NoSuchBucketPolicy' });
  }
});

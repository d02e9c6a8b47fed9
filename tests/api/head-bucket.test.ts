// HeadBucket.
import { HeadBucketCommand, NotFound } from '@aws-sdk/client-s3';
import { beforeAll, expect, test } from 'vitest';
import { expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
});

test('a bucket exists, with its region', async () => {
  for (const path of [`/${bucket}`, `/${bucket}/`]) {
    const answer = await api.send({ method: 'HEAD', path });
    expectStatus(answer, 200);
    expect(answer.headers['x-amz-bucket-region']).toBe('us-east');
    expect(answer.body).toHaveLength(0);
  }
  expect((await api.s3.send(new HeadBucketCommand({ Bucket: bucket }))).BucketRegion).toBe('us-east');
});

test('a missing bucket is 404 to everyone, without a body', async () => {
  const path = '/no-such-bucket-here';
  for (const answer of [
    await api.send({ method: 'HEAD', path }),
    await api.sendAnonymous({ method: 'HEAD', path }),
  ]) {
    expectStatus(answer, 404);
    expect(answer.body).toHaveLength(0);
  }
  const request = new HeadBucketCommand({ Bucket: 'no-such-bucket-here' });
  await expect(api.s3.send(request)).rejects.toBeInstanceOf(NotFound);
});

test('the bucket of another account is 403', async () => {
  const path = `/${bucket}`;
  expectStatus(await api.send({ method: 'HEAD', path }, await api.makeAccount()), 403);
  expectStatus(await api.sendAnonymous({ method: 'HEAD', path }), 403);
});

test('the expected owner', async () => {
  const path = `/${bucket}`;
  const head = (owner: string) =>
    api.send({ method: 'HEAD', path, headers: { 'x-amz-expected-bucket-owner': owner } });
  expectStatus(await head('999999999999'), 403);
  const account = await api.makeAccount();
  const theirs = await api.makeBucket(account);
  const headers = { 'x-amz-expected-bucket-owner': account.id };
  expectStatus(await api.send({ method: 'HEAD', path: `/${theirs}`, headers }, account), 200);
});

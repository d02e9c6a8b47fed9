// Quotas through a server: set by the command line, and refused over S3 with the bound that it is (docs/quotas.md).
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  UploadPartCommand,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3';
import { describe, expect, test } from 'vitest';
import { setQuota, showQuota } from '../../src/cli/quota-command.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { postForm, signForm } from '../support/servers/forms.ts';
import { pathOf } from '../support/servers/raw-s3.ts';
import { headOf, openSocket } from '../support/servers/raw-socket.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
const { context, taken } = createPrintedTool();

async function bound(of: 'bucket' | 'account', name: string, bounds: object) {
  await setQuota(context, { of, name }, { dataDir: api.server.dataDir, json: true, ...bounds });
  return JSON.parse(taken());
}

const over = (of: string, unit: string, limit: number) => ({
  status: 403 as const,
  code: 'QuotaExceeded' as const,
  Quota: `${of}-${unit}`,
  Limit: limit,
});

describe('a bucket with hard bounds', () => {
  test('takes what fits exactly, and every kind of write says which bound it would pass', async () => {
    const bucket = await api.makeBucket();
    await api.put(bucket, 'source', 'x'.repeat(80));
    await api.put(bucket, 'grows', 'x'.repeat(10));
    expect(await bound('bucket', bucket, { hardBytes: '100' })).toMatchObject({
      hardBytes: 100,
      heldBytes: 90,
      heldObjects: 2,
    });
    const put = (key: string, sizeBytes: number) =>
      api.send({ method: 'PUT', path: pathOf(bucket, key), body: Buffer.alloc(sizeBytes) });
    expectError(await put('new', 11), over('bucket', 'bytes', 100));
    expectStatus(await api.send({ method: 'HEAD', path: pathOf(bucket, 'new') }), 404);
    const copied = {
      method: 'PUT',
      path: pathOf(bucket, 'copy'),
      headers: { 'x-amz-copy-source': `/${bucket}/source` },
    };
    expectError(await api.send(copied), over('bucket', 'bytes', 100));
    const component = '<Component><Key>source</Key></Component>';
    const composed = {
      method: 'PUT',
      path: `${pathOf(bucket, 'composed')}?compose`,
      headers: { 'content-type': 'text/xml' },
    };
    const request = Buffer.from(`<ComposeRequest>${component}${component}</ComposeRequest>`);
    expectError(await api.send({ ...composed, body: request }), over('bucket', 'bytes', 100));
    const appended = { method: 'PUT', path: `${pathOf(bucket, 'grows')}?append`, body: Buffer.alloc(11) };
    expectError(await api.send(appended), over('bucket', 'bytes', 100));
    const form = { fields: signForm(api.server, bucket, [['key', 'form']]), file: 'x'.repeat(11) };
    expectError(await postForm(api.server, bucket, form), over('bucket', 'bytes', 100));
    expectStatus(await put('new', 10), 200);
    expectStatus(await api.send({ method: 'DELETE', path: pathOf(bucket, 'grows') }), 204);
    expectStatus(await put('new', 20), 200);
    await bound('bucket', bucket, {});
    expectStatus(await api.send(copied), 200);
  });

  test('parts hold room; a Complete is refused where another bound is passed', async () => {
    const bucket = await api.makeBucket();
    await api.put(bucket, 'source', 'x'.repeat(30));
    await bound('bucket', bucket, { hardBytes: '100', hardObjects: '1' });
    const { UploadId } = await api.s3.send(new CreateMultipartUploadCommand({ Bucket: bucket, Key: 'big' }));
    const upload = { Bucket: bucket, Key: 'big', UploadId };
    const part = (Body: string, PartNumber: number) =>
      api.s3.send(new UploadPartCommand({ ...upload, PartNumber, Body }));
    const { ETag } = await part('x'.repeat(60), 1);
    await expect(part('x'.repeat(11), 2)).rejects.toMatchObject({ name: 'QuotaExceeded' });
    const copy = { ...upload, PartNumber: 2, CopySource: `${bucket}/source` };
    await expect(api.s3.send(new UploadPartCopyCommand(copy))).rejects.toMatchObject({
      name: 'QuotaExceeded',
    });
    const complete = new CompleteMultipartUploadCommand({
      ...upload,
      MultipartUpload: { Parts: [{ PartNumber: 1, ETag }] },
    });
    await expect(api.s3.send(complete)).rejects.toMatchObject({
      name: 'QuotaExceeded',
      Quota: 'bucket-objects',
    });
    await bound('bucket', bucket, { hardBytes: '100' });
    await api.s3.send(complete);
    await showQuota(context, { of: 'bucket', name: bucket }, { dataDir: api.server.dataDir, json: true });
    expect(JSON.parse(taken())).toMatchObject({ heldBytes: 90, heldObjects: 2 });
  });
});

test('a large body is refused before it is sent', async () => {
  const bucket = await api.makeBucket();
  await bound('bucket', bucket, { hardBytes: '9MiB' });
  const socket = await openSocket(api.server);
  const headers = { 'content-length': String(10 * 1024 * 1024), expect: '100-continue' };
  socket.write(headOf(api.server, { method: 'PUT', path: pathOf(bucket, 'large'), headers }));
  expect((await socket.answer())?.status).toBe(403);
  socket.destroy();
  const fits = { method: 'PUT', path: pathOf(bucket, 'large'), body: Buffer.alloc(9 * 1024 * 1024) };
  expectStatus(await api.send(fits), 200);
  expectStatus(await api.send(fits), 200);
});

test('an account’s bound holds over all its buckets, with many writers at once', async () => {
  const account = await api.makeAccount();
  const buckets = await Promise.all(Array.from({ length: 6 }, () => api.makeBucket(account)));
  await bound('account', account.id, { hardBytes: '100000', softBytes: '50000' });
  const body = Buffer.alloc(3000);
  const statuses = await Promise.all(
    Array.from({ length: 64 }, async (_, index) => {
      const path = pathOf(buckets[index % buckets.length] ?? '', `k${index}`);
      return (await api.send({ method: 'PUT', path, body }, account)).status;
    }),
  );
  expect(statuses.filter((status) => status === 200)).toHaveLength(33);
  expect(statuses.filter((status) => status === 403)).toHaveLength(31);
  const put = new PutObjectCommand({ Bucket: buckets[0], Key: 'last', Body: Buffer.alloc(1001) });
  await expect(account.s3.send(put)).rejects.toMatchObject({ name: 'QuotaExceeded', Quota: 'account-bytes' });
  expectStatus(
    await api.send(
      { method: 'PUT', path: pathOf(buckets[1] ?? '', 'last'), body: Buffer.alloc(1000) },
      account,
    ),
    200,
  );
  expect(await bound('account', account.id, {})).toMatchObject({ heldBytes: 100_000, heldObjects: 34 });
});

test('bounds that make no sense are refused, and nothing is set', async () => {
  const bucket = await api.makeBucket();
  const wrong = bound('bucket', bucket, { hardBytes: '10', softBytes: '11' });
  await expect(wrong).rejects.toThrow('softBytes is above hardBytes');
  await expect(bound('bucket', bucket, { hardBytes: 'much' })).rejects.toThrow(
    '--hard-bytes must be a whole number with a unit',
  );
  await expect(bound('bucket', 'nowhere-to-be-found', {})).rejects.toThrow('no bucket of that name');
});

// AbortMultipartUpload.
import { beforeAll, expect, test } from 'vitest';
import { beginUpload, putPart, sendComplete, uploadPath } from '../support/servers/multipart.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
});

test('the upload and its parts are gone, and the object never existed', async () => {
  const upload = await beginUpload(api, { bucket, key: 'gone' });
  const etag = await putPart(api, upload, { partNumber: 1, body: Buffer.from('x') });
  const answer = await api.send({ method: 'DELETE', path: uploadPath(upload) });
  expectStatus(answer, 204);
  expect(answer.body).toHaveLength(0);
  const missing = { status: 404, code: 'NoSuchUpload', UploadId: upload.uploadId } as const;
  expectError(await api.send({ method: 'GET', path: uploadPath(upload) }), missing);
  expectError(await sendComplete(api, upload, [{ partNumber: 1, etag }]), missing);
  expectError(await api.send({ method: 'DELETE', path: uploadPath(upload) }), missing);
  expect(await api.keysOf(bucket)).toEqual([]);
});

test('another upload of the key continues', async () => {
  const [one, other] = [
    await beginUpload(api, { bucket, key: 'two' }),
    await beginUpload(api, { bucket, key: 'two' }),
  ];
  const etag = await putPart(api, other, { partNumber: 1, body: Buffer.from('x') });
  expectStatus(await api.send({ method: 'DELETE', path: uploadPath(one) }), 204);
  expectStatus(await sendComplete(api, other, [{ partNumber: 1, etag }]), 200);
});

test.each(['x', '', '0'.repeat(44)])('the upload %j is not there', async (uploadId) => {
  const answer = await api.send({ method: 'DELETE', path: uploadPath({ bucket, key: 'k', uploadId }) });
  expectError(answer, { status: 404, code: 'NoSuchUpload' });
});

test('only the owner may abort', async () => {
  const upload = await beginUpload(api, { bucket, key: 'mine' });
  const path = uploadPath(upload);
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await api.send({ method: 'DELETE', path }, await api.makeAccount()), denied);
  expectError(await api.sendAnonymous({ method: 'DELETE', path }), denied);
  expectStatus(await api.send({ method: 'GET', path }), 200);
});

test('who may write by the list of the bucket lists and aborts uploads of its own, and no others', async () => {
  const [owner, writer] = [await api.makeAccount(), await api.makeAccount()];
  const shared = await api.makeBucket(owner);
  const acl = { method: 'PUT', path: `/${shared}?acl`, headers: { 'x-amz-acl': 'public-read-write' } };
  expectStatus(await api.send(acl, owner), 200);
  const begin = async (key: string, account: typeof owner) => {
    const answer = await api.send({ method: 'POST', path: `/${shared}/${key}?uploads` }, account);
    expectStatus(answer, 200);
    const uploadId = /<UploadId>(\w+)</.exec(String(answer.body))?.[1] ?? '';
    return uploadPath({ bucket: shared, key, uploadId });
  };
  const [its, own] = [await begin('its', owner), await begin('own', writer)];
  for (const method of ['GET', 'DELETE']) {
    const denied = { status: 403, code: 'AccessDenied' } as const;
    expectError(await api.send({ method, path: its }, writer), denied);
    expectError(await api.sendAnonymous({ method, path: its }), denied);
    expectError(await api.sendAnonymous({ method, path: own }), denied);
    expectStatus(await api.send({ method, path: own }, writer), method === 'GET' ? 200 : 204);
  }
  expectStatus(await api.send({ method: 'DELETE', path: its }, owner), 204);
});

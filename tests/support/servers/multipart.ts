// Multipart uploads as the API tests make them: whole ones in one call, or step by step. Raw requests, no SDK.
import { must } from '../../../src/base/assert.ts';
import { textOf } from '../../../src/base/xml/parse-xml.ts';
import { pathOf, type RawAnswer } from './raw-s3.ts';
import { type Api, expectStatus, xmlOf } from './s3-api.ts';

export interface UploadAddress {
  bucket: string;
  key: string;
  uploadId: string;
}

/** Begins an upload. */
export async function beginUpload(
  api: Api,
  address: { bucket: string; key: string },
  headers: Record<string, string> = {},
): Promise<UploadAddress> {
  const { bucket, key } = address;
  const answer = await api.send({ method: 'POST', path: `${pathOf(bucket, key)}?uploads`, headers });
  expectStatus(answer, 200);
  return { bucket, key, uploadId: must(textOf(xmlOf(answer), 'UploadId'), 'an upload id') };
}

/** Where a request about the upload goes. */
export function uploadPath({ bucket, key, uploadId }: UploadAddress, query = ''): string {
  return `${pathOf(bucket, key)}?${query}uploadId=${uploadId}`;
}

export function sendPart(
  api: Api,
  upload: UploadAddress,
  part: { partNumber: number; body: Buffer; headers?: Record<string, string> },
): Promise<RawAnswer> {
  const { partNumber, body, headers = {} } = part;
  return api.send({ method: 'PUT', path: uploadPath(upload, `partNumber=${partNumber}&`), body, headers });
}

/** Uploads a part; its ETag without quotes. */
export async function putPart(
  api: Api,
  upload: UploadAddress,
  part: { partNumber: number; body: Buffer; headers?: Record<string, string> },
): Promise<string> {
  const answer = await sendPart(api, upload, part);
  expectStatus(answer, 200);
  return must(answer.headers.etag, 'a part has an ETag').replaceAll('"', '');
}

export interface ListedPart {
  partNumber: number | string;
  etag: string;
  /** More elements of the part. */
  more?: string;
}

export function completeXml(parts: readonly ListedPart[]): Buffer {
  const elements = parts.map(
    ({ partNumber, etag, more = '' }) =>
      `<Part><PartNumber>${partNumber}</PartNumber><ETag>"${etag}"</ETag>${more}</Part>`,
  );
  return Buffer.from(`<CompleteMultipartUpload>${elements.join('')}</CompleteMultipartUpload>`);
}

export function sendComplete(
  api: Api,
  upload: UploadAddress,
  parts: readonly ListedPart[],
  headers: Record<string, string> = {},
): Promise<RawAnswer> {
  return api.send({ method: 'POST', path: uploadPath(upload), body: completeXml(parts), headers });
}

/** Makes an object of these parts, numbered from 1 on; its ETag without quotes. */
export function completeUpload(
  api: Api,
  object: { bucket: string; key: string; parts: readonly Buffer[] },
): Promise<{ etag: string }> {
  const parts = object.parts.map((body, index) => ({ partNumber: index + 1, body }));
  return completeNumbered(api, { ...object, parts });
}

/** Makes an object of parts with these numbers; its ETag without quotes. */
export async function completeNumbered(
  api: Api,
  object: { bucket: string; key: string; parts: readonly { partNumber: number; body: Buffer }[] },
): Promise<{ etag: string }> {
  const upload = await beginUpload(api, object);
  const listed: ListedPart[] = [];
  for (const { partNumber, body } of object.parts) {
    listed.push({ partNumber, etag: await putPart(api, upload, { partNumber, body }) });
  }
  const answer = await sendComplete(api, upload, listed);
  expectStatus(answer, 200);
  return { etag: must(textOf(xmlOf(answer), 'ETag'), 'an object has an ETag').replaceAll('"', '') };
}

// The two ends of a multipart upload; how its parts are sent is the caller's matter.
import { type LoadClient, succeed } from './client.ts';

/** The id of the upload, as a query takes it. */
export async function beginUpload(client: LoadClient, path: string): Promise<string> {
  const { body } = await succeed(client, { method: 'POST', path, query: 'uploads=', keepBody: true });
  return encodeURIComponent(/<UploadId>([^<]*)/.exec(body?.toString() ?? '')?.[1] ?? '');
}

/** `etags`: of parts 1 to n, in their order. */
export async function completeUpload(
  client: LoadClient,
  upload: { path: string; uploadId: string; etags: readonly string[] },
): Promise<void> {
  const parts = upload.etags.map(
    (etag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${etag}</ETag></Part>`,
  );
  const response = await succeed(client, {
    method: 'POST',
    path: upload.path,
    query: `uploadId=${upload.uploadId}`,
    body: Buffer.from(`<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`),
    keepBody: true,
  });
  // The status may have been sent before the end was known.
  const text = response.body?.toString() ?? '';
  if (text.includes('<Error>')) throw new Error(`CompleteMultipartUpload: ${text}`);
}

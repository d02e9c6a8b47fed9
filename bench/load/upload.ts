// The two ends of a multipart upload; how its parts are sent is the caller's matter.
import { LoadClient, succeed } from './client.ts';
import type { Target } from './spec.ts';

const PART_COPIES_IN_FLIGHT = 16;

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

export interface CopiedUpload {
  /** /BUCKET/KEY, and that of the object whose bytes all parts are. */
  path: string;
  source: string;
  /** More headers of each part copy. */
  parts: readonly Record<string, string>[];
}

/** An object of part copies: no byte travels. Resolves with the time that the completion took, in ms. */
export async function uploadByCopies(target: Target, { path, source, parts }: CopiedUpload): Promise<number> {
  const client = new LoadClient(target);
  const uploadId = await beginUpload(client, path);
  const etags: string[] = [];
  let next = 0;
  const work = async () => {
    const own = new LoadClient(target);
    for (let index = next++; index < parts.length; index = next++) {
      const { body } = await succeed(own, {
        method: 'PUT',
        path,
        query: `partNumber=${index + 1}&uploadId=${uploadId}`,
        headers: { ...parts[index], 'x-amz-copy-source': source },
        keepBody: true,
      });
      etags[index] = /<ETag>([^<]*)/.exec(body?.toString() ?? '')?.[1] ?? '';
    }
    await own.close();
  };
  await Promise.all(Array.from({ length: PART_COPIES_IN_FLIGHT }, work));
  const startedAt = performance.now();
  await completeUpload(client, { path, uploadId, etags });
  const tookMs = performance.now() - startedAt;
  await client.close();
  return tookMs;
}

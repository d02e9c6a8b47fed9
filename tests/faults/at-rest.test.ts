// Nothing of an object's content, user metadata or content type is readable in the data folder: marked bodies, inline
// and chunked, in parts and copied, are written; then every file is searched for the marks, as they are and in the
// encodings in which they might have been kept. Bucket names and keys are not encrypted (docs/security.md), which shows
// that the search finds what is there.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { send } from '../support/servers/raw-s3.ts';
import { startServer } from '../support/servers/start-server.ts';

const MiB = 1024 * 1024;
const BODY_MARK = 'Marked-Body-7f3a9c';
const METADATA_MARK = 'Marked-Metadata-51d2e8';
const TYPE_MARK = 'application/x-marked-type-90bb';
const KEY_MARK = 'marked-key-33c1';
const headers = { 'content-type': TYPE_MARK, 'x-amz-meta-note': METADATA_MARK };
const bodyOf = (sizeBytes: number) => Buffer.alloc(sizeBytes, BODY_MARK);

/** The forms in which a text may lie in a file. Of base64, what does not depend on the bytes before and behind. */
function formsOf(mark: string): Buffer[] {
  const bytes = Buffer.from(mark);
  const base64 = [0, 1, 2].map((shift) =>
    Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .slice(4, -4),
  );
  const texts = [
    mark,
    mark.toLowerCase(),
    bytes.toString('hex'),
    bytes.toString('hex').toUpperCase(),
    ...base64,
  ];
  return [...texts.map((text) => Buffer.from(text)), Buffer.from(mark, 'utf16le')];
}

function filesWith(folder: string, mark: string): string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  const forms = formsOf(mark);
  return files
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => {
      const bytes = readFileSync(path);
      return forms.some((form) => bytes.includes(form));
    });
}

test('no content and no metadata is readable in any file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-at-rest-'));
  const dataDir = join(folder, 'data');
  const server = await startServer({ child: true, dataDir });
  const call = async (
    method: string,
    path: string,
    more: { headers?: Record<string, string>; body?: Buffer } = {},
  ) => {
    const answer = await send(server, { method, path, ...more });
    expect(answer.status, `${method} ${path}: ${answer.body}`).toBeLessThan(300);
    return answer;
  };
  try {
    await call('PUT', '/marked');
    await call('PUT', `/marked/${KEY_MARK}-inline`, { headers, body: bodyOf(1000) });
    await call('PUT', `/marked/${KEY_MARK}-chunked`, { headers, body: bodyOf(3 * MiB + 1) });
    const source = `/marked/${KEY_MARK}-chunked`;
    await call('PUT', `/marked/${KEY_MARK}-copied`, { headers: { 'x-amz-copy-source': source } });
    const replaced = { ...headers, 'x-amz-copy-source': source, 'x-amz-metadata-directive': 'REPLACE' };
    await call('PUT', `/marked/${KEY_MARK}-replaced`, { headers: replaced });
    const created = await call('POST', `/marked/${KEY_MARK}-parts?uploads=`, { headers });
    const id = encodeURIComponent(/<UploadId>(.*?)</.exec(created.body.toString())?.[1] ?? '');
    const etags: unknown[] = [];
    for (const [index, body] of [bodyOf(5 * MiB), bodyOf(100)].entries()) {
      const path = `/marked/${KEY_MARK}-parts?partNumber=${index + 1}&uploadId=${id}`;
      etags.push((await call('PUT', path, { body })).headers.etag);
    }
    const parts = etags.map(
      (etag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${etag}</ETag></Part>`,
    );
    const list = Buffer.from(`<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`);
    await call('POST', `/marked/${KEY_MARK}-parts?uploadId=${id}`, { body: list });
    await call('POST', `/marked/${KEY_MARK}-unfinished?uploads=`, { headers });
    await call('PUT', `/marked/${KEY_MARK}-deleted`, { headers, body: bodyOf(2000) });
    await call('DELETE', `/marked/${KEY_MARK}-deleted`);
    const got = await call('GET', `/marked/${KEY_MARK}-replaced`);
    expect(got.body.equals(bodyOf(3 * MiB + 1))).toBe(true);
    expect(got.headers).toMatchObject({ 'content-type': TYPE_MARK, 'x-amz-meta-note': METADATA_MARK });

    await server.stop();
    expect(filesWith(dataDir, KEY_MARK)).not.toEqual([]);
    for (const mark of [BODY_MARK, METADATA_MARK, TYPE_MARK])
      expect(filesWith(dataDir, mark), mark).toEqual([]);
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

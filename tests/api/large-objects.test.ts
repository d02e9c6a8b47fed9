// Objects larger than one request may bring, over HTTP (service 8; 4.2, compose rule 7 and copy): links of links to
// 64 MiB, so that they are made at once and their bytes are known.
import { createHash, randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { beginUpload, type ListedPart, sendComplete, uploadPath } from '../support/servers/multipart.ts';
import { pathOf } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, fieldsOf, useApi } from '../support/servers/s3-api.ts';

const MiB = 1024 * 1024;
const GiB = 1024 * MiB;
const TiB = 1024 * GiB;
const GRAIN_BYTES = 64 * MiB;
const MARK = 'between them';
const AT_ONCE = 25;
const TOO_LARGE = { status: 400, code: 'EntityTooLarge', MaxSizeAllowed: 5 * TiB } as const;
const grain = randomBytes(GRAIN_BYTES);
const api = useApi();
let bucket: string;
/** Of `five`, which is as large as one PUT may bring. */
let fiveETag: string;

interface Source {
  key: string;
  range?: string;
}

/** An object whose parts are links. */
async function link(key: string, sources: readonly Source[]): Promise<string> {
  const upload = await beginUpload(api, { bucket, key });
  const copyPart = async (source: Source, at: number): Promise<ListedPart> => {
    const answer = await api.send({
      method: 'PUT',
      path: uploadPath(upload, `partNumber=${at + 1}&`),
      headers: {
        'x-amz-copy-source': `${bucket}/${source.key}`,
        ...(source.range !== undefined && { 'x-amz-copy-source-range': source.range }),
      },
    });
    expectStatus(answer, 200);
    return { partNumber: at + 1, etag: fieldsOf(answer).ETag?.replaceAll('"', '') ?? '' };
  };
  const listed: ListedPart[] = [];
  while (listed.length < sources.length) {
    const start = listed.length;
    const next = sources.slice(start, start + AT_ONCE);
    listed.push(...(await Promise.all(next.map((source, at) => copyPart(source, start + at)))));
  }
  const answer = await sendComplete(api, upload, listed);
  expectStatus(answer, 200);
  return fieldsOf(answer).ETag?.replaceAll('"', '') ?? '';
}

const compose = (key: string, parts: readonly string[]) => {
  const components = parts.map((part) => `<Component><Key>${part}</Key></Component>`);
  const body = Buffer.from(`<ComposeRequest>${components.join('')}</ComposeRequest>`);
  return api.send({ method: 'PUT', path: `${pathOf(bucket, key)}?compose`, body });
};
const append = (key: string, text: string) =>
  api.send({ method: 'PUT', path: `${pathOf(bucket, key)}?append`, body: Buffer.from(text) });
const copy = (key: string, source: string, into = bucket) =>
  api.send({
    method: 'PUT',
    path: pathOf(into, key),
    headers: { 'x-amz-copy-source': `${bucket}/${source}` },
  });

async function headOf(key: string, from = bucket): Promise<{ sizeBytes: number; etag: string | undefined }> {
  const answer = await api.send({ method: 'HEAD', path: pathOf(from, key) });
  expectStatus(answer, 200);
  return { sizeBytes: Number(answer.headers['content-length']), etag: answer.headers.etag };
}

async function expectBytes(key: string, offsetBytes: number, expected: Buffer, from = bucket): Promise<void> {
  const range = `${offsetBytes}-${offsetBytes + expected.length - 1}`;
  const path = pathOf(from, key);
  const answer = await api.send({ method: 'GET', path, headers: { range: `bytes=${range}` } });
  expectStatus(answer, 206);
  expect(answer.headers['content-range']).toMatch(new RegExp(`^bytes ${range}/\\d+$`));
  expect(answer.body.equals(expected), `bytes ${range}`).toBe(true);
}

beforeAll(async () => {
  bucket = await api.makeBucket();
  await api.put(bucket, 'grain', grain);
  await api.put(bucket, 'mark', MARK);
  fiveETag = await link('five', Array(80).fill({ key: 'grain' }));
});

describe('10 GiB', () => {
  const sizeBytes = 10 * GiB + MARK.length;
  const joint = Buffer.concat([grain.subarray(-10), Buffer.from(MARK), grain.subarray(0, 10)]);
  beforeAll(async () => {
    expectStatus(await compose('ten', ['five', 'mark', 'five']), 200);
  });

  test('service 4.2, 8, compose rule 7: above 5 GB without a multi-part upload of all of it', async () => {
    const md5s = [
      Buffer.from(fiveETag.slice(0, 32), 'hex'),
      createHash('md5').update(MARK).digest(),
      Buffer.from(fiveETag.slice(0, 32), 'hex'),
    ];
    const etag = `"${createHash('md5').update(Buffer.concat(md5s)).digest('hex')}-3"`;
    expect(await headOf('ten')).toEqual({ sizeBytes, etag });
    await expectBytes('ten', 0, grain.subarray(0, 10));
    await expectBytes('ten', 5 * GiB - 10, joint);
    await expectBytes('ten', sizeBytes - 10, grain.subarray(-10));
  });

  test('service 4.2, 8, copy: a link above 5 GB too, in any bucket, which outlives its source', async () => {
    const other = await api.makeBucket();
    expectStatus(await compose('goes', ['five', 'mark', 'five']), 200);
    const { etag } = await headOf('goes');
    for (const into of [bucket, other]) expectStatus(await copy('ten copied', 'goes', into), 200);
    expectStatus(await api.send({ method: 'DELETE', path: pathOf(bucket, 'goes') }), 204);
    for (const into of [bucket, other]) {
      expect(await headOf('ten copied', into)).toEqual({ sizeBytes, etag });
      await expectBytes('ten copied', 5 * GiB - 10, joint, into);
      await expectBytes('ten copied', sizeBytes - 10, grain.subarray(-10), into);
    }
  });
});

describe('service 8: 5 TB', () => {
  const SPARE = 'four';
  beforeAll(async () => {
    const last = { key: 'five', range: `bytes=0-${5 * GiB - SPARE.length - 1}` };
    await link('most', [...Array(1023).fill({ key: 'five' }), last]);
    expectStatus(await copy('full', 'most'), 200);
    expectStatus(await append('full', SPARE), 200);
  }, 120_000);

  test('append: up to the last byte, and not beyond', async () => {
    const before = await headOf('most');
    expect(before.sizeBytes).toBe(5 * TiB - SPARE.length);
    expectError(await append('most', `${SPARE}!`), TOO_LARGE);
    expect(await headOf('most'), 'as it was').toEqual(before);
    const answer = await append('most', SPARE);
    expectStatus(answer, 200);
    expect(answer.headers['x-amz-object-size']).toBe(String(5 * TiB));
    const full = { sizeBytes: 5 * TiB, etag: answer.headers.etag };
    expectError(await append('most', '!'), TOO_LARGE);
    expect(await headOf('most'), 'as it was').toEqual(full);
    const end = GRAIN_BYTES - SPARE.length;
    const expected = Buffer.concat([grain.subarray(end - 10, end), Buffer.from(SPARE)]);
    await expectBytes('most', 5 * TiB - expected.length, expected);
  });

  test('compose: no more than that; the target stays unchanged', async () => {
    expectError(await compose('mark', ['full', 'mark']), TOO_LARGE);
    expect((await headOf('mark')).sizeBytes).toBe(MARK.length);
  });

  test('service 4.2, copy: any size up to it, as a link, without a multi-part upload', async () => {
    const { etag } = await headOf('full');
    expectStatus(await copy('full copied', 'full'), 200);
    expect(await headOf('full copied')).toEqual({ sizeBytes: 5 * TiB, etag });
    await expectBytes('full copied', 5 * TiB - SPARE.length, Buffer.from(SPARE));
  });
});

// The AWS SDK for JavaScript v3 with its default settings (CRC32 of every body, streams as chunked trailers).
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent as HttpAgent } from 'node:http';
import { Agent } from 'node:https';
import type { LookupFunction } from 'node:net';
import { Readable } from 'node:stream';
import {
  ChecksumAlgorithm,
  CopyObjectCommand,
  CreateBucketCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  NoSuchBucket,
  NoSuchKey,
  NotFound,
  PutObjectCommand,
  paginateListObjectsV2,
  S3Client,
  S3ServiceException,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import {
  type ClientWorld,
  openWorld,
  PROGRAMS,
  type Transport,
  testOver,
} from '../support/clients/clients.ts';

const MiB = 1024 * 1024;
const Bucket = 'sdk-bucket';
const TRANSPORTS: Transport[] = ['http', 'https'];
const DOMAINS = ['s3.one.test', 'two.test'];

async function bytesOf(body: { transformToByteArray(): Promise<Uint8Array> } | undefined): Promise<Buffer> {
  return Buffer.from((await body?.transformToByteArray()) ?? []);
}

/** The same bytes in pieces of odd sizes, as a stream whose length nobody knows. */
function streamOf(body: Buffer): Readable {
  const pieces: Buffer[] = [];
  for (let at = 0; at < body.length; at += 77_777) pieces.push(body.subarray(at, at + 77_777));
  return Readable.from(pieces);
}

describe.each(TRANSPORTS)('AWS SDK for JavaScript over %s', (transport) => {
  const test = testOver(transport);
  let world: ClientWorld;
  let s3: S3Client;

  beforeAll(async () => {
    world = await openWorld({ transport, settings: { domain: DOMAINS.join(',') } });
    const { server, caFile } = world;
    s3 = new S3Client({
      endpoint: server.endpoint,
      region: 'us-east-1',
      forcePathStyle: true,
      credentials: { accessKeyId: server.accessKey, secretAccessKey: server.secretKey },
      ...(caFile !== undefined && {
        requestHandler: { httpsAgent: new Agent({ ca: readFileSync(caFile) }) },
      }),
    });
    await s3.send(new CreateBucketCommand({ Bucket }));
  });
  afterAll(async () => {
    s3.destroy();
    await world.close();
  });

  test.each([0, 1, 65_536, MiB + 1, 6 * MiB])('puts and gets %i bytes', async (sizeBytes) => {
    const Body = randomBytes(sizeBytes);
    const Key = `sizes/${sizeBytes}`;
    const put = await s3.send(new PutObjectCommand({ Bucket, Key, Body, Metadata: { a: 'b c' } }));
    expect(put.ETag).toBe(`"${createHash('md5').update(Body).digest('hex')}"`);
    const got = await s3.send(new GetObjectCommand({ Bucket, Key }));
    expect((await bytesOf(got.Body)).equals(Body)).toBe(true);
    expect(got).toMatchObject({ ContentLength: sizeBytes, Metadata: { a: 'b c' }, ETag: put.ETag });
    const head = await s3.send(new HeadObjectCommand({ Bucket, Key, ChecksumMode: 'ENABLED' }));
    expect(head.ChecksumCRC32).toBe(put.ChecksumCRC32);
  });

  test('puts a stream of known length with a trailing checksum', async () => {
    const body = randomBytes(3 * MiB + 5);
    await s3.send(
      new PutObjectCommand({ Bucket, Key: 'stream', Body: streamOf(body), ContentLength: body.length }),
    );
    const got = await s3.send(new GetObjectCommand({ Bucket, Key: 'stream' }));
    expect((await bytesOf(got.Body)).equals(body)).toBe(true);
  });

  test.each(Object.values(ChecksumAlgorithm).filter((name) => /^(CRC|SHA1$|SHA256$)/.test(name)))(
    'puts with %s and verifies it on the way back',
    async (algorithm) => {
      const body = randomBytes(MiB + 3);
      const Key = `checksums/${algorithm}`;
      await s3.send(new PutObjectCommand({ Bucket, Key, Body: body, ChecksumAlgorithm: algorithm }));
      const got = await s3.send(new GetObjectCommand({ Bucket, Key, ChecksumMode: 'ENABLED' }));
      expect((await bytesOf(got.Body)).equals(body)).toBe(true);
      expect(got).toHaveProperty(`Checksum${algorithm}`, expect.any(String));
    },
  );

  test.each([0, MiB, 12 * MiB + 1])('uploads a stream of %i bytes of unknown length', async (sizeBytes) => {
    const body = randomBytes(sizeBytes);
    const Key = `upload/${sizeBytes}`;
    await new Upload({ client: s3, params: { Bucket, Key, Body: streamOf(body) } }).done();
    const got = await s3.send(new GetObjectCommand({ Bucket, Key }));
    expect((await bytesOf(got.Body)).equals(body)).toBe(true);
    if (sizeBytes > 5 * MiB) expect(got.ETag).toMatch(/-3"$/);
  });

  test('lists by pages, with and without folders', async () => {
    const keys = Array.from({ length: 23 }, (_, n) => `list/${n % 2}/ö ${String(n).padStart(2, '0')}`);
    await Promise.all(keys.map((Key) => s3.send(new PutObjectCommand({ Bucket, Key, Body: 'x' }))));
    const found: (string | undefined)[] = [];
    for await (const page of paginateListObjectsV2(
      { client: s3, pageSize: 5 },
      { Bucket, Prefix: 'list/' },
    )) {
      found.push(...(page.Contents ?? []).map((object) => object.Key));
    }
    expect(found).toEqual(keys.toSorted());
    const folders: (string | undefined)[] = [];
    const query = { Bucket, Prefix: 'list/', Delimiter: '/' };
    for await (const page of paginateListObjectsV2({ client: s3, pageSize: 1 }, query)) {
      folders.push(...(page.CommonPrefixes ?? []).map((folder) => folder.Prefix));
    }
    expect(folders).toEqual(['list/0/', 'list/1/']);
    const Objects = keys.map((Key) => ({ Key }));
    const gone = await s3.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects } }));
    expect(gone.Deleted).toHaveLength(23);
  });

  test('copies and deletes', async () => {
    await s3.send(new PutObjectCommand({ Bucket, Key: 'source é', Body: 'copied', ContentType: 'x/y' }));
    const CopySource = `${Bucket}/${encodeURIComponent('source é')}`;
    await s3.send(new CopyObjectCommand({ Bucket, Key: 'target', CopySource }));
    await s3.send(new DeleteObjectCommand({ Bucket, Key: 'source é' }));
    const got = await s3.send(new GetObjectCommand({ Bucket, Key: 'target' }));
    expect([await got.Body?.transformToString(), got.ContentType]).toEqual(['copied', 'x/y']);
  });

  test('presigns puts and gets that anyone can send', async () => {
    const place = { Bucket, Key: 'presigned/a + é' };
    const putUrl = await getSignedUrl(s3, new PutObjectCommand(place), { expiresIn: 60 });
    const getUrl = await getSignedUrl(s3, new GetObjectCommand(place), { expiresIn: 60 });
    const trust = world.caFile === undefined ? [] : ['--cacert', world.caFile];
    const curl = (...args: string[]) => world.run(PROGRAMS.curl, ['-sS', '--fail', ...trust, ...args]);
    await curl('-X', 'PUT', '--data-binary', 'presigned body', '-H', 'content-type:', putUrl);
    expect((await curl(getUrl)).stdout).toBe('presigned body');
  });

  test.each(DOMAINS)(
    'names buckets by hosts under %s, and in the path where they have dots',
    async (domain) => {
      const { server, caFile } = world;
      // No resolver knows these names.
      const lookup: LookupFunction = (_name, options, done) => {
        if (options.all === true) done(null, [{ address: '127.0.0.1', family: 4 }]);
        else done(null, '127.0.0.1', 4);
      };
      const agent =
        caFile === undefined ? new HttpAgent({ lookup }) : new Agent({ lookup, ca: readFileSync(caFile) });
      const client = new S3Client({
        endpoint: server.endpoint.replace('127.0.0.1', domain),
        region: 'us-east-1',
        credentials: { accessKeyId: server.accessKey, secretAccessKey: server.secretKey },
        requestHandler: { httpAgent: agent, httpsAgent: agent },
      });
      const hosts: string[] = [];
      client.middlewareStack.add(
        (next) => (args) => {
          hosts.push((args.request as { hostname: string }).hostname);
          return next(args);
        },
        { step: 'finalizeRequest', priority: 'low' },
      );
      // A wildcard certificate covers one label, so the SDK puts names with dots into the path.
      const dotted = `dots.in.${domain.slice(0, 2)}`;
      const Body = randomBytes(100);
      for (const name of [`sdk-${domain.slice(0, 2)}`, dotted]) {
        await client.send(new CreateBucketCommand({ Bucket: name }));
        await client.send(new PutObjectCommand({ Bucket: name, Key: 'a/b é', Body }));
        const got = await client.send(new GetObjectCommand({ Bucket: name, Key: 'a/b é' }));
        expect((await bytesOf(got.Body)).equals(Body)).toBe(true);
        const inPath = await s3.send(new GetObjectCommand({ Bucket: name, Key: 'a/b é' }));
        expect((await bytesOf(inPath.Body)).equals(Body)).toBe(true);
        const url = new URL(await getSignedUrl(client, new GetObjectCommand({ Bucket: name, Key: 'a/b é' })));
        const resolve = ['--resolve', `${url.hostname}:${url.port}:127.0.0.1`];
        const trust = caFile === undefined ? [] : ['--cacert', caFile];
        await world.run(PROGRAMS.curl, ['-sS', '--fail', ...resolve, ...trust, '-o', '/dev/null', url.href]);
      }
      expect([...new Set(hosts)]).toEqual([`sdk-${domain.slice(0, 2)}.${domain}`, domain]);
      client.destroy();
    },
  );

  test('answers with the errors that the SDK has types for', async () => {
    const send = (Key: string, inBucket = Bucket) => s3.send(new GetObjectCommand({ Bucket: inBucket, Key }));
    await expect(send('missing')).rejects.toBeInstanceOf(NoSuchKey);
    await expect(send('missing', 'sdk-not-there')).rejects.toBeInstanceOf(NoSuchBucket);
    await expect(s3.send(new HeadObjectCommand({ Bucket, Key: 'missing' }))).rejects.toBeInstanceOf(NotFound);
    const part = new UploadPartCommand({ Bucket, Key: 'k', UploadId: 'none', PartNumber: 1, Body: 'x' });
    const error = await s3.send(part).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(S3ServiceException);
    expect(error).toMatchObject({ name: 'NoSuchUpload', $metadata: { httpStatusCode: 404 } });
  });
});

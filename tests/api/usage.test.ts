// Requests and bytes that are counted, to the call and the byte, over a real server: by whom they are paid, and what pays nobody
// (docs/accounts.md). And a recount of what is stored, by the command line.
import { expect, test } from 'vitest';
import { recountUsage, showUsage } from '../../src/cli/usage-command.ts';
import { METERED_NOTHING } from '../../src/types/usage.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { type Access, pathOf, type RawRequest } from '../support/servers/raw-s3.ts';
import { freshWord, useApi } from '../support/servers/s3-api.ts';

const api = useApi({ settings: { 'metering.flushInterval': '1s' } });
const { context, taken } = createPrintedTool();
const options = () => ({ dataDir: api.server.dataDir, json: true });

type Kind = 'get' | 'put' | 'delete' | 'list' | 'head' | 'other';

/** What an account should be charged, counted by its client. */
class Bill {
  readonly figures = { ...METERED_NOTHING };
  /** What is of this bucket. */
  readonly bucket = { ...METERED_NOTHING };

  add(
    kind: Kind,
    bytes: { up?: number; down?: number; wrote?: number; read?: number; deleted?: number },
    isOfBucket = true,
  ) {
    for (const figures of isOfBucket ? [this.figures, this.bucket] : [this.figures]) {
      figures[`${kind}Calls`] += 1;
      figures.uploadBytes += bytes.up ?? 0;
      figures.downloadBytes += bytes.down ?? 0;
      figures.wroteBytes += bytes.wrote ?? 0;
      figures.readBytes += bytes.read ?? 0;
      figures.deleteBytes += bytes.deleted ?? 0;
    }
  }
}

async function usageOf(account: string, bucket?: string) {
  await showUsage(context, account, { ...options(), ...(bucket && { bucket }) });
  const { days } = JSON.parse(taken());
  // A test that runs over midnight has two.
  return days.map(({ day: _day, isClosed: _closed, ...figures }: Record<string, unknown>) => figures).at(-1);
}

test('each request counts once, with the bytes of its bodies, for the owner of the bucket', async () => {
  const account = await api.makeAccount();
  const stranger = await api.makeAccount();
  const bucket = freshWord();
  const bill = new Bill();
  async function call(
    kind: Kind | undefined,
    wanted: RawRequest & { body?: Buffer },
    counted: {
      wrote?: number;
      reads?: boolean;
      deleted?: number;
      isOfBucket?: boolean;
      as?: Access | 'anonymous';
    } = {},
  ) {
    const { as = account, reads, isOfBucket, ...bytes } = counted;
    const { body: _, ...bare } = wanted;
    const answer = as === 'anonymous' ? await api.sendAnonymous(bare) : await api.send(wanted, as);
    const down = wanted.method === 'HEAD' ? 0 : answer.body.length;
    const up = wanted.body?.length ?? 0;
    if (kind !== undefined) bill.add(kind, { ...bytes, up, down, ...(reads && { read: down }) }, isOfBucket);
    return answer.status;
  }
  const path = (key: string) => pathOf(bucket, key);
  const put = (key: string, sizeBytes: number) =>
    call('put', { method: 'PUT', path: path(key), body: Buffer.alloc(sizeBytes) }, { wrote: sizeBytes });
  const statuses = [
    await call('put', { method: 'PUT', path: `/${bucket}` }, { isOfBucket: false }),
    await call('list', { method: 'GET', path: '/' }, { isOfBucket: false }),
    await put('a', 5000),
    await put('a', 100_000),
    await put('b', 7),
    await call('get', { method: 'GET', path: path('a') }, { reads: true }),
    await call(
      'get',
      { method: 'GET', path: path('a'), headers: { range: 'bytes=10-109' } },
      { reads: true },
    ),
    await call('get', { method: 'GET', path: path('missing') }),
    await call('head', { method: 'HEAD', path: path('a') }),
    await call('head', { method: 'HEAD', path: path('missing') }),
    await call('list', { method: 'GET', path: `/${bucket}?list-type=2` }),
    await call('list', { method: 'GET', path: `/${bucket}?versions` }),
    await call('put', { method: 'PUT', path: path('copy'), headers: { 'x-amz-copy-source': path('a') } }),
    await call('put', { method: 'PUT', path: `${path('b')}?append`, body: Buffer.alloc(30) }, { wrote: 30 }),
    await call('other', { method: 'MOVE', path: path('b'), headers: { destination: 'c' } }),
    await call('delete', { method: 'DELETE', path: path('c') }, { deleted: 37 }),
    await call('delete', { method: 'DELETE', path: path('c') }),
  ];
  expect(statuses).toEqual([
    200, 200, 200, 200, 200, 200, 206, 404, 200, 404, 200, 200, 200, 200, 200, 204, 204,
  ]);

  const policy = Buffer.from(
    JSON.stringify({
      Version: '2012-10-17',
      Statement: {
        Effect: 'Allow',
        Principal: '*',
        Action: 's3:GetObject',
        Resource: `arn:aws:s3:::${bucket}/a`,
      },
    }),
  );
  const gets = [
    await call('put', { method: 'PUT', path: `/${bucket}?policy`, body: policy }),
    // What strangers are allowed is paid by the owner; what they are refused is paid by nobody.
    await call('get', { method: 'GET', path: path('a') }, { reads: true, as: 'anonymous' }),
    await call('get', { method: 'GET', path: path('a') }, { reads: true, as: stranger }),
    await call(undefined, { method: 'GET', path: path('copy') }, { as: 'anonymous' }),
    await call(undefined, { method: 'GET', path: path('copy') }, { as: stranger }),
    await call(undefined, { method: 'GET', path: path('a') }, { as: { ...account, secretKey: 'wrong' } }),
    await call(
      undefined,
      {
        method: 'OPTIONS',
        path: path('a'),
        headers: { origin: 'http://example.com', 'access-control-request-method': 'GET' },
      },
      { as: 'anonymous' },
    ),
    // A bucket that there is not is paid by who asks.
    await call('get', { method: 'GET', path: `/${freshWord()}/a` }, { isOfBucket: false }),
  ];
  expect(gets).toEqual([204, 200, 200, 403, 403, 403, 200, 404]);

  const wanted = (figures: typeof METERED_NOTHING) => ({
    ...figures,
    objects: 2,
    rawBytes: 200_000,
    paddedBytes: 200_000,
    metadataBytes: 96,
    deletedObjects: expect.any(Number),
    deletedBytes: expect.any(Number),
  });
  await expect.poll(() => usageOf(account.id), { timeout: 60_000 }).toEqual(wanted(bill.figures));
  expect(await usageOf(account.id, bucket)).toEqual(wanted(bill.bucket));
  expect(await usageOf(stranger.id)).toBeUndefined();
});

test('parts of uploads and many deletions at once count what they store and delete', async () => {
  const account = await api.makeAccount();
  const bucket = await api.makeBucket(account);
  const { UploadId } = await import('@aws-sdk/client-s3').then(({ CreateMultipartUploadCommand }) =>
    account.s3.send(new CreateMultipartUploadCommand({ Bucket: bucket, Key: 'k' })),
  );
  const part = { method: 'PUT', path: `${pathOf(bucket, 'k')}?partNumber=1&uploadId=${UploadId}` };
  expect((await api.send({ ...part, body: Buffer.alloc(6000) }, account)).status).toBe(200);
  for (const key of ['x', 'y'])
    await api.send({ method: 'PUT', path: pathOf(bucket, key), body: Buffer.alloc(100) }, account);
  const { DeleteObjectsCommand } = await import('@aws-sdk/client-s3');
  const Objects = ['x', 'y', 'z'].map((Key) => ({ Key }));
  await account.s3.send(new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects } }));
  await expect
    .poll(() => usageOf(account.id, bucket), { timeout: 60_000 })
    .toMatchObject({ putCalls: 4, deleteCalls: 1, wroteBytes: 6200, deleteBytes: 200, objects: 0 });
});

test('a recount finds all counters of a server right, of one bucket or of all', async () => {
  const bucket = await api.makeBucket();
  await api.put(bucket, 'k', 'x');
  await recountUsage(context, { ...options(), bucket });
  expect(JSON.parse(taken())).toEqual({ bucketCount: 1, wrong: [], isRepaired: false });
  await recountUsage(context, { dataDir: api.server.dataDir });
  expect(taken()).toMatch(/^\d+ buckets were counted\. All counters are right\.$/);
});

test('accounts and days that there are not, and days that are none, are refused', async () => {
  const refused = (account: string | undefined, more: object) =>
    expect(showUsage(context, account, { ...options(), ...more })).rejects;
  await refused('nobody', {}).toThrow(/NoSuchEntity|no such account|no account/i);
  const { id } = await api.makeAccount();
  await refused(id, { from: '2026-02-30' }).toThrow(/from/);
  await refused(id, { from: '2020-01-01' }).toThrow(/400 days/);
  await refused(id, { bucket: 'no-such-bucket-here' }).toThrow(/no bucket/);
  await refused(undefined, { from: '2026-01-01' }).toThrow(/name the account/);
  await showUsage(context, undefined, options());
  expect(JSON.parse(taken())).toEqual({ day: null, accounts: [], total: 0 });
});

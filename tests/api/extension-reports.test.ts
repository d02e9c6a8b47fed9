// What the operator is shown of compositions and of forced deletions, by a server that does other things as well: jobs.test.ts
// and composed.test.ts say more, of one that does nothing else.
import { expect, test } from 'vitest';
import { showComposed } from '../../src/cli/composed-command.ts';
import { showJobs } from '../../src/cli/jobs-command.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { pathOf } from '../support/servers/raw-s3.ts';
import { expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
const { context, taken } = createPrintedTool();
const WITHIN = { timeout: 15_000, interval: 200 };
/** In the metadata, and in chunks. */
const SIZES = { one: 100, two: 300_000 };

const reached = () => ({ endpoint: api.server.endpoint, dataDir: api.server.dataDir, json: true });

async function keptBy(bucket: string): Promise<{ sizeBytes: number; blobCount: number } | undefined> {
  await showComposed(context, reached());
  return JSON.parse(taken()).buckets.find(({ name }: { name: string }) => name === bucket);
}

async function jobOf(bucket: string): Promise<{ state: string; totalCount: number } | undefined> {
  await showJobs(context, reached());
  return JSON.parse(taken()).jobs.find((job: { bucket: string }) => job.bucket === bucket);
}

test('service 4.2, compose rule 6: data is reported until every composition that links to it is gone', async () => {
  const bucket = await api.makeBucket();
  const remove = async (key: string) =>
    expectStatus(await api.send({ method: 'DELETE', path: pathOf(bucket, key) }), 204);
  for (const [key, sizeBytes] of Object.entries(SIZES))
    await api.put(bucket, key, Buffer.alloc(sizeBytes, key));
  const components = Object.keys(SIZES).map((key) => `<Component><Key>${key}</Key></Component>`);
  const body = Buffer.from(`<ComposeRequest>${components.join('')}</ComposeRequest>`);
  for (const key of ['first', 'second'])
    expectStatus(await api.send({ method: 'PUT', path: `${pathOf(bucket, key)}?compose`, body }), 200);
  expect(await keptBy(bucket)).toBeUndefined();
  await remove('one');
  expect(await keptBy(bucket)).toMatchObject({ sizeBytes: SIZES.one, blobCount: 1 });
  await remove('two');
  await remove('first');
  expect(await keptBy(bucket)).toMatchObject({ sizeBytes: SIZES.one + SIZES.two, blobCount: 2 });
  await remove('second');
  expect(await keptBy(bucket)).toBeUndefined();
});

test('service 4.1, DELETE with force_delete: everything in the bucket is deleted, after the answer', async () => {
  const bucket = await api.makeBucket();
  for (let index = 0; index < 5; index++) await api.put(bucket, `key-${index}`, 'x');
  const answer = await api.send({ method: 'DELETE', path: `/${bucket}?force_delete=true` });
  expectStatus(answer, 204);
  expect(await jobOf(bucket)).toMatchObject({ kind: 'empty-bucket', totalCount: 5, errorCount: 0 });
  await expect.poll(async () => (await jobOf(bucket))?.state, WITHIN).toBe('done');
});

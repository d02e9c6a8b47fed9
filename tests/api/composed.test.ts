// holdfast composed: data that compositions alone keep (service 4.2, compose rule 6), in whichever shards they are.
import { afterAll, beforeAll, expect } from 'vitest';
import { showComposed } from '../../src/cli/composed-command.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { ownServerTest as test } from '../support/servers/own-server-test.ts';
import { type RawRequest, send } from '../support/servers/raw-s3.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

/** More than enough to be in several shards. */
const BUCKETS = Array.from({ length: 8 }, (_, index) => `kept-${index}`);
const [FIRST = '', ...OTHERS] = BUCKETS;
const LAST = OTHERS.at(-1) ?? '';
/** In the metadata, and in chunks. */
const SIZES = { one: 100, two: 300_000 };
const ALL_BYTES = SIZES.one + SIZES.two;

const { context, taken } = createPrintedTool();

async function show(json: boolean): Promise<string> {
  await showComposed(context, { dataDir: server.dataDir, ...(json && { json }) });
  return taken();
}
const kept = async (): Promise<{ name: string; sizeBytes: number; blobCount: number }[]> =>
  JSON.parse(await show(true)).buckets;

async function must(wanted: RawRequest): Promise<void> {
  const answer = await send(server, wanted);
  expect(answer.status, `${wanted.method} ${wanted.path}: ${answer.body}`).toBeLessThan(300);
}
const component = (key: string) => `<Component><Key>${key}</Key></Component>`;
const COMPOSITION = Buffer.from(`<ComposeRequest>${component('one')}${component('two')}</ComposeRequest>`);
const remove = (bucket: string, key: string) => must({ method: 'DELETE', path: `/${bucket}/${key}` });

test('service 4.2, compose rule 6: nothing, then what is left of components that were copied to other shards, then nothing', async () => {
  for (const bucket of BUCKETS) await must({ method: 'PUT', path: `/${bucket}` });
  for (const [key, sizeBytes] of Object.entries(SIZES)) {
    await must({ method: 'PUT', path: `/${FIRST}/${key}`, body: Buffer.alloc(sizeBytes, key) });
    const headers = { 'x-amz-copy-source': `/${FIRST}/${key}` };
    for (const bucket of OTHERS) await must({ method: 'PUT', path: `/${bucket}/${key}`, headers });
  }
  for (const bucket of BUCKETS)
    await must({ method: 'PUT', path: `/${bucket}/whole?compose`, body: COMPOSITION });
  expect(await show(false)).toBe('No data is kept by compositions alone.');

  for (const bucket of BUCKETS.slice(0, -1)) for (const key of Object.keys(SIZES)) await remove(bucket, key);
  expect(await kept()).toEqual([]);
  await remove(LAST, 'two');
  expect(await kept()).toMatchObject([{ sizeBytes: SIZES.two, blobCount: 1 }]);
  await remove(LAST, 'one');
  const all = await kept();
  expect(all.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)).toBe(ALL_BYTES);
  expect(all.every(({ name }) => BUCKETS.includes(name))).toBe(true);

  // Where the only composition left is in another shard than the data.
  for (const bucket of BUCKETS.slice(0, -1)) await remove(bucket, 'whole');
  expect(await kept()).toMatchObject([{ name: LAST, sizeBytes: ALL_BYTES, blobCount: 2 }]);
  const [head, line] = (await show(false)).split('\n');
  expect(head).toMatch(/^bucket +kept by compositions alone +pieces$/);
  expect(line).toMatch(new RegExp(`^${LAST} +293 KiB +2$`));

  await remove(LAST, 'whole');
  expect(await kept()).toEqual([]);
});

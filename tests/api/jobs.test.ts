// holdfast jobs, and the metric of jobs, while a bucket that was deleted by force is emptied and when it is.
import { afterAll, beforeAll, expect } from 'vitest';
import { showJobs } from '../../src/cli/jobs-command.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { ownServerTest as test } from '../support/servers/own-server-test.ts';
import { send } from '../support/servers/raw-s3.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

const { context, taken } = createPrintedTool();

async function show(json: boolean): Promise<string> {
  await showJobs(context, { dataDir: server.dataDir, ...(json && { json }) });
  return taken();
}

async function metricOf(state: string): Promise<string | undefined> {
  const text = await (await fetch(`${server.endpoint}/metrics`)).text();
  return new RegExp(`^holdfast_jobs\\{kind="empty-bucket",state="${state}"\\} (\\d+)`, 'm').exec(text)?.[1];
}

test('lists none, then one that empties a bucket, then its end', async () => {
  expect(await show(false)).toBe('There are no jobs.');
  await send(server, { method: 'PUT', path: '/jobs-1' });
  for (let count = 0; count < 3; count++) {
    await send(server, { method: 'PUT', path: `/jobs-1/${count}`, body: Buffer.from('x') });
  }
  expect((await send(server, { method: 'DELETE', path: '/jobs-1?force_delete=true' })).status).toBe(204);
  const first = JSON.parse(await show(true));
  expect(first).toMatchObject({ leftOutCount: 0, missingShards: [] });
  expect(first.jobs).toMatchObject([
    { kind: 'empty-bucket', bucket: 'jobs-1', totalCount: 3, errorCount: 0, shard: expect.any(Number) },
  ]);
  await expect.poll(async () => JSON.parse(await show(true)).jobs[0].state, { timeout: 10_000 }).toBe('done');
  const [head, line] = (await show(false)).split('\n');
  expect(head).toMatch(/^job +bucket +state +progress +began/);
  expect(line).toMatch(/^empty-bucket +jobs-1 +done +3 of 3 \(100 %\) +\d+ s ago/);
  expect([await metricOf('done'), await metricOf('under-way'), await metricOf('refused')]).toEqual([
    ...['1', '0', '0'],
  ]);
});

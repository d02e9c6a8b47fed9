// holdfast fsck against a server in use: what it says, its exit codes, one at a time, and that it ends when it is left.
// Damage of every kind: src/fsck/fsck.test.ts; with a load under way and after kill -9: tests/faults.
import { afterAll, beforeAll, expect } from 'vitest';
import { Refusal } from '../../src/base/refusal.ts';
import { CLEAN, COULD_NOT_RUN, type FsckCommandOptions, runFsck } from '../../src/cli/fsck-command.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { ownServerTest as test } from '../support/servers/own-server-test.ts';
import { send } from '../support/servers/raw-s3.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const MiB = 1024 * 1024;
let server: TestServer;
const { context, taken } = createPrintedTool();

beforeAll(async () => {
  server = await startServer({ settings: { shards: '4' } });
  for (const bucket of ['one', 'two', 'three', 'gone']) await call('PUT', `/fsck-${bucket}`);
  const body = Buffer.alloc(3 * MiB + 5, 'x');
  await call('PUT', '/fsck-one/chunked', { body });
  await call('PUT', '/fsck-one/inline', { body: body.subarray(0, 1000) });
  await call('PUT', '/fsck-one/empty', { body: Buffer.alloc(0) });
  const versioning = '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>';
  await call('PUT', '/fsck-two?versioning=', { body: Buffer.from(versioning) });
  for (const bucket of ['one', 'two', 'three']) {
    for (const key of ['chunked', 'inline', 'empty']) {
      const headers = { 'x-amz-copy-source': `/fsck-one/${key}` };
      await call('PUT', `/fsck-${bucket}/copy-${key}`, { headers });
      if (bucket === 'two') await call('PUT', `/fsck-${bucket}/copy-${key}`, { headers });
    }
  }
  await call('DELETE', '/fsck-two/copy-empty');
  await call('DELETE', '/fsck-one/chunked');
  await call('DELETE', '/fsck-gone');
});
afterAll(() => server.stop());

async function call(
  method: string,
  path: string,
  more: { headers?: Record<string, string>; body?: Buffer } = {},
) {
  const answer = await send(server, { method, path, ...more });
  expect(answer.status, `${method} ${path}: ${answer.body}`).toBeLessThan(300);
}

async function fsck(options: FsckCommandOptions = {}): Promise<{ code: number; text: string }> {
  const code = await runFsck(context, { dataDir: server.dataDir, ...options });
  return { code, text: taken() };
}

test('no finding, in words', async () => {
  const { code, text } = await fsck();
  expect(text).toMatch(/^all agrees: [\d,]+ rows, 1 small bodies, 4 chunks in /m);
  expect(code).toBe(CLEAN);
});

test('no finding, in JSON, with every byte read', async () => {
  const { code, text } = await fsck({ json: true, readData: true });
  const report = JSON.parse(text);
  expect(report).toMatchObject({ state: 'done', readData: true, findings: [], counts: {} });
  expect(report.progress).toMatchObject({ chunkCount: 4, bodyCount: 1 });
  expect(report.progress.readBytes).toBeGreaterThan(3 * MiB);
  expect(code).toBe(CLEAN);
});

test('at full speed: the same', async () => {
  const { code, text } = await fsck({ json: true, fullSpeed: true });
  expect(JSON.parse(text)).toMatchObject({ state: 'done', findings: [], counts: {} });
  expect(code).toBe(CLEAN);
});

test('without a server: exit code 2', async () => {
  const refusal = await fsck({ endpoint: 'http://127.0.0.1:1' }).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(Refusal);
  expect(refusal).toMatchObject({
    exitCode: COULD_NOT_RUN,
    message: expect.stringContaining('cannot reach'),
  });
});

test('a cancelled run: exit code 2, and the next one may begin', async () => {
  const refusal = await fsck({ signal: AbortSignal.abort() }).catch((error: unknown) => error);
  expect(refusal).toMatchObject({ exitCode: COULD_NOT_RUN });
  expect((await fsck()).code).toBe(CLEAN);
});

// holdfast status and holdfast keys, against a server in use. Rotations that are cut short: tests/faults/rotation.test.ts.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { rotateKeys, showKeys } from '../../src/cli/keys-commands.ts';
import { showStatus } from '../../src/cli/status-command.ts';
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

async function run(command: (options: { dataDir: string; json?: boolean }) => Promise<unknown>, json = true) {
  await command({ dataDir: server.dataDir, ...(json && { json }) });
  return taken();
}

const body = Buffer.alloc(3_000_000, 's');
const put = (path: string, bytes = body) => send(server, { method: 'PUT', path, body: bytes });

test('status --json reports what is stored, and on what', async () => {
  await send(server, { method: 'PUT', path: '/status-1' });
  await put('/status-1/chunked');
  await put('/status-1/inline', Buffer.from('small'));
  const status = JSON.parse(await run((options) => showStatus(context, options)));
  expect(status).toMatchObject({
    version: JSON.parse(await readFile(join(import.meta.dirname, '../../package.json'), 'utf8')).version,
    endpoint: server.endpoint,
    accountCount: 1,
    bucketCount: 1,
    objectCount: 2,
    objectBytes: 3_000_005,
    chunkCount: 3,
    clockJumpMs: 0,
    alarms: [],
    damagedChunkCount: 0,
    missingChunkCount: 0,
    keys: { olderKeyIds: [] },
    lastErrors: [],
  });
  expect(status.uptimeMs).toBeGreaterThan(0);
  expect(Date.parse(status.startedAt)).toBeLessThan(Date.now());
  expect(status.diskFreeBytes).toBeGreaterThan(0);
  expect(status.diskTotalBytes).toBeGreaterThan(status.diskFreeBytes);
  expect(status.diskScarceBelowBytes).toBeGreaterThanOrEqual(status.diskFullBelowBytes);
});

test('status for people is a table', async () => {
  const lines = (await run((options) => showStatus(context, options), false)).split('\n');
  expect(lines.map((line) => line.slice(0, 17).trimEnd())).toEqual([
    'version',
    'address',
    'up for',
    'accounts',
    'buckets',
    'objects',
    'chunks',
    'pending reclaim',
    'disk free',
    'large chunks',
    'clock',
    'master keys',
    'last errors',
  ]);
  expect(lines[1]).toBe(`address          ${server.endpoint}`);
  expect(lines[5]).toBe('objects          2, 2.86 MiB');
});

test('keys rotate --wait moves everything under a new key, and every object is still readable', async () => {
  const before = JSON.parse(await run((options) => showKeys(context, options)));
  const after = JSON.parse(await run((options) => rotateKeys(context, { ...options, wait: true })));
  expect(after.activeKeyId).not.toBe(before.activeKeyId);
  expect(after.olderKeyIds).toEqual([]);
  // Two objects and the root account's secret key at the least.
  expect(after.rewrappedCount).toBeGreaterThanOrEqual(3);
  expect((await send(server, { method: 'GET', path: '/status-1/chunked' })).body.equals(body)).toBe(true);
  expect((await send(server, { method: 'GET', path: '/status-1/inline' })).body.toString()).toBe('small');
  expect(await run((options) => showKeys(context, options), false)).toBe(
    `master keys  ${after.activeKeyId} only, no rotation under way`,
  );
});

// Compliance over days, by a server that is started again with a later clock: an object that was held is kept for its days from
// the release on, and settings are locked from their time on.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { systemClock } from '../../src/platform/system-clock.ts';
import { bucketComplianceXml, objectComplianceXml } from '../support/servers/compliance.ts';
import { isServerGiven } from '../support/servers/given-server.ts';
import { ownServerTest as test } from '../support/servers/own-server-test.ts';
import { send } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, fieldsOf } from '../support/servers/s3-api.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const DAY = 24 * 3600_000;
let aheadMs = 0;
const nowMs = () => Date.now() + aheadMs;
let dataDir: string;
let server: TestServer | undefined;

/** The time of a running server does not follow a clock that jumps (R19). */
async function later(ms: number): Promise<void> {
  await server?.stop();
  aheadMs += ms;
  server = await startServer({ dataDir, clock: { ...systemClock, wallMs: nowMs } });
}

beforeAll(async () => {
  if (isServerGiven()) return;
  dataDir = await mkdtemp(join(tmpdir(), 'holdfast-compliance-'));
  await later(0);
});
afterAll(async () => {
  if (server === undefined) return;
  await server.stop();
  await rm(dataDir, { recursive: true });
});

function request(method: string, path: string, text?: string) {
  const access = { ...must(server, 'a test is running'), nowMs };
  return send(access, { method, path, ...(text !== undefined && { body: Buffer.from(text) }) });
}

const denied = { status: 403, code: 'AccessDenied' } as const;

test('a held object goes days after its release, and not before', async () => {
  expectStatus(await request('PUT', '/held'), 200);
  const settings = bucketComplianceXml({ Status: 'enabled', RetentionDays: 2, ConditionalHold: true });
  expectStatus(await request('PUT', '/held?compliance', settings), 200);
  expectStatus(await request('PUT', '/held/k', 'kept'), 200);
  await later(3 * DAY);
  expectError(await request('DELETE', '/held/k'), denied);
  const release = objectComplianceXml({ ConditionalHold: false });
  expectStatus(await request('PUT', '/held/k?compliance', release), 200);
  const { RetentionTime = '' } = fieldsOf(await request('GET', '/held/k?compliance'));
  expect(Math.abs(Date.parse(RetentionTime) - nowMs() - 2 * DAY)).toBeLessThan(DAY / 2);
  await later(DAY);
  expectError(await request('DELETE', '/held/k'), denied);
  expectError(await request('PUT', '/held/k', 'other'), denied);
  await later(DAY + 60_000);
  expectStatus(await request('DELETE', '/held/k'), 204);
  expectStatus(await request('DELETE', '/held'), 204);
});

test('settings are locked from their LockTime on, without another request', async () => {
  expectStatus(await request('PUT', '/locked'), 200);
  const LockTime = new Date(nowMs() + DAY).toISOString();
  const put = (RetentionDays: number) =>
    request('PUT', '/locked?compliance', bucketComplianceXml({ Status: 'enabled', LockTime, RetentionDays }));
  const isLocked = async () => fieldsOf(await request('GET', '/locked?compliance')).IsLocked;
  expectStatus(await put(3), 200);
  expectStatus(await put(2), 200);
  expect(await isLocked()).toBe('false');
  await later(DAY + 60_000);
  expect(await isLocked()).toBe('true');
  expectError(await put(1), denied);
  const off = bucketComplianceXml({ Status: 'disabled' });
  expectError(await request('PUT', '/locked?compliance', off), denied);
  expectStatus(await put(3), 200);
});

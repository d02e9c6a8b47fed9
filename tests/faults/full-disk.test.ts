// A file system that fills up (R20): what grows gets 507 InsufficientStorage while there is still room for the rest;
// reads, lists and deletes go on; and when data is deleted its room comes back, and writes work again.
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ALARMED, showStatus } from '../../src/cli/status-command.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { mountSmallDisk, type SmallDisk } from '../support/disks/small-disk.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { type RawAnswer, type RawRequest, send } from '../support/servers/raw-s3.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const MiB = 1024 * 1024;
const DISK_BYTES = 1024 * MiB;
const RESERVE_BYTES = DISK_BYTES * LIMITS.diskReserveShareMax;
/** Bodies of refused requests are read to their end up to a mebibyte, so that clients see the answer. */
const LARGE = randomBytes(900 * 1024);
const SMALL = randomBytes(20_000);

const disk = mountSmallDisk(DISK_BYTES);
afterAll(() => disk?.unmount());

describe.skipIf(disk === undefined)('a full disk (skipped where nobody may mount one)', () => {
  let server: TestServer;
  let uploadId: string;
  // `skipIf` collects the tests all the same.
  const small = disk as SmallDisk;

  beforeAll(async () => {
    server = await startServer({
      dataDir: join(small.folder, 'data'),
      settings: { 'storage.readingGrace': '1s' },
    });
    expect((await put('/full')).status).toBe(200);
    expect((await put('/full/small', SMALL)).status).toBe(200);
    const { body } = await send(server, { method: 'POST', path: '/full/parts?uploads' });
    uploadId = /<UploadId>(.*)<\/UploadId>/.exec(body.toString())?.[1] ?? '';
  });
  afterAll(() => server?.stop());

  const put = (path: string, body?: Buffer, headers: Record<string, string> = {}) =>
    send(server, { method: 'PUT', path, headers, ...(body && { body }) });
  const statusOf = async (wanted: RawRequest) => (await send(server, wanted)).status;
  const expectFull = ({ status, body }: RawAnswer) => {
    expect(status).toBe(507);
    expect(body.toString()).toContain('<Code>InsufficientStorage</Code>');
  };

  /** Writes until a write is refused; how many were not. */
  async function fill(prefix: string, body: Buffer): Promise<number> {
    let count = 0;
    const answers: RawAnswer[] = [];
    const write = async () => {
      while (answers.length === 0 && count < 5000) {
        const answer = await put(`/full/${prefix}-${count++}`, body);
        if (answer.status !== 200) answers.push(answer);
      }
    };
    await Promise.all([write(), write(), write(), write()]);
    for (const answer of answers) expectFull(answer);
    return count;
  }

  /** Until nothing has been written or removed for a while. */
  async function untilQuiet(): Promise<void> {
    for (let quietCount = 0, lastBytes = -1; quietCount < 15; await sleep(100)) {
      quietCount = small.freeBytes() === lastBytes ? quietCount + 1 : 0;
      lastBytes = small.freeBytes();
    }
  }

  test('chunks are refused before the disk is full', async () => {
    const count = await fill('large', LARGE);
    expect(count).toBeGreaterThan(100);
    // What was let through is still being written out to tables: that, too, the reserve is for.
    expect(small.freeBytes()).toBeGreaterThan(RESERVE_BYTES / 2);
  });

  test('a full disk is an alarm of status, a metric to alert by, and a warning of the log; health stays good', async () => {
    const { context, taken } = createPrintedTool();
    expect(await showStatus(context, { dataDir: server.dataDir, json: true })).toBe(ALARMED);
    const status = JSON.parse(taken());
    expect(status.alarms).toEqual([expect.stringMatching(/^the disk of the data folder is (nearly )?full/)]);
    const text = await (await fetch(`${server.endpoint}/metrics`)).text();
    const bytesOf = (name: string) =>
      Number(new RegExp(`^holdfast_disk_${name}_bytes (.*)$`, 'm').exec(text)?.[1]);
    expect(bytesOf('full_below')).toBe(status.diskFullBelowBytes);
    expect(bytesOf('free')).toBeLessThan(bytesOf('scarce_below'));
    const warnings = server.logs().filter(({ event }) => event === 'disk-full');
    expect(warnings).toEqual([expect.objectContaining({ level: 'warn', refusedCount: 1 })]);
    expect((await fetch(`${server.endpoint}/health/ready`)).status).toBe(200);
  });

  test('all other growth is refused too; reads, lists and deletes continue', async () => {
    const part = `/full/parts?partNumber=1&uploadId=${uploadId}`;
    await untilQuiet();
    small.leave(RESERVE_BYTES - 50 * MiB);
    // By then the server has measured again.
    await sleep(1100);

    expectFull(await put('/full/refused', SMALL));
    expectFull(await put('/full/refused', LARGE));
    expectFull(await put('/full/refused', Buffer.alloc(0)));
    expectFull(await put('/full/refused', undefined, { 'x-amz-copy-source': '/full/large-0' }));
    expectFull(await put('/another-bucket'));
    expectFull(await put(part, SMALL));
    expectFull(await send(server, { method: 'POST', path: '/full/refused?uploads' }));

    expect((await send(server, { method: 'GET', path: '/full/large-0' })).body.equals(LARGE)).toBe(true);
    expect((await send(server, { method: 'GET', path: '/full/small' })).body.equals(SMALL)).toBe(true);
    expect(await statusOf({ method: 'HEAD', path: '/full/refused' })).toBe(404);
    const list = await send(server, { method: 'GET', path: '/full?list-type=2&max-keys=2' });
    expect(list.body.toString()).toContain('<KeyCount>2</KeyCount>');
    expect(await statusOf({ method: 'DELETE', path: '/full/small' })).toBe(204);
    expect(await statusOf({ method: 'DELETE', path: `/full/parts?uploadId=${uploadId}` })).toBe(204);
    expect(await statusOf({ method: 'GET', path: '/full/small' })).toBe(404);
    small.leave('all');
  });

  test('the room of deleted data comes back, and writes work again', async () => {
    const list = await send(server, { method: 'GET', path: '/full?list-type=2' });
    const keys = [...list.body.toString().matchAll(/<Key>(.*?)<\/Key>/g)].map(([, key]) => key ?? '');
    expect(keys.length).toBeGreaterThan(100);
    for (const key of keys) expect(await statusOf({ method: 'DELETE', path: `/full/${key}` })).toBe(204);
    const givenUpAt = performance.now() + 60_000;
    while (small.freeBytes() < DISK_BYTES * 0.8 && performance.now() < givenUpAt) await sleep(200);
    expect(small.freeBytes()).toBeGreaterThan(DISK_BYTES * 0.8);
    expect((await put('/full/again', LARGE)).status).toBe(200);
    expect((await send(server, { method: 'GET', path: '/full/again' })).body.equals(LARGE)).toBe(true);
  });
});

// A rotation of the master key that a kill cuts short: it goes on by itself, and nothing becomes unreadable.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { rotateKeys, showKeys } from '../../src/cli/keys-commands.ts';
import { createPrintedTool } from '../support/printed-tool.ts';
import { answerOf, openRequest, send } from '../support/raw-s3.ts';
import { startServer } from '../support/start-server.ts';

const OBJECTS = 200;
const body = (index: number) => Buffer.alloc(1000 + index, `object ${index} `);

test('kill -9 in the middle of a rotation', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-rotation-'));
  const dataDir = join(folder, 'data');
  const { context, taken } = createPrintedTool();
  const readKeys = async () => {
    // What a rotation has said in between is not of this answer.
    taken();
    await showKeys(context, { dataDir, json: true });
    return JSON.parse(taken()) as { activeKeyId: string; olderKeyIds: string[] };
  };

  const first = await startServer({ child: true, dataDir });
  await send(first, { method: 'PUT', path: '/rotated' });
  for (let index = 0; index < OBJECTS; index++) {
    await send(first, { method: 'PUT', path: `/rotated/${index}`, body: body(index) });
  }
  const before = await readKeys();
  // A request that began before the rotation and does not end: it may still commit under the old key, which must stay.
  const headers = { 'content-length': '10' };
  const slow = openRequest(first, { method: 'PUT', path: '/rotated/slow', headers });
  answerOf(slow).catch(() => {});
  slow.write('12345');
  await send(first, { method: 'HEAD', path: '/rotated' });
  await rotateKeys(context, { dataDir });
  await sleep(1500);
  expect((await readKeys()).olderKeyIds).toEqual([before.activeKeyId]);
  await first.kill('SIGKILL');

  const again = await startServer({ child: true, dataDir });
  for (let keys = await readKeys(); keys.olderKeyIds.length > 0; keys = await readKeys()) await sleep(100);
  for (let index = 0; index < OBJECTS; index++) {
    const { body: read } = await send(again, { method: 'GET', path: `/rotated/${index}` });
    expect(read.equals(body(index))).toBe(true);
  }
  expect((await readKeys()).activeKeyId).not.toBe(before.activeKeyId);
  expect(await again.stop()).toBe(0);
  await rm(folder, { recursive: true });
});

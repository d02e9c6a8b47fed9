// A rotation of the master key that a kill cuts short: it goes on by itself, and nothing becomes unreadable.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { rotateKeys, showKeys } from '../../src/cli/keys-commands.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { answerOf, openRequest, send } from '../support/servers/raw-s3.ts';
import { startServer } from '../support/servers/start-server.ts';

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
  await expect(rotateKeys(context, { dataDir })).rejects.toThrow('under way');
  await first.kill('SIGKILL');

  const again = await startServer({ child: true, dataDir });
  // Waits for the one that is under way, if it still is.
  if ((await readKeys()).olderKeyIds.length > 0) await rotateKeys(context, { dataDir, wait: true });
  expect((await readKeys()).olderKeyIds).toEqual([]);
  for (let index = 0; index < OBJECTS; index++) {
    const { body: read } = await send(again, { method: 'GET', path: `/rotated/${index}` });
    expect(read.equals(body(index))).toBe(true);
  }
  expect((await readKeys()).activeKeyId).not.toBe(before.activeKeyId);
  expect(await again.stop()).toBe(0);
  await rm(folder, { recursive: true });
});

test('a start with the keys of before a rotation ends with a message, and the newest copy starts', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-rotation-'));
  const dataDir = join(folder, 'data');
  const file = join(dataDir, 'master-keys.json');
  const { context, taken } = createPrintedTool();
  const first = await startServer({ child: true, dataDir });
  await send(first, { method: 'PUT', path: '/kept' });
  await send(first, { method: 'PUT', path: '/kept/key', body: body(1) });
  const before = await readFile(file, 'utf8');
  taken();
  await rotateKeys(context, { dataDir, wait: true });
  expect(taken()).toContain('master-keys.json of the server has changed: copy it again');
  const newest = await readFile(file, 'utf8');
  expect(await first.stop()).toBe(0);

  await writeFile(file, before);
  const { activeKeyId } = JSON.parse(newest) as { activeKeyId: string };
  await expect(startServer({ child: true, dataDir })).rejects.toThrow(
    `lacks the master key ${activeKeyId}, which stored data needs`,
  );
  await writeFile(file, newest);
  const again = await startServer({ child: true, dataDir });
  expect((await send(again, { method: 'GET', path: '/kept/key' })).body.equals(body(1))).toBe(true);
  expect(await again.stop()).toBe(0);
  await rm(folder, { recursive: true });
});

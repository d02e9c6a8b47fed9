// A disk that fails in the middle of writing (R20): the write is not acknowledged, requests get 503, the process exits
// with 1, and the next start finds everything that was acknowledged.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { send } from '../support/servers/raw-s3.ts';
import { startServer } from '../support/servers/start-server.ts';

const MiB = 1024 * 1024;

test.each([
  ['metadata', 60_000],
  ['chunks', 300_000],
])('when %s cannot be written', async (_, sizeBytes) => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-failed-disk-'));
  const dataDir = join(folder, 'data');
  const server = await startServer({ child: true, dataDir, fileBytesMax: 4 * MiB });
  expect((await send(server, { method: 'PUT', path: '/failing' })).status).toBe(200);
  const body = (index: number) => Buffer.alloc(sizeBytes, `body ${index} `);
  let acknowledged = 0;
  let refused: { status: number; body: Buffer } | undefined;
  for (let index = 0; index < 200 && refused === undefined; index++) {
    const answer = await send(server, { method: 'PUT', path: `/failing/${index}`, body: body(index) });
    if (answer.status === 200) acknowledged++;
    else refused = answer;
  }
  expect(acknowledged).toBeGreaterThan(5);
  expect([refused?.status, refused?.body.toString()]).toEqual([
    503,
    expect.stringContaining('<Code>ServiceUnavailable</Code>'),
  ]);
  expect(await server.exited).toEqual({ code: 1, signal: null });
  expect(server.logs().filter(({ event }) => event === 'store-failed')).toHaveLength(1);

  const again = await startServer({ child: true, dataDir });
  for (let index = 0; index < acknowledged; index++) {
    const { body: read } = await send(again, { method: 'GET', path: `/failing/${index}` });
    expect(read.equals(body(index)), `object ${index}`).toBe(true);
  }
  expect(await again.stop()).toBe(0);
  await rm(folder, { recursive: true });
});

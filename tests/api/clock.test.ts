// A clock that is more than 7 days ahead at a restart: the server says so until the operator accepts it (R19). That
// nothing goes by age meanwhile: src/metadata/uploads/expire-uploads-worker.test.ts.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { acceptClock } from '../../src/cli/clock-command.ts';
import type { CliContext } from '../../src/cli/connect.ts';
import { showStatus } from '../../src/cli/status-command.ts';
import { systemClock } from '../../src/platform/system-clock.ts';
import { ownServerTest as test } from '../support/servers/own-server-test.ts';
import { startServer } from '../support/servers/start-server.ts';

const DAY = 24 * 3600_000;

test('a jump is reported at every start and in the status until it is accepted, once', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'holdfast-clock-'));
  let aheadMs = 0;
  const nowMs = () => Date.now() + aheadMs;
  let printed: string[] = [];
  const context: CliContext = { env: {}, print: (line) => void printed.push(line), nowMs, sleep };
  const run = async (
    command: typeof acceptClock | typeof showStatus,
    options: { json?: boolean; jumpMs?: string } = {},
  ) => {
    printed = [];
    await command(context, { dataDir, ...options });
    return printed.join('\n');
  };
  const statusMs = async () => JSON.parse(await run(showStatus, { json: true })).clockJumpMs as number;
  const start = async () => {
    const server = await startServer({ dataDir, clock: { ...systemClock, wallMs: nowMs } });
    const warned = server.logs().filter(({ event }) => event === 'clock-jumped');
    return { server, warned };
  };

  let { server, warned } = await start();
  expect([warned, await statusMs()]).toEqual([[], 0]);
  expect(await run(acceptClock)).toContain('nothing to accept');
  await server.stop();

  aheadMs = 8 * DAY;
  for (let round = 0; round < 2; round++) {
    ({ server, warned } = await start());
    expect(warned).toMatchObject([
      { level: 'warn', meaning: expect.stringContaining('holdfast clock accept') },
    ]);
    expect(await statusMs()).toBeGreaterThan(7 * DAY);
    expect(await run(showStatus)).toContain('jumped 8 d');
    if (round === 0) await server.stop();
  }
  const jumpMs = await statusMs();
  expect(await run(acceptClock)).toContain(`holdfast clock accept --jump-ms ${jumpMs}`);
  await expect(run(acceptClock, { jumpMs: String(jumpMs - 1) })).rejects.toThrow(
    /has jumped by \d+ ms by now/,
  );
  await expect(run(acceptClock, { jumpMs: '8d' })).rejects.toThrow('whole number');
  expect(await statusMs()).toBe(jumpMs);
  expect(await run(acceptClock, { jumpMs: String(jumpMs) })).toContain('is accepted');
  expect(await statusMs()).toBe(0);
  await server.stop();

  ({ server, warned } = await start());
  expect([warned, await statusMs()]).toEqual([[], 0]);
  await server.stop();
  await rm(dataDir, { recursive: true });
});

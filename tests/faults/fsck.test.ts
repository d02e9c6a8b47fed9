// holdfast fsck while every kind of change is under way: work on its way is not taken for damage.
// By hand for longer: HOLDFAST_TEST_FSCK_RUNS=100 npm test -- tests/faults/fsck.test.ts
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CliContext } from '../../src/cli/connect.ts';
import { runFsck } from '../../src/cli/fsck-command.ts';
import { createLoad } from '../support/load.ts';
import { startServer, type TestServer } from '../support/start-server.ts';

const RUNS = Number(process.env.HOLDFAST_TEST_FSCK_RUNS ?? 4);
const SEED = process.env.HOLDFAST_TEST_SEED ?? String(Date.now());

let server: TestServer;
beforeAll(async () => {
  server = await startServer({
    child: true,
    settings: { shards: '8', 'storage.readingGrace': '1s' },
  });
});
afterAll(() => server.stop());

test(`a busy server shows nothing in ${RUNS} runs, seed ${SEED}`, {
  timeout: 60_000 + RUNS * 20_000,
}, async () => {
  const load = createLoad({ seed: SEED, workerCount: 6 });
  await load.prepare(server);
  const running = load.run(server);
  for (let run = 0; run < RUNS; run++) {
    const printed: string[] = [];
    const context: CliContext = { env: {}, print: (line) => void printed.push(line), nowMs: Date.now, sleep };
    const code = await runFsck(context, { dataDir: server.dataDir, json: true, readData: run % 2 === 1 });
    const { findings } = JSON.parse(printed.join('\n'));
    expect({ code, findings }, printed.join('\n')).toEqual({ code: 0, findings: [] });
  }
  await server.kill('SIGKILL');
  expect(await running).toEqual([]);
});

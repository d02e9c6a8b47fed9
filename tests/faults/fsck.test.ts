// holdfast fsck while every kind of change is under way: work on its way is not taken for damage. And as a person meets
// it, after damage on the disk: what it prints, and its exit code.
// By hand for longer: HOLDFAST_TEST_FSCK_RUNS=100 npm test -- tests/faults/fsck.test.ts
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { runFsck } from '../../src/cli/fsck-command.ts';
import { TABLES } from '../../src/metadata/schema/keyspace.ts';
import { createLoad } from '../support/load/load.ts';
import { rewriteRows } from '../support/metadata/databases.ts';
import { amountOf, isLongForm } from '../support/run/long-form.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { send } from '../support/servers/raw-s3.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const RUNS = amountOf({ short: 2, long: 50, byHand: process.env.HOLDFAST_TEST_FSCK_RUNS });
const SEED = process.env.HOLDFAST_TEST_SEED ?? String(Date.now());

const folder = mkdtempSync(join(tmpdir(), 'holdfast-fsck-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let server: TestServer;
beforeAll(async () => {
  server = await startServer({
    child: true,
    settings: { shards: '4', 'storage.readingGrace': '1s' },
  });
});
afterAll(() => server.stop());

test(`a busy server has no findings in ${RUNS} runs, seed ${SEED}`, {
  timeout: 120_000 + RUNS * 60_000,
}, async () => {
  const load = createLoad({ seed: SEED, workerCount: 2 });
  await load.prepare(server);
  const running = load.run(server);
  for (let run = 0; run < RUNS; run++) {
    const { context, taken } = createPrintedTool();
    const options = { dataDir: server.dataDir, json: true, readData: run % 2 === 0, fullSpeed: !isLongForm };
    const code = await runFsck(context, options);
    const text = taken();
    const { findings } = JSON.parse(text);
    expect({ code, findings }, text).toEqual({ code: 0, findings: [] });
  }
  await server.kill('SIGKILL');
  expect(await running).toEqual([]);
});

test('damage on the disk is reported line by line, with exit code 1; without a server it is 2', async () => {
  const dataDir = join(folder, 'data');
  const main = join(import.meta.dirname, '..', '..', 'cmd', 'main.ts');
  const run = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [main, 'fsck', '--data-dir', dataDir, ...args],
      { encoding: 'utf8' },
    );
    return { code: status, lines: stdout.trimEnd().split('\n'), stderr };
  };
  const sound = await startServer({ child: true, dataDir, settings: { shards: '2' } });
  await send(sound, { method: 'PUT', path: '/damaged' });
  await send(sound, { method: 'PUT', path: '/damaged/a%20key', body: Buffer.alloc(3_000_000, 'x') });
  expect(run('--read-data').code).toBe(0);
  await sound.stop();
  expect(run()).toMatchObject({ code: 2, stderr: expect.stringContaining('is the server running?') });
  await rewriteRows({ dataDir, database: 'metadata', column: 'rows' }, (rows) => {
    const link = must(
      rows.find(({ key }) => key[2] === TABLES.links.id),
      'a link',
    );
    return [{ key: link.key, value: null }];
  });
  await rewriteRows({ dataDir, database: 'chunks', column: 'data' }, (rows) => {
    const { key, value } = must(rows[1], 'a chunk');
    return [{ key, value: value.slice(1) }];
  });
  const damaged = await startServer({ child: true, dataDir, isDamaged: true });
  const { code, lines } = run('--read-data');
  await damaged.stop();
  expect(lines).toEqual([
    expect.stringMatching(
      /^link-missing shard=1 bucket="damaged" key="a key" version="null" blob="[0-9a-f]{32}" link="[0-9a-f]{32}"$/,
    ),
    expect.stringMatching(/^chunk-damaged shard=1 blob="[0-9a-f]{32}" chunk=1$/),
    expect.stringMatching(/^blob-unlinked shard=1 blob="[0-9a-f]{32}"$/),
    expect.stringMatching(
      /^object-damaged shard=1 bucket="damaged" key="a key" version="null" blob="[0-9a-f]{32}"$/,
    ),
    '1 link-missing: a use of data without its link',
    '1 chunk-damaged: a chunk whose bytes are not those that were stored',
    '1 blob-unlinked: data that nothing links and nothing releases',
    '1 object-damaged: a version, or a part of an upload, whose data is damaged or missing: it has to be uploaded again',
    expect.stringMatching(/^4 found: /),
  ]);
  expect(code).toBe(1);
});

// A table of the chunk store that is gone or cannot be read: the start says so in a sentence, `holdfast salvage` goes on without
// it, the rest is served, and fsck names what has to be uploaded again.
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { salvage } from '../../src/admin/recovery/salvage.ts';
import { runFsck } from '../../src/cli/fsck-command.ts';
import { ALARMED, showStatus } from '../../src/cli/status-command.ts';
import { seededBytes } from '../support/clients/tree.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { pathOf, send } from '../support/servers/raw-s3.ts';
import { startServer } from '../support/servers/start-server.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-lost-table-'));
/** Of a test. */
const dataDir = join(folder, 'data');
/** Three objects, in tables. */
const written = join(folder, 'written');
const KEYS = ['first', 'second', 'third'];
let tablesOf: Map<string, string[]>;
beforeAll(async () => {
  tablesOf = await writeObjects(written, { 'storage.separateFrom': 'never' });
});
beforeEach(() => cpSync(written, dataDir, { recursive: true, preserveTimestamps: true }));
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const BODY = seededBytes('lost table', 1_500_000);

/** Each object in a table of its own, or its rows are: what is in memory is written out at each start. */
async function writeObjects(
  dataDir: string,
  settings: Record<string, string>,
): Promise<Map<string, string[]>> {
  const tablesOf = new Map<string, string[]>();
  const tables = () => readdirSync(join(dataDir, 'chunks')).filter((name) => name.endsWith('.sst'));
  for (const key of [...KEYS, undefined]) {
    const before = new Set(existsSync(join(dataDir, 'chunks')) ? tables() : []);
    const server = await startServer({ child: true, dataDir, settings });
    const last = [...tablesOf.keys()].at(-1);
    if (last !== undefined)
      tablesOf.set(
        last,
        tables().filter((name) => !before.has(name)),
      );
    if (key !== undefined) {
      if (key === KEYS[0]) await send(server, { method: 'PUT', path: '/lost' });
      expect((await send(server, { method: 'PUT', path: pathOf('lost', key), body: BODY })).status).toBe(200);
      tablesOf.set(key, []);
    }
    expect(await server.stop()).toBe(0);
  }
  return tablesOf;
}

test.each([
  ['is missing', (path: string) => rmSync(path)],
  ['is cut short', (path: string) => truncateSync(path, 5000)],
])(
  'a table of chunks that %s stops the start with a sentence; after salvage the rest is served',
  async (_, damage) => {
    for (const name of tablesOf.get('second') ?? []) damage(join(dataDir, 'chunks', name));
    expect(tablesOf.get('second')?.length).toBeGreaterThan(0);
    await expect(startServer({ child: true, dataDir })).rejects.toThrow(
      /ended with 1:\n.*\.sst[\s\S]*If the disk is sound and mounted: `holdfast salvage --data-dir .*` shows what of it is lost/,
    );

    const lines: string[] = [];
    const print = (line: string) => void lines.push(line);
    expect(await salvage({ dataDir, print })).toBe(2);
    expect(lines.at(-1)).toBe('Nothing was changed. --yes takes these tables out, for good.');
    expect(await salvage({ dataDir, print, yes: true })).toBe(0);
    expect(lines).toContainEqual(
      expect.stringMatching(/^Of 0 chunks a row was left, without bytes; \d+ got a new row\.$/),
    );

    const server = await startServer({ child: true, dataDir, isDamaged: true });
    const get = (key: string) => send(server, { method: 'GET', path: pathOf('lost', key) });
    for (const key of ['first', 'third']) expect((await get(key)).body.equals(BODY)).toBe(true);
    expect((await get('second')).status).toBeGreaterThanOrEqual(500);
    const { context, taken } = createPrintedTool();
    expect(await runFsck(context, { dataDir, json: true, fullSpeed: true })).toBe(1);
    const report = JSON.parse(taken()) as { findings: { kind: string; key?: string }[] };
    const named = report.findings.filter(({ kind }) => kind === 'object-damaged').map(({ key }) => key);
    expect(named).toEqual(['second']);
    expect(await showStatus(context, { dataDir })).toBe(ALARMED);
    expect(taken()).toContain('ALARM 2 chunks are missing');
    expect((await send(server, { method: 'PUT', path: pathOf('lost', 'second'), body: BODY })).status).toBe(
      200,
    );
    expect((await get('second')).body.equals(BODY)).toBe(true);
    expect(await server.stop()).toBe(0);
  },
);

test('where chunks lie in extents, a table of their rows that is lost takes none of them along', async () => {
  const settings = { 'storage.separateFrom': '64KiB' };
  rmSync(dataDir, { recursive: true });
  const tablesOfRows = await writeObjects(dataDir, settings);
  for (const name of tablesOfRows.get('second') ?? []) rmSync(join(dataDir, 'chunks', name));
  expect(tablesOfRows.get('second')?.length).toBeGreaterThan(0);
  expect(await salvage({ dataDir, print: () => {}, yes: true })).toBe(0);
  const server = await startServer({ child: true, dataDir, settings });
  for (const key of KEYS) {
    const { body } = await send(server, { method: 'GET', path: pathOf('lost', key) });
    expect(body.equals(BODY), key).toBe(true);
  }
  expect(await server.stop()).toBe(0);
});

test('salvage of a complete folder changes nothing', async () => {
  const lines: string[] = [];
  expect(await salvage({ dataDir, print: (line) => void lines.push(line) })).toBe(0);
  expect(lines).toEqual(['No table is missing. --yes also tries to open all of them.']);
});

test('a damaged metadata database is refused with what to do', async () => {
  const metadata = join(dataDir, 'metadata');
  const [table] = readdirSync(metadata).filter((name) => name.endsWith('.sst'));
  rmSync(join(metadata, table ?? ''));
  await expect(startServer({ child: true, dataDir })).rejects.toThrow(
    /ended with 1:\n[\s\S]*restore the data folder from a backup/,
  );
});

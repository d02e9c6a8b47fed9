// Damage on the disk, done while the server is off: a read answers an error, or its connection is cut; it never gives
// wrong bytes, nor an end that looks like the end. What is not damaged is served on.
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { runFsck } from '../../src/cli/fsck-command.ts';
import { ALARMED, showStatus } from '../../src/cli/status-command.ts';
import { openExtentFolder } from '../../src/platform/extents/extent-io.ts';
import { BLOCK_BYTES } from '../../src/platform/extents/extent-record.ts';
import { recordsOf } from '../../src/platform/extents/extents.ts';
import { EXTENTS_FOLDER } from '../../src/platform/extents/open-separated.ts';
import type { KvPut, KvRow } from '../../src/ports/kv.ts';
import { seededBytes } from '../support/clients/tree.ts';
import { rewriteRows } from '../support/metadata/databases.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { answerOf, openRequest, pathOf, send } from '../support/servers/raw-s3.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const MiB = 1024 * 1024;
/** Three chunks and a rest. */
const CHUNKED = seededBytes('damaged', 3 * MiB + 1000);
const INLINE = seededBytes('inline', 5000);

type Change = Omit<KvPut, 'column'>;

/** What may become of the third chunk, of four. */
const CHUNK_DAMAGES: [string, (third: KvRow, second: KvRow) => Change][] = [
  ['a flipped bit', ({ key, value }) => ({ key, value: flipped(value, 70_000) })],
  ['a flipped last bit', ({ key, value }) => ({ key, value: flipped(value, value.length - 1) })],
  ['bytes missing at the end', ({ key, value }) => ({ key, value: value.slice(0, -5) })],
  ['no bytes', ({ key }) => ({ key, value: new Uint8Array() })],
  ['the chunk gone', ({ key }) => ({ key, value: null })],
  ['another chunk in its place', ({ key }, second) => ({ key, value: second.value })],
];
const BODY_DAMAGES: [string, (value: Uint8Array) => Uint8Array | null][] = [
  ['a flipped bit', (value) => flipped(value, 100)],
  ['bytes missing', (value) => value.slice(0, -1)],
  ['the body gone', () => null],
];

const folder = mkdtempSync(join(tmpdir(), 'holdfast-damage-'));
const dataDir = join(folder, 'data');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function flipped(bytes: Uint8Array, at: number): Buffer {
  const changed = Buffer.from(bytes);
  changed[at] = must(changed[at], 'within the value') ^ 1;
  return changed;
}

/** What a client gets of an object; undefined when the answer breaks off. */
async function read(
  server: TestServer,
  key: string,
  range?: string,
): Promise<{ status: number; bytes?: Buffer }> {
  const headers = range === undefined ? {} : { range: `bytes=${range}` };
  const request = openRequest(server, { method: 'GET', path: pathOf('damage', key), headers });
  request.on('error', () => {});
  request.end();
  const answer = await answerOf(request);
  const status = must(answer.statusCode, 'an answer has a status');
  try {
    return { status, bytes: await buffer(answer) };
  } catch {
    return { status };
  }
}

/** Either an error of the server, or an answer that broke off. */
function expectRefused(got: { status: number; bytes?: Buffer }): void {
  if (got.status >= 500) return;
  expect(got.status).toBeLessThan(300);
  expect(got.bytes).toBeUndefined();
}

describe('damaged rows', () => {
  let server: TestServer;
  beforeAll(async () => {
    const writer = await startServer({ child: true, dataDir });
    const put = (key: string, body: Buffer) =>
      send(writer, { method: 'PUT', path: pathOf('damage', key), body });
    await send(writer, { method: 'PUT', path: '/damage' });
    await put('whole', CHUNKED);
    await put('whole inline', INLINE);
    // One after the other: chunks and bodies lie in the order of their births.
    for (const [what] of CHUNK_DAMAGES) await put(`chunk ${what}`, CHUNKED);
    for (const [what] of BODY_DAMAGES) await put(`inline ${what}`, INLINE);
    expect(await writer.stop()).toBe(0);
    await rewriteRows({ dataDir, database: 'chunks', column: 'data' }, (rows) => {
      expect(rows).toHaveLength(4 * (1 + CHUNK_DAMAGES.length));
      return CHUNK_DAMAGES.map(([, change], index) => {
        const chunk = (at: number) => must(rows[4 * (index + 1) + at], 'a chunk');
        return change(chunk(2), chunk(1));
      });
    });
    await rewriteRows({ dataDir, database: 'metadata', column: 'bodies' }, (rows) => {
      const bodies = rows.filter(({ value }) => value.length >= INLINE.length);
      expect(bodies).toHaveLength(1 + BODY_DAMAGES.length);
      return BODY_DAMAGES.map(([, change], index) => {
        const { key, value } = must(bodies[index + 1], 'a body');
        return { key, value: change(value) };
      });
    });
    const settings = { 'storage.scrubPeriod': '10s', 'storage.readingGrace': '1s' };
    server = await startServer({ child: true, dataDir, isDamaged: true, settings });
  });
  afterAll(async () => expect(await server.stop()).toBe(0));

  test.each(CHUNK_DAMAGES)('%s in the third chunk', async (what) => {
    const key = `chunk ${what}`;
    expectRefused(await read(server, key));
    const within = await read(server, key, `${2 * MiB + 5}-${2 * MiB + 9}`);
    // Pieces of the chunk that are whole are served.
    if (within.bytes?.equals(CHUNKED.subarray(2 * MiB + 5, 2 * MiB + 10)) !== true) expectRefused(within);
    const before = await read(server, key, `0-${2 * MiB - 1}`);
    expect(before.bytes?.equals(CHUNKED.subarray(0, 2 * MiB))).toBe(true);
    const behind = await read(server, key, '-10');
    expect(behind.bytes?.equals(CHUNKED.subarray(-10))).toBe(true);
  });

  test.each(BODY_DAMAGES)('%s in an inline body', async (what) => {
    expectRefused(await read(server, `inline ${what}`));
  });

  test('damage that readers and the scrub find reaches metrics, status and the log, also after a restart', async () => {
    const figures = async () => {
      const text = await (await fetch(`${server.endpoint}/metrics`)).text();
      const read = (name: string) => Number(new RegExp(`^holdfast_${name} (.*)$`, 'm').exec(text)?.[1]);
      const names = ['damaged_chunks_found_total', 'lost_chunks', 'disk_scrub_found_chunks'];
      return Object.fromEntries(names.map((name) => [name, read(name)]));
    };
    const { context, taken } = createPrintedTool();
    // All of the six, each once, whoever has found it.
    const found = { damaged_chunks_found_total: 6, lost_chunks: 6, disk_scrub_found_chunks: 6 };
    await expect.poll(figures, { timeout: 120_000 }).toEqual(found);
    const named = CHUNK_DAMAGES.map(([what]) => ({
      bucket: 'damage',
      key: `chunk ${what}`,
      version: 'null',
      blob: expect.any(String),
    }));
    const damage = async () => {
      expect(await showStatus(context, { dataDir, json: true })).toBe(ALARMED);
      return JSON.parse(taken());
    };
    await expect.poll(async () => (await damage()).damage.objects, { timeout: 60_000 }).toHaveLength(6);
    const status = await damage();
    expect(status).toMatchObject({ damagedChunkCount: 6, missingChunkCount: 0 });
    expect(status.damage).toEqual({ objects: expect.arrayContaining(named), unnamed: [], blobCount: 6 });
    expect(status.alarms).toEqual([
      expect.stringContaining('6 chunks are damaged: bucket="damage" key="chunk '),
    ]);
    expect(server.logs()).toContainEqual(
      expect.objectContaining({ event: 'object-damaged', bucket: 'damage', key: 'chunk no bytes' }),
    );
    const metrics = await (await fetch(`${server.endpoint}/metrics`)).text();
    expect(metrics).not.toContain('chunk no bytes');
    expect(server.logs().filter(({ event }) => event === 'chunk-lost')).toHaveLength(6);
    expect(server.logs()).toContainEqual(
      expect.objectContaining({
        event: 'data-of-a-version-is-lost',
        bucket: 'damage',
        key: 'chunk the chunk gone',
        version: expect.any(String),
      }),
    );
    expect(await server.stop()).toBe(0);
    server = await startServer({
      child: true,
      dataDir,
      isDamaged: true,
      settings: { 'storage.readingGrace': '1s' },
    });
    expect(await figures()).toMatchObject({ damaged_chunks_found_total: 0, lost_chunks: 6 });
    const answer = await send(server, { method: 'DELETE', path: pathOf('damage', 'chunk the chunk gone') });
    expect(answer.status).toBe(204);
    await expect.poll(figures, { timeout: 120_000 }).toMatchObject({ lost_chunks: 5 });
  });

  test('intact objects are served', async () => {
    expect((await read(server, 'whole')).bytes?.equals(CHUNKED)).toBe(true);
    expect((await read(server, 'whole inline')).bytes?.equals(INLINE)).toBe(true);
  });
});

function flipInFile(path: string, at: number): void {
  const file = openSync(path, 'r+');
  const byte = Buffer.alloc(1);
  readSync(file, byte, 0, 1, at);
  writeSync(file, flipped(byte, 0), 0, 1, at);
  closeSync(file);
}

test('flipped bits in a head and in a body of an extent', async () => {
  const extents = await openExtentFolder(join(dataDir, 'chunks', EXTENTS_FOLDER));
  // The first object was written first.
  const [first] = await extents.list();
  const { id } = must(first, 'an extent');
  const whole: { at: number; index: number }[] = [];
  const file = extents.file(id);
  for await (const { head, offset } of recordsOf(file))
    if (whole.push({ at: offset, index: Buffer.from(head.key).readUInt32BE(16) }) === 3) break;
  await file.close();
  const at = (index: number) => must(whole.find((record) => record.index === index)?.at, 'a chunk of it');
  const path = join(dataDir, 'chunks', EXTENTS_FOLDER, `${String(id).padStart(10, '0')}.extent`);
  flipInFile(path, at(0) + BLOCK_BYTES + 70_000);
  flipInFile(path, at(2) + 20);
  const server = await startServer({ child: true, dataDir, isDamaged: true });
  const ofChunk = (index: number) => read(server, 'whole', `${index * MiB + 66_000}-${index * MiB + 80_000}`);
  expectRefused(await ofChunk(0));
  expectRefused(await ofChunk(2));
  expectRefused(await read(server, 'whole'));
  expect((await ofChunk(1)).bytes?.equals(CHUNKED.subarray(MiB + 66_000, MiB + 80_001))).toBe(true);
  const { context, taken } = createPrintedTool();
  expect(await runFsck(context, { dataDir, json: true, fullSpeed: true, readData: true })).toBe(1);
  const { findings } = JSON.parse(taken()) as { findings: { kind: string; key?: string }[] };
  const named = findings.filter(({ kind }) => kind === 'object-damaged').map(({ key }) => key);
  expect(named).toContain('whole');
  expect(named).not.toContain('whole inline');
  expect(await server.stop()).toBe(0);
});

test('a flipped bit in a table with bytes of chunks', async () => {
  const other = join(folder, 'tables');
  const settings = { 'storage.separateFrom': 'never' };
  const writer = await startServer({ child: true, dataDir: other, settings });
  await send(writer, { method: 'PUT', path: '/damage' });
  for (const [key, body] of Object.entries({ whole: CHUNKED, 'whole inline': INLINE }))
    expect((await send(writer, { method: 'PUT', path: pathOf('damage', key), body })).status).toBe(200);
  expect(await writer.stop()).toBe(0);
  // Opening writes what is in the log into a table.
  await rewriteRows({ dataDir: other, database: 'chunks', column: 'data' }, () => []);
  const chunks = join(other, 'chunks');
  const tables = readdirSync(chunks)
    .filter((name) => name.endsWith('.sst'))
    .map((name) => join(chunks, name));
  const largest = must(tables.sort((a, b) => statSync(b).size - statSync(a).size)[0], 'a table');
  expect(statSync(largest).size).toBeGreaterThan(CHUNKED.length / 2);
  flipInFile(largest, MiB / 2);
  const server = await startServer({ child: true, dataDir: other, isDamaged: true, settings });
  const reads = await Promise.all(Array.from({ length: 5 }, () => read(server, 'whole')));
  for (const got of reads) expectRefused(got);
  expect((await read(server, 'whole inline')).bytes?.equals(INLINE)).toBe(true);
  expect(await server.stop()).toBe(0);
});

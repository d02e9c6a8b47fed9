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
import { afterAll, beforeEach, expect, test } from 'vitest';
import { openRocksdbKv } from '../../src/adapters/rocksdb-kv.ts';
import { must } from '../../src/lib/assert.ts';
import type { KvPort, KvPut } from '../../src/ports/kv.ts';
import { answerOf, openRequest, send } from '../support/raw-s3.ts';
import { startServer, type TestServer } from '../support/start-server.ts';
import { seededBytes } from '../support/tree.ts';

const MiB = 1024 * 1024;
/** Three chunks and a rest. */
const CHUNKED = seededBytes('damaged', 3 * MiB + 1000);
const INLINE = seededBytes('inline', 5000);
const COLUMNS = {
  chunks: { data: { reads: 'async', content: 'ciphertext' }, index: { reads: 'sync', content: 'rows' } },
  metadata: { rows: { reads: 'sync', content: 'rows' }, bodies: { reads: 'sync', content: 'ciphertext' } },
} as const;

const folder = mkdtempSync(join(tmpdir(), 'holdfast-damage-'));
let dataDir = '';
let count = 0;

beforeEach(async () => {
  dataDir = join(folder, `data-${count++}`);
  const server = await startServer({ child: true, dataDir });
  await send(server, { method: 'PUT', path: '/damage' });
  await send(server, { method: 'PUT', path: '/damage/chunked', body: CHUNKED });
  await send(server, { method: 'PUT', path: '/damage/inline', body: INLINE });
  expect(await server.stop()).toBe(0);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What a client gets of an object; undefined when the answer breaks off. */
async function read(
  server: TestServer,
  key: string,
  range?: string,
): Promise<{ status: number; bytes?: Buffer }> {
  const headers = range === undefined ? {} : { range: `bytes=${range}` };
  const request = openRequest(server, { method: 'GET', path: `/damage/${key}`, headers });
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
  expect(got.status).toBe(200);
  expect(got.bytes).toBeUndefined();
}

/** Opens a database of the stopped server, rewrites rows of one column, and starts the server again. */
async function damage(
  database: keyof typeof COLUMNS,
  column: string,
  change: (rows: { key: Uint8Array; value: Uint8Array }[]) => Omit<KvPut, 'column'>[],
): Promise<TestServer> {
  const kv: KvPort = await openRocksdbKv({ folder: join(dataDir, database), columns: COLUMNS[database] });
  const rows = await kv.range({ column, gte: new Uint8Array(), lt: Buffer.alloc(64, 0xff), limit: 1000 });
  await kv.commit(change(rows).map((put) => ({ column, ...put })));
  await kv.close();
  return startServer({ child: true, dataDir });
}

function flipped(bytes: Uint8Array, at: number): Buffer {
  const changed = Buffer.from(bytes);
  changed[at] = must(changed[at], 'within the value') ^ 1;
  return changed;
}

type Row = { key: Uint8Array; value: Uint8Array };
const DAMAGES: [string, (third: Row, second: Row) => Omit<KvPut, 'column'>[]][] = [
  ['a flipped bit', ({ key, value }) => [{ key, value: flipped(value, 70_000) }]],
  ['a flipped last bit', ({ key, value }) => [{ key, value: flipped(value, value.length - 1) }]],
  ['bytes missing at the end', ({ key, value }) => [{ key, value: value.slice(0, -5) }]],
  ['no bytes', ({ key }) => [{ key, value: new Uint8Array() }]],
  ['the chunk gone', ({ key }) => [{ key, value: null }]],
  ['another chunk in its place', ({ key }, second) => [{ key, value: second.value }]],
];

test.each(DAMAGES)('%s in the third chunk', async (_what, change) => {
  const server = await damage('chunks', 'data', (rows) => {
    expect(rows).toHaveLength(4);
    return change(must(rows[2], 'the third'), must(rows[1], 'the second'));
  });
  expectRefused(await read(server, 'chunked'));
  const within = await read(server, 'chunked', `${2 * MiB + 5}-${2 * MiB + 9}`);
  expect(within.status >= 500 || within.bytes === undefined).toBe(true);
  const before = await read(server, 'chunked', `0-${2 * MiB - 1}`);
  expect(before.bytes?.equals(CHUNKED.subarray(0, 2 * MiB))).toBe(true);
  const behind = await read(server, 'chunked', '-10');
  expect(behind.bytes?.equals(CHUNKED.subarray(-10))).toBe(true);
  expect((await read(server, 'inline')).bytes?.equals(INLINE)).toBe(true);
  expect(await server.stop()).toBe(0);
});

test.each([
  ['a flipped bit', (value: Uint8Array) => flipped(value, 100)],
  ['bytes missing', (value: Uint8Array) => value.slice(0, -1)],
  ['the body gone', () => null],
])('%s in an inline body', async (_what, change) => {
  const server = await damage('metadata', 'bodies', (rows) => {
    const { key, value } = must(
      rows.find((row) => row.value.length >= INLINE.length),
      'the body',
    );
    return [{ key, value: change(value) }];
  });
  expectRefused(await read(server, 'inline'));
  expect((await read(server, 'chunked')).bytes?.equals(CHUNKED)).toBe(true);
  expect(await server.stop()).toBe(0);
});

test('a flipped bit in a file of the database', async () => {
  // Opening writes what was in the log into a table.
  await (await startServer({ child: true, dataDir })).stop();
  const chunks = join(dataDir, 'chunks');
  const tables = readdirSync(chunks)
    .filter((name) => name.endsWith('.sst'))
    .map((name) => join(chunks, name));
  const largest = must(tables.sort((a, b) => statSync(b).size - statSync(a).size)[0], 'a table');
  expect(statSync(largest).size).toBeGreaterThan(CHUNKED.length);
  const file = openSync(largest, 'r+');
  const byte = Buffer.alloc(1);
  readSync(file, byte, 0, 1, MiB);
  writeSync(file, flipped(byte, 0), 0, 1, MiB);
  closeSync(file);
  const server = await startServer({ child: true, dataDir });
  expectRefused(await read(server, 'chunked'));
  expect((await read(server, 'inline')).bytes?.equals(INLINE)).toBe(true);
  expect(await server.stop()).toBe(0);
});

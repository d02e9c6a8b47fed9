// What is acknowledged is synced: under strace, between the write of a group to the store's log and the first answer
// for it there is an fdatasync of that log. Each small PUT is found in the log by its key, which is not encrypted, and
// in the answers by its ETag, the MD5 of a body that no other has.
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { programPath } from '../support/clients/client-programs.ts';
import { send } from '../support/servers/raw-s3.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const CALLS = 'openat,write,writev,pwrite64,pwritev,sendto,sendmsg,fsync,fdatasync,sync_file_range';
const MiB = 1024 * 1024;

/** A system call that has ended; lines of the trace at which it began and ended. */
interface Call {
  name: string;
  arguments: string;
  beganAt: number;
  endedAt: number;
}

let server: TestServer;
const folder = mkdtempSync(join(tmpdir(), 'holdfast-strace-'));

beforeAll(async () => {
  server = await startServer({ child: true });
  await send(server, { method: 'PUT', path: '/synced' });
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The system calls of the server, all threads, while `work` runs. */
async function traceWhile(name: string, work: () => Promise<void>): Promise<Call[]> {
  const file = join(folder, name);
  const args = ['-f', '-y', '-s', '65536', '-e', `trace=${CALLS}`, '-o', file, '-p', String(server.pid)];
  const strace = spawn(programPath('strace') ?? 'strace', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(strace, 'exit');
  await new Promise<void>((resolve, reject) => {
    let said = '';
    strace.stderr.on('data', (text) => {
      said += text;
      if (said.includes('attached')) resolve();
    });
    strace.once('exit', () => reject(new Error(`strace ended: ${said}`)));
  });
  await work();
  strace.kill('SIGINT');
  await ended;
  return parseTrace(readFileSync(file, 'latin1'));
}

/** Joins the two halves of a call during which another thread's call was written. */
function parseTrace(text: string): Call[] {
  const open = new Map<string, Call>();
  const calls: Call[] = [];
  for (const [at, line] of text.split('\n').entries()) {
    const begun = /^(\d+) +(\w+)\((.*)$/.exec(line);
    const resumed = /^(\d+) +<\.\.\. \w+ resumed>/.exec(line);
    if (begun !== null) {
      const [, pid = '', name = '', rest = ''] = begun;
      const call = { name, arguments: rest, beganAt: at, endedAt: at };
      if (rest.endsWith('<unfinished ...>')) open.set(pid, call);
      else calls.push(call);
    } else if (resumed !== null) {
      const call = open.get(resumed[1] ?? '');
      if (call !== undefined) calls.push({ ...call, endedAt: at });
    }
  }
  return calls.sort((a, b) => a.beganAt - b.beganAt);
}

const isWrite = (call: Call) => /^p?write|^send/.test(call.name);
const isSync = (call: Call) => /sync$/.test(call.name);
/** `12</data/db/000004.log>`: what a call is about. */
const targetOf = (call: Call) => /^\d+<[^>]*>/.exec(call.arguments)?.[0] ?? '';
const isOfLog = (call: Call) => /\.log>$/.test(targetOf(call));

/** The sync of the same log that began after this write and ended before this answer. */
function syncBetween(calls: Call[], bounds: { write: Call; answer: Call }): Call | undefined {
  const { write, answer } = bounds;
  return calls.find(
    (call) =>
      isSync(call) &&
      targetOf(call) === targetOf(write) &&
      call.beganAt > write.endedAt &&
      call.endedAt < answer.beganAt,
  );
}

function answerWith(calls: Call[], etag: string): Call | undefined {
  return calls.find(
    (call) =>
      isWrite(call) &&
      !isOfLog(call) &&
      call.arguments.includes('HTTP/1.1 200') &&
      call.arguments.includes(etag),
  );
}

test('small bodies: each answer follows a sync of the log that holds its key', async () => {
  const bodies = new Map<string, Buffer>();
  for (let index = 0; index < 48; index++) {
    // The log cuts records at its block ends: one half of a name is whole even then.
    bodies.set(`first-half-${index}-of-two/second-half-${index}-of-two`, Buffer.from(`body ${index}`));
  }
  const calls = await traceWhile('small', async () => {
    const answers = [...bodies].map(([key, body]) =>
      send(server, { method: 'PUT', path: `/synced/${key}`, body }),
    );
    for (const { status } of await Promise.all(answers)) expect(status).toBe(200);
  });
  for (const [key, body] of bodies) {
    const write = calls.find(
      (call) =>
        isWrite(call) && isOfLog(call) && key.split('/').some((half) => call.arguments.includes(half)),
    );
    const answer = answerWith(calls, createHash('md5').update(body).digest('hex'));
    expect(write, `the log has ${key}`).toBeDefined();
    expect(answer, `${key} was answered`).toBeDefined();
    if (write === undefined || answer === undefined) continue;
    expect(syncBetween(calls, { write, answer }), `a sync between log and answer of ${key}`).toBeDefined();
  }
});

/** The bytes that a call has in quotes, as strace prints them. */
function bytesOf({ arguments: text }: Call): string {
  return text.replace(/\\(?:([0-7]{1,3})|(.))/g, (_, octal?: string, letter = '') => {
    if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8));
    return { n: '\n', t: '\t', r: '\r', v: '\v', f: '\f' }[letter as 'n'] ?? letter;
  });
}

const BODY_MARK = 'HFEXTENT';
const KEY_AT = 32;
const KEY_BYTES = 20;
/** Of the row of a place (src/chunks/disk/keyspace.ts). */
const PLACE_TABLE = String.fromCharCode(10);

test('chunked bodies: bytes are durable in an extent, then their rows in the log, and the answer comes last', async () => {
  const body = randomBytes(5 * MiB + 5);
  const calls = await traceWhile('chunked', async () => {
    expect((await send(server, { method: 'PUT', path: '/synced/chunked', body })).status).toBe(200);
  });
  const answer = answerWith(calls, createHash('md5').update(body).digest('hex'));
  expect(answer).toBeDefined();
  if (answer === undefined) return;
  // Each write into an extent is durable when it ends.
  const opened = calls.filter(
    ({ name, arguments: text }) => name === 'openat' && /\.extent", O_WRONLY/.test(text),
  );
  expect(opened.length).toBeGreaterThan(0);
  for (const call of opened) expect(call.arguments).toMatch(/O_DSYNC/);
  const logWrites = calls.filter((call) => isWrite(call) && isOfLog(call) && call.endedAt < answer.beganAt);
  for (const write of logWrites) expect(syncBetween(calls, { write, answer })).toBeDefined();
  const named: string[] = [];
  for (const call of calls.filter((one) => isWrite(one) && /\.extent>$/.test(targetOf(one)))) {
    const bytes = bytesOf(call);
    for (let at = bytes.indexOf(BODY_MARK); at !== -1; at = bytes.indexOf(BODY_MARK, at + 1)) {
      const key = bytes.slice(at + KEY_AT, at + KEY_AT + KEY_BYTES);
      named.push(key);
      // A row may lie on an end of a block of the log, which cuts it: then it is not found, nor looked at.
      for (const write of logWrites.filter((one) => bytesOf(one).includes(PLACE_TABLE + key)))
        expect(call.endedAt, 'bytes before their row').toBeLessThan(write.beganAt);
    }
  }
  expect(new Set(named).size).toBe(5);
  const rowCount = named.filter((key) => logWrites.some((one) => bytesOf(one).includes(PLACE_TABLE + key)));
  expect(rowCount.length).toBeGreaterThanOrEqual(3);
});

import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, expect, test } from 'vitest';
import { Refusal } from '../base/refusal.ts';
import { type FileSource, withFileSource } from './file-source.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-source-'));
afterAll(() => rmSync(folder, { recursive: true }));

const limits = { bytesMax: 1e6, taker: 'a test' };
const none = { input: Readable.from([]), ...limits };
const fileOf = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

async function textOf(source: FileSource): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of source.read()) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

/** Its size, and what is read of it, twice. */
const readTwice = async (source: FileSource) => [
  source.sizeBytes,
  await textOf(source),
  await textOf(source),
];

test('a file that grows, or is replaced, meanwhile is as it was', async () => {
  const long = 'a line\n'.repeat(100_000);
  const path = fileOf('log', long);
  await withFileSource(path, none, async (source) => {
    appendFileSync(path, 'one more\n');
    expect(await textOf(source)).toBe(long);
    rmSync(path);
    writeFileSync(path, 'another one');
    expect(await textOf(source)).toBe(long);
  });
});

test('one that becomes shorter is a Refusal', async () => {
  const path = fileOf('cut', 'a line\n');
  const reading = withFileSource(path, none, (source) => {
    truncateSync(path, 3);
    return textOf(source);
  });
  await expect(reading).rejects.toThrow(new Refusal(`${path} has become shorter while it was read`));
});

test('standard input, pipes, empty files and those of /proc are read to their end', async () => {
  const input = Readable.from([Buffer.from('in '), Buffer.from('put')]);
  expect(await withFileSource('-', { input, ...limits }, readTwice)).toEqual([6, 'in put', 'in put']);
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const written = writeFile(pipe, 'through a pipe');
  const text = 'through a pipe';
  expect(await withFileSource(pipe, none, readTwice)).toEqual([text.length, text, text]);
  await written;
  expect(await withFileSource(fileOf('empty', ''), none, readTwice)).toEqual([0, '', '']);
  const version = await readFile('/proc/version', 'utf8');
  expect(await withFileSource('/proc/version', none, readTwice)).toEqual([version.length, version, version]);
});

test('folders and what is not there are Refusals', async () => {
  const reason = (file: string) => withFileSource(file, none, readTwice).catch((error: unknown) => error);
  expect(await reason(folder)).toEqual(new Refusal(`cannot read ${folder}: it is a folder`));
  const missing = join(folder, 'missing');
  expect(await reason(missing)).toEqual(new Refusal(`cannot read ${missing}: ENOENT`));
});

test('what is too long is a Refusal, and is not read on', async () => {
  const reason = (file: string, options: Parameters<typeof withFileSource>[1]) =>
    withFileSource(file, options, readTwice).catch((error: unknown) => error);
  const limits = { bytesMax: 4096, taker: 'a test' };
  const file = fileOf('long', 'x'.repeat(5000));
  const none = Readable.from([]);
  expect(await reason(file, { input: none, ...limits })).toEqual(
    new Refusal('a test takes 4.00 KiB at most, and this has 4.88 KiB'),
  );
  let givenCount = 0;
  async function* endless() {
    for (; ; givenCount++) yield Buffer.alloc(1024);
  }
  expect(await reason('-', { input: endless(), ...limits })).toEqual(
    new Refusal('a test takes 4.00 KiB at most, and this has more'),
  );
  expect(givenCount).toBe(4);
});

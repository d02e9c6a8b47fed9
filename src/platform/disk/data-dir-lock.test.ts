import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DataDirError, EXTENTS_FORMAT, openDataDir } from './data-dir-lock.ts';

let parent: string;
let path: string;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'holdfast-data-'));
  path = join(parent, 'deep', 'data');
});
afterEach(() => {
  if (existsSync(join(parent, 'deep'))) chmodSync(join(parent, 'deep'), 0o700);
  rmSync(parent, { recursive: true });
});

/** Runs statements in another process, with `openDataDir` at hand. */
function spawnOpener(statements: string): ChildProcessByStdio<null, Readable, null> {
  const module = new URL('./data-dir-lock.ts', import.meta.url).href;
  const script = `const { openDataDir } = await import(${JSON.stringify(module)});\n${statements}`;
  return spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

const openIt = () => openDataDir({ path, shards: 64 });

/** Every file below the folder with its content and time. */
function snapshot(folder: string): unknown[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => {
    const { mtimeMs, size, mode } = statSync(join(folder, name));
    return { name, mtimeMs, size, mode };
  });
}

test('a new folder is private, and stores its format and its number of shards', async () => {
  const first = await openDataDir({ path, shards: 8 });
  expect(first).toMatchObject({ path, shards: 8, isNew: true });
  expect(statSync(path).mode & 0o777).toBe(0o700);
  expect(JSON.parse(readFileSync(join(path, 'format.json'), 'utf8'))).toMatchObject({ format: 1, shards: 8 });
  first.close();
  first.close();
  const second = await openDataDir({ path, shards: 64 });
  expect(second).toMatchObject({ shards: 8, isNew: false });
  second.close();
});

test('a locked folder is refused and unchanged', async () => {
  const holder = await openIt();
  const before = snapshot(path);
  await expect(openIt()).rejects.toThrow(
    new DataDirError(`the data folder ${path} is in use by another Holdfast server`),
  );
  expect(snapshot(path)).toEqual(before);
  holder.close();
  (await openIt()).close();
});

test('of many starts at once exactly one gets the folder', async () => {
  const starts = await Promise.allSettled(Array.from({ length: 8 }, openIt));
  const winners = starts.filter((start) => start.status === 'fulfilled');
  expect(winners).toHaveLength(1);
  for (const start of starts) {
    if (start.status === 'fulfilled') start.value.close();
    else expect(start.reason.message).toContain('in use by another');
  }
});

test('a killed holder releases the lock', { timeout: 20_000 }, async () => {
  const holder = spawnOpener(`
    await openDataDir({ path: ${JSON.stringify(path)}, shards: 1 });
    console.log('held');
    setInterval(() => {}, 1000);`);
  await once(holder.stdout, 'data');
  await expect(openIt()).rejects.toThrow('in use by another');
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  (await openIt()).close();
});

test('a folder keeps the highest format that it was given, and all else that its file says', async () => {
  const stored = () => JSON.parse(readFileSync(join(path, 'format.json'), 'utf8'));
  const first = await openDataDir({ path, shards: 8 });
  const { createdAt } = stored();
  // By several at once.
  await Promise.all(Array.from({ length: 10 }, () => first.raiseFormat(EXTENTS_FORMAT)));
  await first.raiseFormat(1);
  first.close();
  expect(stored()).toEqual({ format: 2, shards: 8, createdAt });
  const again = await openIt();
  const before = snapshot(path);
  await again.raiseFormat(EXTENTS_FORMAT);
  again.close();
  expect(snapshot(path)).toEqual(before);
});

test('a newer format is refused, whatever else the file says, and nothing is made', async () => {
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'format.json'), '{"format": 3, "layout": "unheard of"}');
  const before = snapshot(path);
  await expect(openIt()).rejects.toThrow('is of format 3, newer than this program reads (2)');
  expect(snapshot(path)).toEqual(before);
});

test.each(['', 'null', '{"format": 0}', '{"format": 1}', '{"format": "1", "shards": 3}'])(
  'a damaged format file is refused: %s',
  async (damaged) => {
    mkdirSync(path, { recursive: true });
    writeFileSync(join(path, 'format.json'), damaged);
    await expect(openIt()).rejects.toThrow('format.json is damaged');
  },
);

test('a folder of something else is refused; one that an interrupted first start left is not', async () => {
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'lock'), '');
  writeFileSync(join(path, 'format.json.new'), '{"for');
  (await openIt()).close();
  rmSync(join(path, 'format.json'));
  writeFileSync(join(path, 'thesis.tex'), 'mine');
  const before = snapshot(path);
  await expect(openIt()).rejects.toThrow('is not a Holdfast data folder and not empty (it holds thesis.tex)');
  expect(snapshot(path)).toEqual(before);
});

test('a file in its place is refused', async () => {
  mkdirSync(join(parent, 'deep'));
  writeFileSync(path, 'a file');
  await expect(openIt()).rejects.toThrow('is not a folder');
});

test('a folder that cannot be written or made is refused, and unchanged', async () => {
  mkdirSync(path, { recursive: true });
  const other = join(parent, 'deep', 'other');
  for (const folder of [join(parent, 'deep'), path]) chmodSync(folder, 0o555);
  chmodSync(parent, 0o755);
  const before = snapshot(parent);
  // Root may write anywhere: it becomes nobody once the code is loaded.
  const opener = spawnOpener(`
    if (process.getuid() === 0) process.setuid(65534);
    for (const path of ${JSON.stringify([path, other])}) {
      await openDataDir({ path, shards: 1 }).catch((error) => console.log(error.message));
    }`);
  const messages = await text(opener.stdout);
  expect(messages).toContain(`the data folder ${path} is not writable: EACCES`);
  expect(messages).toContain(`the data folder ${other} cannot be made: EACCES`);
  expect(snapshot(parent)).toEqual(before);
});

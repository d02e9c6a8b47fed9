// Progress of long commands: drawn on a terminal, and not written into files and pipes.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { formatBytes, formatCount } from './format.ts';
import { startBar, startCount } from './progress.ts';

/** A terminal, and what was written to it. */
function openTerminal({ isTTY }: { isTTY: boolean }) {
  const stream = Object.assign(new PassThrough(), { isTTY, columns: 100 });
  const take = () => (stream.read() as Buffer | null)?.toString() ?? '';
  return { stream, take };
}

const HIDE_CURSOR = '\x1b[?25l';
const SHOW_CURSOR = '\x1b[?25h';
const CLEAR_LINE = '\x1b[2K';
/** More than the time between two drawings. */
const pause = () => new Promise((resolve) => setTimeout(resolve, 250));

test('a bar: how much of all is done, and how long the rest may take; at the end the line is as it was', async () => {
  const { stream, take } = openTerminal({ isTTY: true });
  const bar = startBar('append', 4 * 1024 * 1024, formatBytes, stream);
  const begun = take();
  expect(begun).toContain(HIDE_CURSOR);
  expect(stripVTControlCharacters(begun)).toMatch(/^append -+ 0 % {2}0 bytes of 4\.00 MiB {2}0s left/);
  bar.at(3 * 1024 * 1024);
  await pause();
  const drawn = stripVTControlCharacters(take());
  expect(drawn).toMatch(/append =+-+ 75 % {2}3\.00 MiB of 4\.00 MiB {2}\d+s left/);
  bar.at(4 * 1024 * 1024);
  bar.end();
  const ended = take();
  expect(stripVTControlCharacters(ended)).toMatch(/append =+ 100 % {2}4\.00 MiB of 4\.00 MiB/);
  expect(ended).toContain(SHOW_CURSOR);
  expect(ended.endsWith(CLEAR_LINE)).toBe(true);
  await pause();
  expect(take()).toBe('');
});

test('a bar of nothing is full', () => {
  const { stream, take } = openTerminal({ isTTY: true });
  startBar('append', 0, formatBytes, stream).end();
  expect(stripVTControlCharacters(take())).toContain('100 %  0 bytes of 0 bytes');
});

test('a count: how many, and since when; nothing of an end that nobody knows', async () => {
  const { stream, take } = openTerminal({ isTTY: true });
  const count = startCount('renamed', formatCount, stream);
  expect(stripVTControlCharacters(take())).toMatch(/^renamed 0 in 0s/);
  count.at(12_345);
  await pause();
  const drawn = stripVTControlCharacters(take());
  expect(drawn).toContain(`renamed ${formatCount(12_345)} in `);
  expect(drawn).not.toMatch(/%|NaN|Infinity|9007199254740991/);
  count.end();
  expect(take().endsWith(CLEAR_LINE)).toBe(true);
});

test('where output goes elsewhere than to a terminal nothing is drawn', async () => {
  const { stream, take } = openTerminal({ isTTY: false });
  for (const progress of [
    startBar('append', 10, formatBytes, stream),
    startCount('renamed', formatCount, stream),
  ]) {
    progress.at(5);
    await pause();
    progress.end();
  }
  expect(take()).toBe('');
});

test('nor by a program whose standard error is a pipe, and it ends by itself', () => {
  const file = JSON.stringify(join(import.meta.dirname, 'progress.ts'));
  const program = `import { startBar, startCount } from ${file};
    for (const progress of [startBar('a', 2, String), startCount('b', String)]) {
      progress.at(1);
      progress.end();
    }`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program]);
  expect([status, stdout.toString(), stderr.toString()]).toEqual([0, '', '']);
});

test.each([
  ['ends the program', '', [null, 'SIGINT'], ''],
  [
    'is left to whoever waits for it',
    "process.once('SIGINT', () => setTimeout(() => { writeSync(1, 'goes on'); process.exit(130); }));",
    [130, null],
    'goes on',
  ],
])('Ctrl-C %s, and leaves the terminal as it was', async (_, listener, ended, printed) => {
  const file = JSON.stringify(join(import.meta.dirname, 'progress.ts'));
  // Written at once, as to a terminal.
  const program = `import { writeSync } from 'node:fs';
    import { Writable } from 'node:stream';
    import { startBar } from ${file};
    const write = (piece, encoding, done) => done(void writeSync(1, piece));
    const stream = Object.assign(new Writable({ write }), { isTTY: true, columns: 100 });
    ${listener}
    startBar('append', 2, String, stream);
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program]);
  let shown = '';
  child.stdout.on('data', (piece) => {
    if (shown === '') child.kill('SIGINT');
    shown += piece;
  });
  expect(await once(child, 'close')).toEqual(ended);
  expect(shown.lastIndexOf(SHOW_CURSOR)).toBeGreaterThan(shown.lastIndexOf(HIDE_CURSOR));
  expect(shown.endsWith(printed)).toBe(true);
});

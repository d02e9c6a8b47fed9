// The command line as a user meets it: help, version, and refusals with exit code 1.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { flagOf, variableOf } from '../src/config/names.ts';
import { SETTINGS } from '../src/config/schema.ts';
import type { SettingRow } from '../src/config/setting-row.ts';

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '..', 'package.json'), 'utf8'));
const MAIN = join(import.meta.dirname, 'main.ts');

function run(args: string[], env: Record<string, string> = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], { env, encoding: 'utf8' });
  return { code: status, stdout, stderr };
}

test('--version', () => expect(run(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' }));

test.each([[['--help']], [['server', '--help']]])('%s lists every setting with its default', (args) => {
  const { code, stdout } = run(args);
  expect(code).toBe(0);
  for (const row of (SETTINGS as readonly SettingRow[]).filter(({ hidden }) => hidden !== true)) {
    expect(stdout).toContain(flagOf(row) ?? variableOf(row));
    if (row.default) expect(stdout).toContain(`Default: ${row.default}.`);
  }
});

test.each([
  [['serve'], {}, 'Did you mean server?'],
  [['server', '--lisen', 'x'], {}, 'Did you mean --listen?'],
  [['server', '--listen', 'x'], {}, 'holdfast: --listen must be HOST:PORT, not "x"\n'],
  [
    ['server', '--domain', 'a.b', '--domain', '-'],
    {},
    'holdfast: --domain has an item that is not a domain name',
  ],
  [['server', '--metadata-force-loopback', 'maybe'], {}, '--metadata-force-loopback must be true or false'],
  [['server'], { HOLDFAST_DATADIR: 'x' }, 'holdfast: HOLDFAST_DATADIR is not a known setting; did you mean'],
])('%j %j is refused', (args, env, message) => {
  const { code, stderr } = run(args, env);
  expect(stderr).toContain(message);
  expect(code).toBe(1);
});

test('a data folder that cannot be used: one clear line, exit code 1, nothing touched', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-main-'));
  try {
    writeFileSync(join(folder, 'format.json'), '{"format": 99}');
    const { code, stderr } = run(['server', '--data-dir', folder, '--listen', '127.0.0.1:0']);
    expect(stderr).toContain(
      `holdfast: the data folder ${folder} is of format 99, newer than this program reads`,
    );
    expect(code).toBe(1);
    expect(readdirSync(folder)).toEqual(['format.json']);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

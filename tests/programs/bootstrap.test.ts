// The bootstrap in a folder of its own, with a small npm that notes its calls and makes what it was asked for.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { processSettings } from '../../cmd/process-settings.ts';

const LOCK = {
  lockfileVersion: 3,
  packages: { '': {}, 'node_modules/a': { version: '1.0.0', integrity: 'x' } },
};

const NPM = `#!${process.execPath}
const { appendFileSync, copyFileSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } = require('node:fs');
appendFileSync('npm-calls', process.argv.slice(2).join(' ') + '\\n');
if (existsSync('npm-fails')) process.exit(3);
const modules = 'node_modules';
if (process.argv[2] === 'ci') {
  rmSync(modules, { recursive: true, force: true });
  const node = modules + '/node-' + process.platform + '-' + process.arch + '/bin';
  for (const folder of [node, modules + '/node-gyp-build']) mkdirSync(folder, { recursive: true });
  symlinkSync(process.execPath, node + '/node');
  const found = "if (!require('fs').existsSync(__dirname + '/binary')) throw new Error('none');";
  writeFileSync(modules + '/node-gyp-build/index.js', 'exports.resolve = () => {' + found + '};');
  if (!existsSync('needs-compiling')) writeFileSync(modules + '/node-gyp-build/binary', '');
  setTimeout(() => copyFileSync('package-lock.json', modules + '/.package-lock.json'), existsSync('npm-is-slow') ? 1500 : 0);
} else {
  writeFileSync(modules + '/node-gyp-build/binary', '');
}
`;

const MAIN = `
process.on('SIGTERM', () => { console.log('SIGTERM'); process.exit(7); });
process.on('SIGHUP', () => console.log('SIGHUP'));
console.log(JSON.stringify(process.argv.slice(2)));
if (process.argv[2] === 'wait') setInterval(() => {}, 1000);
if (process.argv[2] === 'exit') process.exit(5);
`;

const FILES = [
  'cmd/holdfast.mjs',
  'cmd/bootstrap.mjs',
  'cmd/process-settings.json',
  'deploy/holdfast',
  'tools/run.mjs',
];

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-start-'));
  for (const name of ['cmd', 'bin', 'deploy', 'tools']) mkdirSync(join(folder, name));
  for (const name of FILES) copyFileSync(join(import.meta.dirname, '..', '..', name), join(folder, name));
  writeFileSync(join(folder, 'cmd', 'main.ts'), MAIN);
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(LOCK));
  writeFileSync(join(folder, 'bin', 'npm'), NPM);
  chmodSync(join(folder, 'bin', 'npm'), 0o755);
});
afterEach(() => rmSync(folder, { recursive: true }));

const start = (...args: string[]) => startScript('cmd/holdfast.mjs', args);

function startScript(script: string, args: readonly string[]): ChildProcess {
  const env = { PATH: join(folder, 'bin') };
  return spawn(process.execPath, [join(folder, script), ...args], { env, cwd: tmpdir() });
}

const run = (...args: string[]) => runScript('cmd/holdfast.mjs', args);

async function runScript(
  script: string,
  args: readonly string[],
): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = startScript(script, args);
  if (child.stdout === null || child.stderr === null) throw new Error('no pipes');
  const exit = once(child, 'exit');
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: (await exit)[0], stdout, stderr };
}

const npmCalls = () => {
  const path = join(folder, 'npm-calls');
  return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : [];
};

test('the first start installs without scripts and says so on stderr, later ones do not', async () => {
  expect(await run('server', '--x')).toMatchObject({ code: 0, stdout: '["server","--x"]\n' });
  expect(npmCalls()).toEqual([expect.stringMatching(/^ci .*--ignore-scripts/)]);
  expect(await run('a')).toEqual({ code: 0, stdout: '["a"]\n', stderr: '' });
  expect(npmCalls()).toHaveLength(1);
});

test('a changed lock is installed, one that only looks newer is not', async () => {
  await run();
  writeFileSync(join(folder, 'package-lock.json'), `${JSON.stringify(LOCK)}\n`);
  await run();
  expect(npmCalls()).toHaveLength(1);
  const changed = JSON.stringify(LOCK).replace('1.0.0', '1.0.1');
  writeFileSync(join(folder, 'package-lock.json'), changed);
  await run();
  expect(npmCalls()).toHaveLength(2);
});

test('a binding without a binary for this machine is compiled', async () => {
  writeFileSync(join(folder, 'needs-compiling'), '');
  expect((await run()).code).toBe(0);
  expect(npmCalls()[1]).toBe('rebuild @nxtedition/rocksdb');
});

test('two first starts at once install once', async () => {
  writeFileSync(join(folder, 'npm-is-slow'), '');
  const ends = await Promise.all([run('a'), run('b'), run('c')]);
  expect(ends.map((end) => end.stdout)).toEqual(['["a"]\n', '["b"]\n', '["c"]\n']);
  expect(npmCalls()).toHaveLength(1);
  expect(ends.map((end) => end.stderr).join('')).toContain('another start is installing the packages');
});

test('a failed installation, and a machine without npm: a clear message and exit code 1', async () => {
  writeFileSync(join(folder, 'npm-fails'), '');
  const failed = await run();
  expect(failed).toMatchObject({ code: 1, stdout: '' });
  expect(failed.stderr).toContain('holdfast: npm ci failed with exit code 3');
  rmSync(join(folder, 'bin', 'npm'));
  expect((await run()).stderr).toContain('npm is needed to install the packages, and it is not on the PATH');
});

test('exit codes and signals are passed through', async () => {
  expect((await run('exit')).code).toBe(5);
  const child = start('wait');
  await once(child.stdout ?? child, 'data');
  child.kill('SIGHUP');
  const [line] = await once(child.stdout ?? child, 'data');
  expect(String(line)).toBe('SIGHUP\n');
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([7, null]);
  const interrupted = start('wait');
  await once(interrupted.stdout ?? interrupted, 'data');
  interrupted.kill('SIGINT');
  expect(await once(interrupted, 'exit')).toEqual([null, 'SIGINT']);
});

test.each(['server', 'storage', 'gateway', 'metadata'])(
  '%s: both launchers give it its flags, and its environment below what is set already',
  async (command) => {
    writeFileSync(
      join(folder, 'cmd', 'main.ts'),
      'console.log(JSON.stringify({ ...process.env, flags: process.execArgv }));',
    );
    expect((await run()).code).toBe(0);
    const { flags: expectedFlags, environment } = processSettings(command);
    const expected = { ...environment, flags: expectedFlags };
    const [name] = Object.keys(environment);
    for (const launcher of [[process.execPath, 'cmd/holdfast.mjs'], ['deploy/holdfast']]) {
      const [program = '', ...leading] = launcher.map((part) =>
        part.includes('/') && part !== process.execPath ? join(folder, part) : part,
      );
      const environmentOf = (env: Readonly<Record<string, string>>) => {
        const { stdout } = spawnSync(program, [...leading, command], {
          env: { PATH: process.env.PATH, ...env },
          encoding: 'utf8',
        });
        const { flags, UV_THREADPOOL_SIZE, MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_ } =
          JSON.parse(stdout);
        return { flags, UV_THREADPOOL_SIZE, MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_ };
      };
      expect(environmentOf({})).toEqual(expected);
      if (name !== undefined) expect(environmentOf({ [name]: '7' })).toEqual({ ...expected, [name]: '7' });
    }
  },
);

test.each([
  ['cmd/holdfast.mjs', ['--help']],
  ['cmd/holdfast.mjs', ['server', '-h']],
  ['tools/run.mjs', ['test', '--help']],
  ['tools/run.mjs', ['sim', '--help']],
  ['tools/run.mjs', ['bench', '--help']],
  ['tools/run.mjs', ['--help']],
])('%s %j prints, and installs nothing', async (script, args) => {
  const { code, stdout, stderr } = await runScript(script, args);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^Usage: /);
  expect(npmCalls()).toEqual([]);
});

test('programs for developers are not part of the product, and install what they need', async () => {
  expect((await run('test', 'a')).stdout).toBe('["test","a"]\n');
  mkdirSync(join(folder, 'tests', 'support', 'run'), { recursive: true });
  writeFileSync(join(folder, 'tests', 'support', 'run', 'run-tests.ts'), MAIN);
  rmSync(join(folder, 'node_modules'), { recursive: true });
  expect((await runScript('tools/run.mjs', ['test', 'tests/a'])).stdout).toBe('["tests/a"]\n');
  expect(npmCalls()).toHaveLength(2);
});

test('a program ends with a killed launcher', async () => {
  copyFileSync(
    new URL('../../cmd/end-with-parent.ts', import.meta.url),
    join(folder, 'cmd', 'end-with-parent.ts'),
  );
  const main =
    "import { endWithParent } from './end-with-parent.ts';\nendWithParent();\nconsole.log(process.pid);";
  writeFileSync(join(folder, 'cmd', 'main.ts'), `${main}\n${MAIN}`);
  writeFileSync(join(folder, 'cmd', 'package.json'), '{"type": "module"}');
  const launcher = start('wait');
  if (launcher.stdout === null) throw new Error('no pipe');
  let told = '';
  launcher.stdout.setEncoding('utf8').on('data', (piece: string) => {
    told += piece;
    if (told.includes('wait')) launcher.kill('SIGKILL');
  });
  // All who have the pipe are gone.
  await once(launcher.stdout, 'end');
  expect(told).toMatch(/^\d+\n\["wait"\]\nSIGTERM\n$/);
});

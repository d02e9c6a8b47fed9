// The container file: by a linter, and by what it makes of the program, put together in a folder and run as in a container.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, matchesGlob, relative } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { VENV_HADOLINT } from '../support/clients/client-programs.ts';
import { freePorts } from '../support/cluster/free-ports.ts';
import { ROOT } from '../support/run/root.ts';
import {
  deployPath,
  expectCommand,
  imageEnvironment,
  readDeploy,
  settingsOf,
  valuesOf,
} from '../support/servers/deploy-files.ts';

const text = readDeploy('Dockerfile');
const folder = mkdtempSync(join(tmpdir(), 'holdfast-image-'));
let child: ChildProcess | undefined;
afterAll(() => {
  child?.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

const lint = (path: string) => spawnSync(VENV_HADOLINT, ['--no-color', path], { encoding: 'utf8' });

test('the linter finds nothing, and finds planted errors', () => {
  expect(lint(deployPath('Dockerfile'))).toMatchObject({ status: 0, stdout: '' });
  const path = join(folder, 'Dockerfile');
  writeFileSync(
    path,
    text.replace('USER 10001:10001', 'USER root').replace('debian:bookworm-slim', 'debian'),
  );
  const { status, stdout } = lint(path);
  expect([status, stdout]).toEqual([1, expect.stringMatching(/DL3006[\s\S]*DL3002/)]);
});

test('its user, its volume, its port and its signal fit the program', () => {
  const { dataDir, listen } = settingsOf(imageEnvironment());
  expect(valuesOf(text, 'VOLUME')).toEqual([dataDir]);
  expect(valuesOf(text, 'EXPOSE')).toEqual([String(listen.port)]);
  expect(valuesOf(text, 'STOPSIGNAL')).toEqual(['SIGTERM']);
  const [user = ''] = valuesOf(text, 'USER');
  expect(user).toMatch(/^[1-9]\d{3,}:[1-9]\d{3,}$/);
  expect(text).toContain(`-o ${user.split(':')[0]} -g ${user.split(':')[1]} ${dataDir}`);
  const json = (key: string) => {
    const [value = ''] = valuesOf(text, key);
    return JSON.parse(value.slice(value.indexOf('['))) as string[];
  };
  const [entry] = json('ENTRYPOINT');
  const [healthProgram, ...health] = json('HEALTHCHECK');
  expect([entry, healthProgram]).toEqual(['holdfast', 'holdfast']);
  expectCommand(health);
  expectCommand(json('CMD'));
});

/** Files that go to the build, by .dockerignore: the last line that matches a path, or a folder above it, decides. */
function sentFiles(): string[] {
  const lines = readFileSync(join(ROOT, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  const isSent = (path: string) =>
    lines.reduce((sent, line) => {
      const pattern = line.replace(/^!/, '');
      const isMatched =
        pattern === '*' || path === pattern || path.startsWith(`${pattern}/`) || matchesGlob(path, pattern);
      return isMatched ? line.startsWith('!') : sent;
    }, true);
  const top = readdirSync(ROOT, { withFileTypes: true });
  return top
    .filter(({ name }) => !['node_modules', '.git', '.venv'].includes(name))
    .flatMap((entry) => (entry.isDirectory() ? filesBelow(entry.name) : [entry.name]))
    .filter(isSent);
}

function filesBelow(name: string): string[] {
  return readdirSync(join(ROOT, name), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
}

/** The packages that `npm ci --omit=dev` installs, linked. */
function linkPackages(): void {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; devOptional?: boolean }>;
  };
  for (const [path, { dev, devOptional }] of Object.entries(packages)) {
    if (path === '' || dev === true || devOptional === true || path.lastIndexOf('node_modules') > 0) continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    symlinkSync(join(ROOT, path), join(folder, path));
  }
}

test('it starts, becomes healthy, and stops on request', async () => {
  const files = sentFiles();
  expect(
    files.filter(
      (path) => !/^(cmd|src|proto)\/|^deploy\/holdfast$|^(package(-lock)?\.json|\.npmrc|LICENSE)$/.test(path),
    ),
  ).toEqual([]);
  expect(files.filter((path) => /\.test\.ts$|\.pem$|keys\.json$|\.log$/.test(path))).toEqual([]);
  for (const path of files) cpSync(join(ROOT, path), join(folder, path));
  linkPackages();
  // As /usr/local/bin/holdfast is.
  const program = join(folder, 'holdfast');
  symlinkSync(join(folder, 'deploy', 'holdfast'), program);
  const [port = 0] = await freePorts(1);
  const env = {
    PATH: '/usr/bin:/bin',
    ...imageEnvironment(),
    HOLDFAST_LISTEN: `127.0.0.1:${port}`,
    HOLDFAST_DATA_DIR: join(folder, 'data'),
  };
  const health = () => spawnSync(program, ['health'], { env, encoding: 'utf8', cwd: tmpdir() });
  expect(health()).toMatchObject({ status: 1, stderr: expect.stringContaining('does not answer') });
  child = spawn(program, ['server'], { env, cwd: tmpdir(), stdio: ['ignore', 'ignore', 'pipe'] });
  const exit = once(child, 'exit');
  // The banner comes once it serves.
  await once(child.stderr ?? child, 'data');
  expect(health()).toMatchObject({ status: 0, stderr: '' });
  child.kill('SIGTERM');
  expect(await exit).toEqual([0, null]);
});

test('without its packages it reports that', () => {
  const empty = join(folder, 'empty');
  mkdirSync(join(empty, 'deploy'), { recursive: true });
  cpSync(deployPath('holdfast'), join(empty, 'deploy', 'holdfast'));
  const { status, stderr } = spawnSync(join(empty, 'deploy', 'holdfast'), ['--version'], {
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([1, expect.stringContaining('run npm ci in ')]);
});

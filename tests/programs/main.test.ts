// The command line as a user meets it: help, version, and refusals with exit code 1.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { flagOf, variableOf } from '../../src/config/names.ts';
import { SETTINGS } from '../../src/config/schema.ts';
import type { SettingRow } from '../../src/config/setting-row.ts';
import { COMPILE_CACHE, ROOT } from '../support/run/root.ts';

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const MAIN = join(ROOT, 'cmd', 'main.ts');
const CACHED = { NODE_COMPILE_CACHE: COMPILE_CACHE };

function run(args: string[], env: Record<string, string> = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], {
    env: { ...CACHED, ...env },
    encoding: 'utf8',
  });
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
  ...[
    'server',
    'status',
    'health',
    'rb bucket',
    'cluster status',
    'cluster certs --out x --name a --host a',
    'fsck',
  ].map(
    (command) =>
      [
        command.split(' '),
        { HOLDFAST_DATADIR: 'x' },
        'holdfast: HOLDFAST_DATADIR is not a known setting; did you mean',
      ] as [string[], Record<string, string>, string],
  ),
])('%j %j is refused', (args, env, message) => {
  const { code, stderr } = run(args, env);
  expect(stderr).toContain(message);
  expect(code).toBe(1);
});

test('an unusable data folder: one clear line, exit code 1, nothing changed', () => {
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

test.each([
  ['server', '--listen', '127.0.0.1:0', '--data-dir'],
  ['metadata', '--join', 'http://127.0.0.1:1', '--data-dir'],
  ['storage', '--join', 'http://127.0.0.1:1', '--data-dir'],
  ['cluster', 'run', '--listen', '127.0.0.1:0', '--data-dir'],
  ['cluster', 'certs', '--name', 'a', '--host', 'a', '--out'],
])('%s %s with a folder that cannot be made ends by itself, with one line', (...args) => {
  const { code, stderr } = run([...args, '/proc/holdfast/data']);
  expect(code).toBe(1);
  const said = stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
  expect(said).toHaveLength(1);
  expect(said[0]).toMatch(/^holdfast: /);
});

test('a port in use is refused before a folder is made', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-main-'));
  try {
    const dataDir = join(folder, 'data');
    const listen = `127.0.0.1:${(other.address() as AddressInfo).port}`;
    const { code, stderr } = run(['server', '--data-dir', dataDir, '--listen', listen]);
    expect(stderr).toBe(`holdfast: cannot listen on ${listen}: another program listens there\n`);
    expect(code).toBe(1);
    expect(readdirSync(folder)).toEqual([]);
  } finally {
    other.close();
    rmSync(folder, { recursive: true });
  }
});

test('Ctrl-C while a deleted bucket is being emptied: the command ends, and says that the work continues', async () => {
  const server = createServer((request, response) => {
    if (request.method === 'DELETE') response.writeHead(204).end();
    // Somebody looks how far it is, and hears nothing.
    else child.kill('SIGINT');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const env = { ...CACHED, AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret' };
  const child = spawn(process.execPath, [MAIN, 'rb', '--force', 'vault', '--endpoint', endpoint], { env });
  const told = text(child.stderr);
  const [code] = await once(child, 'exit');
  server.closeAllConnections();
  server.close();
  expect(code).toBe(130);
  expect(await told).toMatch(/^holdfast: interrupted: vault is gone, and its data goes on being freed; /);
});

test('what others have stored gives a terminal no orders, on standard output and in errors', async () => {
  const document = encodeURIComponent('{\n"Sid": "a\u009b2Jb"}');
  const answers = [
    `<R><GetUserPolicyResult><PolicyDocument>${document}</PolicyDocument></GetUserPolicyResult></R>`,
    '<R><Error><Code>NoSuchEntity</Code><Message>no \u009b2J</Message></Error></R>',
  ];
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(answers.length === 2 ? 200 : 404).end(answers.shift());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const env = { ...CACHED, AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret' };
  const show = async () => {
    const args = [MAIN, 'policy', 'show', 'own', '--user', 'ann', '--endpoint', endpoint];
    const child = spawn(process.execPath, args, { env });
    return Promise.all([text(child.stdout), text(child.stderr)]);
  };
  expect(await show()).toEqual(['{\n"Sid": "a\\u009b2Jb"}\n', '']);
  const [stdout, stderr] = await show();
  expect([stdout, stderr]).toEqual(['', expect.stringMatching(/^holdfast: .*no \\u009b2J/)]);
  server.closeAllConnections();
  server.close();
});

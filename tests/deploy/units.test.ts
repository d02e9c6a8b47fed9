// The units for systemd: by its own tools, and against the program.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { programPath, ROOT } from '../support/client-programs.ts';
import {
  assignmentsOf,
  expectCommand,
  readDeploy,
  readEnvironmentFile,
  secondsOf,
  settingsOf,
  valuesOf,
} from '../support/deploy-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-units-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Unit → its example of settings. */
const UNITS = [
  ['holdfast.service', 'holdfast.env'],
  ['holdfast-metadata@.service', 'metadata.env'],
  ['holdfast-storage@.service', 'storage.env'],
  ['holdfast-gateway.service', 'gateway.env'],
] as const;

/** 0 is a unit that may do nothing, 10 one that may do all: systemd calls 2 and less well protected. */
const EXPOSURE_MAX = 1.5;

const readUnit = (name: string) => readDeploy(`systemd/${name}`);

/** As it stands on a machine where the project is in /opt/holdfast; a template as its first instance. */
function installed(name: string, text: string): string {
  const path = join(folder, name.replace('@.', '@1.'));
  writeFileSync(path, text.replaceAll('/opt/holdfast/', `${ROOT}/`));
  return path;
}

function analyze(...args: string[]) {
  const program = programPath('systemd-analyze') ?? 'systemd-analyze';
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  return { status, said: stdout + stderr };
}

const hardening = (text: string) => text.slice(text.indexOf('# What it may do'), text.indexOf('[Install]'));

describe.each(UNITS)('%s', (name, settings) => {
  const text = readUnit(name);

  test('systemd takes it, and protects it well', () => {
    const path = installed(name, text);
    const { status, said } = analyze('verify', '--man=no', path);
    expect(said).not.toContain('holdfast');
    expect(status).toBe(0);
    const protectedWell = analyze('security', '--offline=yes', `--threshold=${EXPOSURE_MAX * 10}`, path);
    expect(protectedWell.said).toContain('Overall exposure level');
    expect(protectedWell.status).toBe(0);
  });

  test('what it starts is a command, and its example of settings is good', () => {
    const [start = ''] = valuesOf(text, 'ExecStart');
    const [program, ...words] = start.split(' ');
    expect(program).toBe('/opt/holdfast/deploy/holdfast');
    expectCommand(words);
    const example = readDeploy(`systemd/${settings}`);
    const config = settingsOf({
      ...assignmentsOf(valuesOf(text, 'Environment')),
      ...readEnvironmentFile(example),
    });
    const [state] = valuesOf(text, 'StateDirectory');
    expect(config.dataDir).toBe(`/var/lib/${state}`);
    expect(secondsOf(valuesOf(text, 'TimeoutStopSec')[0])).toBeGreaterThan(config.drainTimeoutMs / 1000 + 5);
    expect(Number(valuesOf(text, 'LimitNOFILE')[0])).toBeGreaterThanOrEqual(65536);
    // The example says where it belongs, and is what the unit reads.
    const [file = ''] = valuesOf(text, 'EnvironmentFile');
    expect(example).toContain(
      `# As ${file.replace('%i', '1')}, of ${name.replace('@.', '@1.').replace('.service', '')}`,
    );
  });

  test('it is no user of more rights, and is protected as the others are', () => {
    expect([valuesOf(text, 'User'), valuesOf(text, 'Restart')]).toEqual([['holdfast'], ['on-failure']]);
    expect(hardening(text)).toBe(hardening(readUnit('holdfast.service')));
    expect(text).toContain('NoNewPrivileges=yes\n');
    expect(text).toContain('ProtectSystem=strict\n');
  });
});

test('a unit that is wrong, or may do more, is found', () => {
  const text = readUnit('holdfast.service');
  const wrong = analyze(
    'verify',
    '--man=no',
    installed('wrong.service', text.replace('ProtectHome=yes', 'ProtectHom=yes')),
  );
  expect(wrong.said).toMatch(/Unknown key.* 'ProtectHom'/);
  const open = text.replace(/^(SystemCallFilter|CapabilityBoundingSet|ProtectSystem)=.*$/gm, '');
  const path = installed('open.service', open);
  expect(analyze('security', '--offline=yes', `--threshold=${EXPOSURE_MAX * 10}`, path).status).not.toBe(0);
});

test('the user and the folder are made', () => {
  const root = join(folder, 'root');
  mkdirSync(join(root, 'etc'), { recursive: true });
  const users = join(folder, 'sysusers.conf');
  writeFileSync(users, readUnit('sysusers.conf'));
  const made = spawnSync(programPath('systemd-sysusers') ?? '', [`--root=${root}`, users], {
    encoding: 'utf8',
  });
  expect(made).toMatchObject({ status: 0 });
  expect(readFileSync(join(root, 'etc', 'passwd'), 'utf8')).toMatch(
    /^holdfast:x:\d+:\d+:Holdfast object store:\/var\/lib\/holdfast:\/usr\/sbin\/nologin$/m,
  );
  expect(readUnit('tmpfiles.conf')).toMatch(/^d \/etc\/holdfast 0750 root holdfast -$/m);
});

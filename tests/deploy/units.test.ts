// The units for systemd: by its own tools, and against the program.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, matchesGlob } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { CREDENTIALS_FILE } from '../../src/admin/root-credentials.ts';
import { MASTER_KEYS_FILE } from '../../src/platform/keyring/file-keyring.ts';
import { programPath } from '../support/clients/client-programs.ts';
import { ROOT } from '../support/run/root.ts';
import {
  assignmentsOf,
  endMaxMs,
  expectCommand,
  readCompose,
  readDeploy,
  readEnvironmentFile,
  secondsOf,
  settingsOf,
  valuesOf,
} from '../support/servers/deploy-files.ts';

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

  test('systemd accepts it, and protects it well', () => {
    const path = installed(name, text);
    const { status, said } = analyze('verify', '--man=no', path);
    expect(said).not.toContain('holdfast');
    expect(status).toBe(0);
    const protectedWell = analyze('security', '--offline=yes', `--threshold=${EXPOSURE_MAX * 10}`, path);
    expect(protectedWell.said).toContain('Overall exposure level');
    expect(protectedWell.status).toBe(0);
  });

  test('its command exists, and its example of settings is valid', () => {
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
    const stopMaxMs = secondsOf(valuesOf(text, 'TimeoutStopSec')[0]) * 1000;
    expect(stopMaxMs).toBeGreaterThan(endMaxMs(config.drainTimeoutMs));
    expect(Number(valuesOf(text, 'LimitNOFILE')[0])).toBeGreaterThanOrEqual(65536);
    // The example says where it belongs, and is what the unit reads.
    const [file = ''] = valuesOf(text, 'EnvironmentFile');
    expect(example).toContain(
      `# As ${file.replace('%i', '1')}, of ${name.replace('@.', '@1.').replace('.service', '')}`,
    );
  });

  test('it has no more rights than the others, and is protected like them', () => {
    expect([valuesOf(text, 'User'), valuesOf(text, 'Restart')]).toEqual([['holdfast'], ['on-failure']]);
    expect(hardening(text)).toBe(hardening(readUnit('holdfast.service')));
    expect(text).toContain('NoNewPrivileges=yes\n');
    expect(text).toContain('ProtectSystem=strict\n');
  });
});

test('a wrong unit, or one with more rights, is found', () => {
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

test('nodes start after the etcd of their machine, and stop before it', () => {
  for (const [name] of UNITS) {
    const [after = ''] = valuesOf(readUnit(name), 'After');
    expect(after.split(' ')).toEqual(expect.arrayContaining(['network-online.target', 'time-sync.target']));
    expect(after.includes('etcd.service')).toBe(name !== 'holdfast.service');
  }
});

test('no private key of an example is readable by others, and all are where they are made', () => {
  const ruled = readUnit('tmpfiles.conf')
    .split('\n')
    .filter((line) => !line.startsWith('#'));
  const rules = ruled.flatMap((line) => {
    const [kind, path = '', mode = '', user = '', group = ''] = line.split(' ');
    return kind === 'z' ? [{ path, rights: `${mode} ${user} ${group}` }] : [];
  });
  const rightsOf = (path: string) => rules.findLast((rule) => matchesGlob(path, rule.path))?.rights;
  for (const [, settings] of UNITS) {
    const { cluster, etcd, tls } = settingsOf(readEnvironmentFile(readDeploy(`systemd/${settings}`)));
    for (const key of [cluster.key, etcd.key, tls.key])
      if (key !== undefined) expect([key, rightsOf(key)]).toEqual([key, '0600 holdfast holdfast']);
    for (const cert of [cluster.ca, cluster.cert, etcd.ca, etcd.cert, tls.cert])
      if (cert !== undefined) expect([cert, rightsOf(cert)]).toEqual([cert, '0640 root holdfast']);
    if (cluster.keys === undefined) continue;
    expect(rightsOf(cluster.keys)).toBe('0750 root holdfast');
    for (const name of [MASTER_KEYS_FILE, CREDENTIALS_FILE])
      expect(rightsOf(join(cluster.keys, name))).toBe('0600 holdfast holdfast');
  }
});

test('etcd has the same settings as in containers', () => {
  const example = readEnvironmentFile(readDeploy('systemd/etcd.env'));
  const composed = readCompose('compose.cluster.yaml').services['etcd-1']?.environment ?? {};
  expect(Object.keys(example).sort()).toEqual(Object.keys(composed).sort());
  const areOfPlace = /_(URLS|FILE|DIR|CLUSTER)$/;
  for (const [name, value] of Object.entries(example).filter(([one]) => !areOfPlace.test(one)))
    expect([name, value]).toEqual([name, composed[name]]);
  const places = Object.entries(example).filter(([name]) => /_URLS$/.test(name));
  for (const [, value] of places) expect(value).toMatch(/^https:\/\/[^,]+(,https:\/\/[^,]+)*$/);
});

/** A folder as the root of a machine, with the user. */
function machineRoot(): string {
  const root = mkdtempSync(join(folder, 'root-'));
  mkdirSync(join(root, 'etc'), { recursive: true });
  const users = join(folder, 'sysusers.conf');
  writeFileSync(users, readUnit('sysusers.conf'));
  const program = programPath('systemd-sysusers') ?? 'systemd-sysusers';
  const made = spawnSync(program, [`--root=${root}`, users], { encoding: 'utf8' });
  expect(made).toMatchObject({ status: 0 });
  return root;
}

test('the user and the folder are made', () => {
  expect(readFileSync(join(machineRoot(), 'etc', 'passwd'), 'utf8')).toMatch(
    /^holdfast:x:\d+:\d+:Holdfast object store:\/var\/lib\/holdfast:\/usr\/sbin\/nologin$/m,
  );
  expect(readUnit('tmpfiles.conf')).toMatch(/^d \/etc\/holdfast 0750 root holdfast -$/m);
});

// Only root may give files away.
test.runIf(process.getuid?.() === 0)("files that root has copied become the service's", () => {
  const root = machineRoot();
  const etc = join(root, 'etc', 'holdfast');
  mkdirSync(join(etc, 'keys'), { recursive: true, mode: 0o755 });
  for (const name of ['node-key.pem', 'node-cert.pem', 'gateway.env', `keys/${MASTER_KEYS_FILE}`])
    writeFileSync(join(etc, name), '', { mode: 0o644 });
  const rules = join(folder, 'tmpfiles.conf');
  writeFileSync(rules, readUnit('tmpfiles.conf'));
  const program = programPath('systemd-tmpfiles') ?? 'systemd-tmpfiles';
  const made = spawnSync(program, [`--root=${root}`, '--create', rules], { encoding: 'utf8' });
  expect(made).toMatchObject({ status: 0 });
  const [, uid, gid] =
    /^holdfast:x:(\d+):(\d+):/m.exec(readFileSync(join(root, 'etc', 'passwd'), 'utf8')) ?? [];
  const rightsOf = (name: string) => {
    const { mode, uid: user, gid: group } = statSync(join(etc, name));
    return `${(mode & 0o777).toString(8)} ${user}:${group}`;
  };
  expect(rightsOf('.')).toBe(`750 0:${gid}`);
  expect(rightsOf('gateway.env')).toBe(`640 0:${gid}`);
  expect(rightsOf('node-cert.pem')).toBe(`640 0:${gid}`);
  expect(rightsOf('node-key.pem')).toBe(`600 ${uid}:${gid}`);
  expect(rightsOf('keys')).toBe(`750 0:${gid}`);
  expect(rightsOf(`keys/${MASTER_KEYS_FILE}`)).toBe(`600 ${uid}:${gid}`);
});

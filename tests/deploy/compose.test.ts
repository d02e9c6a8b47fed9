// The compose files: by the schema of the compose specification, and against the program, the image and the proxy that
// they put together. No container engine is asked; what their environments make of real processes is
// tests/cluster/compose.test.ts's.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { healthEndpointOf } from '../../cmd/endpoint.ts';
import { roleFolders } from '../../src/admin/growth/grow-folder.ts';
import { VENV_CHECK_JSONSCHEMA } from '../support/clients/client-programs.ts';
import { ROOT } from '../support/run/root.ts';
import {
  type ComposeService,
  deployPath,
  endMaxMs,
  expectCommand,
  imageEnvironment,
  readCompose,
  readDeploy,
  secondsOf,
  settingsOf,
  valuesOf,
} from '../support/servers/deploy-files.ts';

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const OURS = `holdfast:${version}`;

const validate = (path: string) => {
  const args = ['--builtin-schema', 'vendor.compose-spec', path];
  return spawnSync(VENV_CHECK_JSONSCHEMA, args, { encoding: 'utf8' });
};
interface GrownFile {
  services: Record<string, { volumes: unknown }>;
  volumes: { grown: unknown };
}

const isOurs = ({ image }: ComposeService) => image === OURS;
const environmentOf = ({ environment }: ComposeService) => ({ ...imageEnvironment(), ...environment });
const wordsOf = ({ command }: ComposeService) => command ?? ['server'];

test('files that the schema refuses are refused', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-compose-'));
  const path = join(folder, 'compose.yaml');
  writeFileSync(path, readDeploy('compose.yaml').replace('restart:', 'restarts:'));
  const { status, stdout } = validate(path);
  rmSync(folder, { recursive: true });
  expect([status, stdout]).toEqual([1, expect.stringContaining("'restarts' was unexpected")]);
});

describe.each(['compose.yaml', 'compose.cluster.yaml'])('%s', (name) => {
  const file = readCompose(name);
  const services = Object.entries(file.services);
  const lasting = services.filter(([, { profiles }]) => profiles === undefined);

  test('fits the compose specification', () => {
    const { status, stdout } = validate(deployPath(name));
    expect(stdout).toContain('ok');
    expect(status).toBe(0);
  });

  test('images are pinned, ours to the version of the program', () => {
    for (const [, { image }] of services) expect(image).toMatch(/^[\w./-]+:v?\d+\.\d/);
    expect(services.filter(([, service]) => isOurs(service)).length).toBeGreaterThan(0);
    const others = services.map(([, { image }]) => image).filter((image) => image !== OURS);
    expect(others.filter((image) => image.startsWith('holdfast'))).toEqual([]);
  });

  test('settings and commands exist in the program', () => {
    for (const [, service] of services.filter(([, one]) => isOurs(one))) {
      settingsOf(environmentOf(service));
      const lines = /\bholdfast ([a-z][^\n;]*)/.exec(
        service.entrypoint === undefined ? '' : wordsOf(service).join('\n'),
      );
      expectCommand(service.entrypoint === undefined ? wordsOf(service) : (lines?.[1] ?? 'none').split(' '));
    }
  });

  test('nothing runs with more rights than it needs', () => {
    const [user = 'root'] = valuesOf(readDeploy('Dockerfile'), 'USER').slice(-1);
    expect(user).toMatch(/^[1-9]\d{3,}:[1-9]\d{3,}$/);
    for (const [, service] of services) {
      expect(service.privileged ?? false).toBe(false);
      expect(service.user).toBeUndefined();
      expect(service.read_only).toBe(true);
      expect(service.cap_drop).toEqual(['ALL']);
      expect(service.security_opt).toContain('no-new-privileges:true');
    }
  });

  test('stopped services get the time that they need, and crashed ones restart', () => {
    for (const [, service] of lasting) {
      expect(service.restart).toBe('unless-stopped');
      if (!isOurs(service)) continue;
      const { drainTimeoutMs } = settingsOf(environmentOf(service));
      expect(secondsOf(service.stop_grace_period) * 1000).toBeGreaterThan(endMaxMs(drainTimeoutMs));
    }
  });

  test('each has a bound of resources', () => {
    for (const [, service] of services) {
      expect(service.pids_limit).toBeLessThanOrEqual(1024);
      expect(service.ulimits?.nofile).toBeGreaterThanOrEqual(65_536);
      expect(service.logging?.options).toMatchObject({ 'max-size': expect.anything(), 'max-file': '5' });
    }
  });

  test('each has a health check at the right place', () => {
    for (const [, service] of lasting) {
      const [kind, program = '', ...rest] = service.healthcheck?.test ?? [];
      expect(kind).toBe('CMD');
      if (!isOurs(service)) continue;
      expect(program).toBe('holdfast');
      expectCommand(rest);
      const { port } = new URL(healthEndpointOf(settingsOf(environmentOf(service))));
      expect(port).toBe(wordsOf(service)[0] === 'server' ? '9000' : '9100');
    }
  });

  test('everything used is declared, and everything declared is used', () => {
    const all = services.map(([, service]) => service);
    const named = all.flatMap(({ volumes = [] }) => volumes.map((volume) => volume.split(':')[0] ?? ''));
    const used = (names: readonly string[]) => [...new Set(names)].sort();
    const declared = (entries: object | undefined) => Object.keys(entries ?? {}).sort();
    expect(used(named.filter((volume) => !volume.startsWith('.')))).toEqual(declared(file.volumes));
    expect(used(all.flatMap(({ secrets = [] }) => secrets.map(({ source }) => source)))).toEqual(
      declared(file.secrets),
    );
    expect(used(all.flatMap(({ networks = [] }) => networks))).toEqual(declared(file.networks));
    for (const { depends_on = {} } of all)
      expect(declared(file.services)).toEqual(expect.arrayContaining(Object.keys(depends_on)));
  });

  test('no secret is in an environment', () => {
    for (const [, { environment = {} }] of services)
      expect(Object.keys(environment).filter((key) => /(SECRET|PASSWORD|ACCESS)(_KEY)?$/.test(key))).toEqual(
        [],
      );
  });
});

test('a grown single node continues in its volume, with its new folders', () => {
  const { status, stdout } = validate(deployPath('compose.grown.yaml'));
  expect([status, stdout]).toEqual([0, expect.stringContaining('ok')]);
  const grown = parse(readDeploy('compose.grown.yaml')) as GrownFile;
  const folders = roleFolders('/');
  const cluster = readCompose('compose.cluster.yaml').services;
  for (const [name, { volumes }] of Object.entries(grown.services)) {
    const role = name.replace('-1', '') as 'metadata' | 'storage';
    expect(cluster[name]?.command).toEqual([role]);
    const subpath = folders[role].slice(1);
    // The one that it takes the place of has the same target.
    const [target] = (cluster[name]?.volumes ?? []).map((volume) => volume.split(':')[1]);
    expect(volumes).toEqual([{ type: 'volume', source: 'grown', target, volume: { subpath } }]);
  }
  const single = readCompose('compose.yaml');
  expect(grown.volumes.grown).toEqual({ external: true, name: `${single.name}_data` });
  expect(Object.keys(single.volumes ?? {})).toEqual(['data']);
});

test('the single node is reachable from its machine only, at its listening port', () => {
  const { holdfast } = readCompose('compose.yaml').services;
  expect(holdfast?.ports).toEqual(['127.0.0.1:9000:9000']);
  expect(settingsOf(imageEnvironment()).listen).toEqual({ host: '0.0.0.0', port: 9000 });
  expect(holdfast?.volumes).toEqual([`data:${settingsOf(imageEnvironment()).dataDir}`]);
});

describe('compose.cluster.yaml as a whole', () => {
  const file = readCompose('compose.cluster.yaml');
  const services = Object.entries(file.services);
  const ofRole = (role: string) =>
    services.filter(([, service]) => isOurs(service) && service.command?.[0] === role);

  test('three etcd, three metadata nodes and three storage nodes in zones of their own, two gateways', () => {
    expect(services.filter(([name]) => name.startsWith('etcd-'))).toHaveLength(3);
    for (const role of ['metadata', 'storage']) {
      const zones = ofRole(role).map(([, { environment }]) => environment?.HOLDFAST_NODE_ZONE);
      expect(new Set(zones).size).toBe(3);
    }
    expect(ofRole('gateway')).toHaveLength(2);
  });

  test('nodes announce their own names and ports', () => {
    for (const [name, { environment = {} }] of [...ofRole('metadata'), ...ofRole('storage')]) {
      const { node } = settingsOf(environment);
      expect(node.advertise).toEqual({ host: name, port: node.listen.port });
    }
    for (const [, { environment = {} }] of services.filter(([, service]) => isOurs(service)))
      for (const url of settingsOf(environment).join) {
        const { protocol, hostname, port } = new URL(url);
        expect([protocol, port]).toEqual(['https:', '2379']);
        expect(Object.keys(file.services)).toContain(hostname);
      }
  });

  test('each has a certificate for its own name, which is among those that are made', () => {
    const made = file.services.certs?.environment?.NAMES?.split(/\s+/) ?? [];
    const shown = services.flatMap(([name, { secrets = [] }]) =>
      secrets.filter(({ target }) => target === 'node-cert.pem').map(({ source }) => [name, source] as const),
    );
    for (const [name, source] of shown)
      expect(source).toBe(`${['init', 'tool'].includes(name) ? 'operator' : name}-cert`);
    expect(shown).toHaveLength(made.length + 1);
    for (const [name, { file: path }] of Object.entries(file.secrets ?? {})) {
      if (name === 'proxy-tls') continue;
      expect(path).toBe(`./secrets/ca/${name}.pem`);
      expect(name === 'ca-cert' ? name : made).toContain(
        name === 'ca-cert' ? name : name.replace(/-(cert|key)$/, ''),
      );
    }
    // The authority's key is nobody's but of the one that makes certificates.
    const whole = services.filter(([, { volumes = [] }]) =>
      volumes.some((volume) => volume.startsWith('./secrets:')),
    );
    expect(whole.map(([name]) => name)).toEqual(['certs', 'init']);
  });

  test('only the proxy is on a network with a way out, and only it has a port there', () => {
    const open = Object.entries(file.networks ?? {}).filter(([, network]) => network?.internal !== true);
    expect(open.map(([name]) => name)).toEqual(['outside']);
    const outside = services.filter(
      ([, { ports, networks = [] }]) => ports !== undefined || networks.includes('outside'),
    );
    expect(outside.map(([name]) => name)).toEqual(['proxy']);
  });

  test('the proxy and the gateways know each other', () => {
    const proxy = readDeploy('proxy/haproxy.cfg');
    const servers = [...proxy.matchAll(/^ {2}server (\S+) (\S+) /gm)].map(([, name, address]) => [
      name,
      address,
    ]);
    expect(servers).toEqual(
      ofRole('gateway').map(([name, service]) => [
        name,
        `${name}:${settingsOf(environmentOf(service)).listen.port}`,
      ]),
    );
    for (const [, service] of ofRole('gateway')) {
      const { trustedProxies } = settingsOf(environmentOf(service));
      expect(trustedProxies).toEqual(file.networks?.front?.ipam?.config.map(({ subnet }) => subnet));
    }
    // By HTTPS, with a certificate that the proxy is told to want: of its name, and of the authority that it is given.
    const wanted = [...proxy.matchAll(/^ {2}server (\S+) .*verifyhost (\S+)$/gm)].map(([, name, host]) => [
      name,
      host,
    ]);
    expect(wanted).toEqual(ofRole('gateway').map(([name]) => [name, name]));
    for (const [name, service] of ofRole('gateway')) {
      const { tls } = settingsOf(environmentOf(service));
      const shown = service.secrets?.find(({ target }) => `/run/secrets/${target}` === tls.cert);
      expect([name, tls.mode, shown?.source]).toEqual([name, 'files', `${name}-cert`]);
    }
    const [, authority] = /verify required ca-file (\S+)/.exec(proxy) ?? [];
    const targets = (file.services.proxy?.secrets ?? []).map(({ target }) => `/run/secrets/${target}`);
    expect(targets).toContain(authority);
    const { ports, secrets = [], stop_grace_period, healthcheck } = file.services.proxy ?? {};
    const [, bound, certificate] = /bind :(\d+) ssl crt (\S+)/.exec(proxy) ?? [];
    expect(ports).toEqual([`443:${bound}`]);
    expect(`/run/secrets/${secrets[0]?.target}`).toBe(certificate);
    expect(secondsOf(stop_grace_period)).toBeGreaterThan(secondsOf(/hard-stop-after (\S+)/.exec(proxy)?.[1]));
    const [, alive = ''] = /frontend alive\n {2}bind (\S+)/.exec(proxy) ?? [];
    expect(healthcheck?.test?.at(-1)).toContain(`/dev/tcp/${alive.replace(':', '/')} `);
  });
});

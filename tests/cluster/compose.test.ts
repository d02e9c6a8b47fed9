// deploy/compose.cluster.yaml by real processes, in the order of docs/operations.md: certificates, etcd, the cluster, its
// nodes and gateways; what one gateway takes the other gives; each stops in the time that it has.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { bringTestEtcd } from '../support/cluster/etcd.ts';
import { type ComposeProcesses, composeProcesses } from '../support/servers/compose-processes.ts';
import { readCompose, secondsOf } from '../support/servers/deploy-files.ts';
import { signedHeaders } from '../support/servers/raw-s3.ts';

const MiB = 1024 * 1024;
const READY_MAX_MS = 180_000;

const file = readCompose('compose.cluster.yaml');
const namesOf = (...beginnings: string[]) =>
  Object.keys(file.services).filter((name) =>
    beginnings.some((beginning) => name.startsWith(`${beginning}-`)),
  );
const folder = mkdtempSync(join(tmpdir(), 'holdfast-compose-'));
let processes: ComposeProcesses;

beforeAll(async () => {
  processes = await composeProcesses(file, { folder, ports: [2379, 2380, 7000, 9000, 9100] });
});
afterAll(() => {
  processes.end();
  rmSync(folder, { recursive: true, force: true });
});

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const latestMs = performance.now() + READY_MAX_MS;
  while (!(await isSo())) {
    if (performance.now() > latestMs) throw new Error(`${what} is not ready: ${processes.logOf(what)}`);
    await sleep(200);
  }
}

/** By the certificate of the operator, as the health check asks it. */
function isEtcdWell(name: string): Promise<boolean> {
  const read = (target: string) => readFileSync(processes.pathOf(`./secrets/ca/${target}.pem`));
  const options = { ca: read('ca-cert'), cert: read('operator-cert'), key: read('operator-key') };
  return new Promise((resolve) => {
    const asked = request(`https://${processes.addressOf(name, 2379)}/health`, options, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    asked.once('error', () => resolve(false));
    asked.end();
  });
}

async function isWell(name: string): Promise<boolean> {
  const answer = await fetch(`http://${processes.addressOf(name, 9100)}/health/ready`).catch(() => undefined);
  return answer?.status === 200;
}

/** As the proxy does: by HTTPS, to the name that stands in its certificate, of the cluster's authority. */
async function ask(
  gateway: string,
  keys: { accessKey: string; secretKey: string },
  { body, ...wanted }: { method: string; path: string; body?: Buffer },
): Promise<{ status: number; body: Buffer }> {
  const endpoint = `https://${processes.addressOf(gateway, 9000)}`;
  const length = body && { headers: { 'content-length': String(body.length) } };
  const headers = signedHeaders({ ...keys, endpoint }, { ...wanted, ...length });
  const ca = readFileSync(processes.pathOf('./secrets/ca/ca-cert.pem'));
  const asked = request(endpoint + wanted.path, { method: wanted.method, headers, ca, servername: gateway });
  asked.end(body);
  const [answer] = await once(asked, 'response');
  return { status: answer.statusCode, body: await buffer(answer) };
}

test('certificates are made once', () => {
  const made = processes.run('certs');
  expect(made.status, made.said).toBe(0);
  const files = readdirSync(processes.pathOf('./secrets/ca')).sort();
  const declared = Object.values(file.secrets ?? {}).map((secret) => secret.file.split('/').at(-1));
  expect(files).toEqual([...declared.filter((name) => name !== 'tls.pem'), 'ca-key.pem'].sort());
  expect(processes.run('certs')).toEqual({ status: 0, said: '' });
});

test('etcd takes these certificates, and the cluster is made once', async () => {
  const etcd = await bringTestEtcd({ mayInstall: true });
  for (const name of namesOf('etcd')) processes.start(name, etcd);
  for (const name of namesOf('etcd')) await until(name, () => isEtcdWell(name));
  const made = processes.run('init');
  expect(made, made.said).toMatchObject({ status: 0, said: expect.stringContaining('is made.') });
  expect(readdirSync(processes.pathOf('./secrets/keys')).sort()).toEqual([
    'master-keys.json',
    'root-credentials.json',
  ]);
  expect(processes.run('init')).toMatchObject({
    status: 1,
    said: expect.stringContaining('there is a cluster already'),
  });
});

test('all become healthy, as their health checks report', async () => {
  const names = namesOf('metadata', 'storage', 'gateway');
  for (const name of names) processes.start(name);
  for (const name of names) await until(name, () => isWell(name));
  for (const name of names) {
    const [, , ...words] = must(file.services[name]?.healthcheck?.test, 'a health check');
    // A metadata node may follow another primary meanwhile, and is not ready for that moment.
    await until(name, async () => processes.run(name, words).status === 0);
  }
  // As the page has it.
  await until('tool', async () => processes.run('tool').status === 0);
});

test('objects put through one gateway are read through the other', async () => {
  const keys = JSON.parse(
    readFileSync(join(processes.pathOf('./secrets/keys'), 'root-credentials.json'), 'utf8'),
  );
  const [one = '', two = ''] = namesOf('gateway');
  const body = randomBytes(3 * MiB);
  expect((await ask(one, keys, { method: 'PUT', path: '/composed' })).status).toBe(200);
  expect((await ask(one, keys, { method: 'PUT', path: '/composed/key', body })).status).toBe(200);
  const read = await ask(two, keys, { method: 'GET', path: '/composed/key' });
  expect([read.status, read.body.equals(body)]).toEqual([200, true]);
});

test('all stop in order within their time, when stopped at once as by compose down', async () => {
  await Promise.all(
    namesOf('gateway', 'storage', 'metadata').map(async (name) => {
      const beganMs = performance.now();
      expect([name, await processes.stop(name)]).toEqual([name, 0]);
      const graceMs = secondsOf(file.services[name]?.stop_grace_period) * 1000;
      expect(performance.now() - beganMs).toBeLessThan(graceMs);
    }),
  );
});

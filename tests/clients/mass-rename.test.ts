// A large prefix is renamed with the command line tool while restic backs up beside it, to the same server: every key is
// under its new name afterwards, none under the old one, and the repository is sound.
// By hand, with a million keys: HOLDFAST_TEST_RENAMED_KEYS=1000000 npm test -- tests/clients/mass-rename.test.ts
import { Agent } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { childrenOf, parseXml, textOf } from '../../src/base/xml/parse-xml.ts';
import { type ClientWorld, openWorld, PROGRAMS, testOver } from '../support/clients/clients.ts';
import { hashTree, writeTree } from '../support/clients/tree.ts';
import { amountOf } from '../support/run/long-form.ts';
import { ROOT } from '../support/run/root.ts';
import { send } from '../support/servers/raw-s3.ts';
import { expectStatus } from '../support/servers/s3-api.ts';

const test = testOver('http');
const KEY_COUNT = amountOf({ short: 2000, long: 200_000, byHand: process.env.HOLDFAST_TEST_RENAMED_KEYS });
const TREE_MIB = 16;
const CONNECTIONS = 32;
/** Per key: a put, a rename, a listing. */
const TIMEOUT_MS = 120_000 + KEY_COUNT * 4;
const BUCKET = 'renamed';

let world: ClientWorld;
beforeAll(async () => {
  world = await openWorld({ transport: 'http' });
  writeTree({ folder: world.path('tree'), seed: 'mass-rename', sizeMiB: TREE_MIB });
});
afterAll(() => world.close());

const keyAt = (index: number) => `${index % 100}/${String(index).padStart(7, '0')}`;

async function putAll(agent: Agent): Promise<void> {
  expectStatus(await send(world.server, { method: 'PUT', path: `/${BUCKET}` }), 200);
  const indices = Array.from({ length: KEY_COUNT }, (_, index) => index).values();
  const work = async () => {
    for (const index of indices) {
      const path = `/${BUCKET}/old/${keyAt(index)}`;
      expectStatus(
        await send(world.server, { method: 'PUT', path, body: Buffer.from(`${index}`), agent }),
        200,
      );
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, work));
}

async function listKeys(): Promise<string[]> {
  const keys: string[] = [];
  for (let after = ''; ; ) {
    const path = `/${BUCKET}?list-type=2&start-after=${encodeURIComponent(after)}`;
    const page = parseXml((await send(world.server, { method: 'GET', path })).body, { depthMax: 8 });
    keys.push(...childrenOf(page, 'Contents').map((entry) => textOf(entry, 'Key') ?? ''));
    if (textOf(page, 'IsTruncated') !== 'true') return keys;
    after = keys.at(-1) ?? '';
  }
}

async function restic(...args: string[]): Promise<string> {
  const ran = await world.run(PROGRAMS.restic, args, {
    cwd: world.path('tree'),
    env: {
      ...world.awsVariables(),
      RESTIC_PASSWORD: 'a password of the repository',
      RESTIC_REPOSITORY: `s3:${world.server.endpoint}/repository`,
    },
  });
  return ran.stdout;
}

async function rename(from: string, to: string): Promise<string> {
  const args = [join(ROOT, 'cmd', 'holdfast.mjs'), 'mv', '--prefix', `${BUCKET}/${from}`, `${BUCKET}/${to}`];
  const env = { ...world.awsVariables(), PATH: process.env.PATH ?? '' };
  return (await world.run(process.execPath, [...args, '--endpoint', world.server.endpoint], { env })).stdout;
}

test(`${KEY_COUNT} keys are renamed while restic backs up`, { timeout: TIMEOUT_MS }, async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  await putAll(agent);
  agent.destroy();
  await restic('init');
  const beganMs = performance.now();
  const backups = restic('backup', '.').then(() => restic('backup', '--force', '.'));
  const renamed = rename('old/', 'new/');
  const told = await renamed;
  const tookMs = performance.now() - beganMs;
  await backups;
  expect(told.replaceAll(',', '')).toContain(`${KEY_COUNT} renamed`);
  console.info(`${KEY_COUNT} keys in ${Math.round(tookMs)} ms, restic beside it`);
  const wanted = Array.from({ length: KEY_COUNT }, (_, index) => `new/${keyAt(index)}`).sort();
  expect(await listKeys()).toEqual(wanted);
  const last = await send(world.server, { method: 'GET', path: `/${BUCKET}/new/${keyAt(KEY_COUNT - 1)}` });
  expect(last.body.toString()).toBe(`${KEY_COUNT - 1}`);
  expect(await restic('check', '--read-data')).toContain('no errors were found');
  await restic('restore', 'latest', '--target', world.path('restored'));
  expect(hashTree(world.path('restored'))).toEqual(hashTree(world.path('tree')));
});

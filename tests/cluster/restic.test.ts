// A key that is made for a bucket backs up by one gateway of a cluster as by any other, and ends everywhere when it is disabled.
// Then a storage machine is drained, removed and replaced by the commands of docs/operations.md, while restic backs up a tree that
// changes, and restores it, over and over: every run of restic ends well, and in the end its repository is sound.
import { type ChildProcess, execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { changeKey } from '../../src/cli/access/key-commands.ts';
import {
  type BackupUser,
  expectForbidden,
  makeBackupBucket,
  makeBackupUser,
  programsOf,
  toolOf,
  writeSmallTree,
} from '../support/clients/backup-keys.ts';
import { programPath } from '../support/clients/client-programs.ts';
import { baseEnvironment, runProgram } from '../support/clients/clients.ts';
import { changeTree, compareTrees, writeTree } from '../support/clients/tree.ts';
import { findCopies, isWhole } from '../support/cluster/copies.ts';
import { fsckFindings } from '../support/cluster/endure.ts';
import { freePort } from '../support/cluster/free-ports.ts';
import { startCluster, type TestCluster } from '../support/cluster/start-cluster.ts';
import { commandsOf } from '../support/run/runbook.ts';
import { endGracefully, ranToEnd } from '../support/servers/process-ends.ts';
import type { Access } from '../support/servers/raw-s3.ts';

const TREE_MIB = 16;
/** Between two rounds of restic, which would take all of the processor otherwise. */
const REST_MS = 2000;
const WITHIN = { timeout: 180_000, interval: 2000 };

let cluster: TestCluster;
/** Nodes that the test has started by a command of the document. */
const started: ChildProcess[] = [];
const beganMs = performance.now();
const seconds = () => `${Math.round((performance.now() - beganMs) / 1000)} s`;

beforeAll(async () => {
  cluster = await startCluster({ storage: 4, settings: { 'storage.readingGrace': '10s' } });
});
afterAll(async () => {
  for (const child of started) await endGracefully(child);
  await cluster?.stop();
});

class Restic {
  readonly #env: Record<string, string>;
  readonly #tree: string;
  #isStopping = false;
  #running: Promise<void> = Promise.resolve();
  roundCount = 0;

  constructor() {
    const [{ endpoint, accessKey, secretKey }] = cluster.gateways as [TestCluster['gateways'][number]];
    this.#tree = join(cluster.folder, 'tree');
    this.#env = {
      AWS_ACCESS_KEY_ID: accessKey,
      AWS_SECRET_ACCESS_KEY: secretKey,
      RESTIC_PASSWORD: 'a password of the repository',
      HOME: cluster.folder,
      RESTIC_REPOSITORY: `s3:${endpoint}/restic-repository`,
    };
  }

  /** Rejects with what it says when it fails. */
  async run(...args: string[]): Promise<string> {
    const program = must(programPath('restic'), 'restic');
    const options = { cwd: this.#tree, env: this.#env, maxBuffer: 64 * 1024 * 1024 };
    return (await promisify(execFile)(program, args, options)).stdout;
  }

  async open(): Promise<void> {
    writeTree({ folder: this.#tree, seed: 'restic-cluster', sizeMiB: TREE_MIB });
    await this.run('init');
    await this.#round();
    this.#running = this.#loop();
    // Told by whoever waits for it.
    this.#running.catch(() => {});
  }

  /** Rejects when any run of it has failed. */
  async end(): Promise<void> {
    this.#isStopping = true;
    await this.#running;
  }

  async #loop(): Promise<void> {
    while (!this.#isStopping) {
      changeTree({ folder: this.#tree, seed: `restic-cluster ${this.roundCount}` });
      await this.#round();
      await sleep(REST_MS);
    }
  }

  async #round(): Promise<void> {
    const restored = join(cluster.folder, 'restored');
    await this.run('backup', '.');
    await this.run('restore', 'latest', '--target', restored);
    expect(compareTrees({ expected: this.#tree, actual: restored })).toEqual([]);
    await rm(restored, { recursive: true });
    this.roundCount++;
  }
}

/** Types the next command of a section, with names in place of the capitals. */
async function type(line: readonly string[] | undefined, names: Record<string, string>): Promise<string> {
  const words = must(line, 'a command of the section').map((word) => names[word] ?? word);
  const { code, output } = await cluster.command(...words);
  expect(code, `holdfast ${words.join(' ')}: ${output}`).toBe(0);
  return output;
}

const isDone = async (line: readonly string[] | undefined) =>
  (await type(line, {})).includes('No change is pending.');

/** Within which a change of rights is seen everywhere (R45). */
const REVOKED_WITHIN_MS = 5000;
const BUCKET = 'vault';

/** A user that the first gateway made and the second one serves, with what its programs need. */
async function makeVaultUser() {
  const [owner, other] = cluster.gateways as [Access, Access];
  const made = await makeBackupUser(owner, { name: 'backup', policy: 'append-only', bucket: BUCKET });
  const moved = (text: string) => text.replaceAll(owner.endpoint, other.endpoint);
  const { restic, rclone, aws } = made.lines;
  const user: BackupUser = {
    ...made,
    access: { ...made.access, endpoint: other.endpoint },
    lines: { restic: moved(restic), rclone: moved(rclone), aws: moved(aws) },
  };
  const home = join(cluster.folder, 'home-of-backup');
  mkdirSync(home);
  const base = baseEnvironment(home);
  const programs = programsOf(
    (program, args, options) => runProgram(program, args, { ...options, env: { ...base, ...options?.env } }),
    user,
    home,
  );
  return { owner, other, user, programs };
}

test('a key for one bucket backs up, takes nothing away, and a client that runs ends when it is disabled', async () => {
  await makeBackupBucket(must(cluster.gateways[0], 'a gateway'), BUCKET);
  const { owner, other, user, programs } = await makeVaultUser();
  const tree = join(cluster.folder, 'small-tree');
  writeSmallTree(tree);
  const remote = `backup:${BUCKET}`;
  // restic and the AWS CLI do the same where one node serves them (tests/clients/backup-keys.test.ts).
  await programs.rclone('copy', tree, `${remote}/tree`);
  await programs.rclone('check', '--download', tree, `${remote}/tree`);
  await expectForbidden({ owner: { ...owner, endpoint: other.endpoint }, user: user.access }, BUCKET);

  const many = join(cluster.folder, 'many');
  mkdirSync(many);
  for (let index = 0; index < 400; index++) writeFileSync(join(many, `${index}`), Buffer.alloc(64 << 10));
  const served = async () =>
    (await cluster.logOf('gateway-2')).filter(
      ({ operation, key }) => operation === 'PutObject' && String(key).startsWith('running/'),
    );
  const running = programs.rclone('copy', many, `${remote}/running`, '--transfers', '2', '--bwlimit', '1M');
  const ended = running.then(
    () => 'it copied all',
    (error: Error) => error.message,
  );
  await expect
    .poll(async () => (await served()).length, { timeout: 180_000, interval: 100 })
    .toBeGreaterThan(4);
  const { context, options } = toolOf(owner);
  const disabledAtMs = Date.now();
  await changeKey(context, { accessKey: user.access.accessKey, change: 'disable' }, options);
  expect(await ended).toMatch(/InvalidAccessKeyId|Forbidden/);
  const requests = await served();
  const late = requests.filter(
    ({ status, time }) => status === 200 && Date.parse(String(time)) > disabledAtMs + REVOKED_WITHIN_MS,
  );
  expect(late).toEqual([]);
  expect(requests.filter(({ status }) => status === 200).length).toBeLessThan(400);
  expect(requests.filter(({ status }) => status === 403).length).toBeGreaterThan(0);
  await changeKey(context, { accessKey: user.access.accessKey, change: 'enable' }, options);
  await programs.rclone('check', tree, `${remote}/tree`);
});

test('a storage machine is drained, removed and replaced while restic runs', async () => {
  const restic = new Restic();
  await restic.open();
  const told: string[] = [`first backup and restore after ${seconds()}`];
  const name = 'storage-2';
  const { members } = await cluster.status();
  const ids = await Promise.all(
    members
      .filter(({ role }) => role === 'storage')
      .map(async ({ nodeId }) => [await cluster.nameOf(nodeId), nodeId] as const),
  );
  const NODE = must(new Map(ids).get(name), 'a node');
  const before = restic.roundCount;

  const [drain, look, remove] = commandsOf('Drain and remove a storage node');
  expect(await type(drain, { NODE })).toContain('drains: others own its partitions');
  await expect.poll(() => isDone(look), WITHIN).toBe(true);
  told.push(`drained at ${seconds()}`);
  await cluster.end(name);
  // As long as a debt may name one of its disks it is refused.
  const hasRemoved = async () => {
    const words = must(remove, 'a command of the section').map((word) => (word === 'NODE' ? NODE : word));
    const { code, output } = await cluster.command(...words);
    // What it says where it refuses speaks of removed disks, too.
    return code === 0 ? output : `refused: ${output}`;
  };
  await expect.poll(hasRemoved, WITHIN).toMatch(/^Disk \w+ is removed/m);
  // With the folder that it had it is the disk that was removed.
  const again = cluster.spawn('storage', '--data-dir', join(cluster.folder, name));
  started.push(again);
  const refused = await ranToEnd(again, 'the node that was removed');
  expect(refused.code).toBe(1);
  expect(refused.output).toContain('which was removed from the cluster (`holdfast cluster remove`)');
  await rm(join(cluster.folder, name), { recursive: true });
  told.push(`removed at ${seconds()}`);

  const [add, disks] = commandsOf('Add a storage node');
  const folder = join(cluster.folder, 'storage-new');
  const port = await freePort();
  const names: Record<string, string> = {
    '/var/lib/holdfast/storage-1': folder,
    '192.0.2.14:7101': `127.0.0.1:${port}`,
    'rack-4': 'zone-2',
  };
  const words = must(add, 'the command of a storage node').map((word) => names[word] ?? word);
  const node = cluster.spawn(...words);
  node.stdout.resume();
  node.stderr.resume();
  started.push(node);
  await expect
    .poll(async () => {
      const copies = await findCopies(cluster.config);
      const owning = copies.map.disks.filter(({ address }) => address === `127.0.0.1:${port}`);
      return owning.some(({ id }) => (copies.byDisk.get(id) ?? 0) > 0) && isWhole(copies);
    }, WITHIN)
    .toBe(true);
  await expect.poll(() => isDone(disks), WITHIN).toBe(true);
  told.push(`replaced, every chunk on its three owners, at ${seconds()}`);
  await cluster.untilHealthy();
  await restic.end();
  told.push(`${restic.roundCount - before} backups and restores meanwhile`);
  expect(restic.roundCount).toBeGreaterThan(before);
  expect(await restic.run('check', '--read-data')).toContain('no errors were found');
  expect(await fsckFindings(cluster, { readsData: true })).toEqual([]);
  console.log(`drained, removed, replaced: ${told.join('; ')}`);
});

test('cases that restic does not meet are in the document, too', () => {
  const all = ['Add a storage node', 'Drain and remove a storage node', 'Replace a storage node'];
  const roles = [...all, 'Add a metadata node', 'Replace a metadata node'];
  for (const heading of roles) expect(commandsOf(heading).length, heading).toBeGreaterThan(0);
});

// A single node becomes the first members of a cluster (docs/operations.md), with real processes: what it held is there,
// wherever the command was cut short, and further nodes join one by one.
import { randomBytes } from 'node:crypto';
import { access as accessFile, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { growCluster } from '../../src/admin/growth/grow.ts';
import { must } from '../../src/base/assert.ts';
import { parseXml, textOf } from '../../src/base/xml/parse-xml.ts';
import { runFsck } from '../../src/cli/fsck-command.ts';
import { loadConfig } from '../../src/config/load.ts';
import { freePort } from '../support/cluster/free-ports.ts';
import { openRoleProcesses, type RoleProcesses } from '../support/cluster/role-processes.ts';
import { sendAgain } from '../support/cluster/send-again.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { pathOf, type RawAnswer, send } from '../support/servers/raw-s3.ts';

const SHARDS = 4;
const MiB = 1024 * 1024;
const SMALL = randomBytes(2000);
/** Inline bodies lie in the metadata, larger ones in chunks. */
const LARGE = randomBytes(3 * MiB + 17);
const PARTS = [randomBytes(5 * MiB), randomBytes(1000)];
const ROLES = ['metadata', 'storage', 'gateway'];

let cluster: RoleProcesses;
afterEach(() => cluster.stop());

async function ask(method: string, path: string, body?: Buffer): Promise<RawAnswer> {
  const answer = await sendAgain(() => cluster.access, { method, path, ...(body && { body }) });
  expect(answer.status, `${method} ${path}: ${answer.status === 200 ? '' : answer.body.toString()}`).toBe(
    200,
  );
  return answer;
}

const put = (key: string, body: Buffer) => ask('PUT', pathOf('kept', key), body);
const get = async (key: string) => (await ask('GET', pathOf('kept', key))).body;

/** Starts the single node in the folder `single`. */
async function startSingle(): Promise<string> {
  const folder = cluster.folderOf('single');
  const { port } = new URL(cluster.access.endpoint);
  const where = ['--data-dir', folder, '--listen', `127.0.0.1:${port}`, '--shards', String(SHARDS)];
  cluster.start('server-1', ...where);
  await cluster.untilReady(folder);
  return folder;
}

interface Written {
  versionIds: string[];
  uploadId: string;
}

async function write(): Promise<Written> {
  await ask('PUT', '/kept');
  await put('small', SMALL);
  await put('large', LARGE);
  await ask('PUT', '/other');
  await ask(
    'PUT',
    '/kept?versioning',
    Buffer.from('<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>'),
  );
  const versionIds: string[] = [];
  for (const body of [LARGE, SMALL])
    versionIds.push(String((await put('versions', body)).headers['x-amz-version-id']));
  const begun = await ask('POST', `${pathOf('kept', 'upload')}?uploads`);
  const uploadId = must(textOf(parseXml(begun.body, { depthMax: 4 }), 'UploadId'), 'an upload');
  await ask('PUT', `${pathOf('kept', 'upload')}?partNumber=1&uploadId=${uploadId}`, PARTS[0]);
  return { versionIds, uploadId };
}

async function expectAll({ versionIds }: Written): Promise<void> {
  expect((await get('small')).equals(SMALL)).toBe(true);
  expect((await get('large')).equals(LARGE)).toBe(true);
  expect((await get('versions')).equals(SMALL)).toBe(true);
  for (const [at, body] of [LARGE, SMALL].entries()) {
    const answer = await ask('GET', `${pathOf('kept', 'versions')}?versionId=${versionIds[at]}`);
    expect(answer.body.equals(body)).toBe(true);
  }
}

async function completeUpload({ uploadId }: Written): Promise<void> {
  const path = pathOf('kept', 'upload');
  const second = await ask('PUT', `${path}?partNumber=2&uploadId=${uploadId}`, PARTS[1]);
  const listed = await ask('GET', `${path}?uploadId=${uploadId}`);
  const [first] = /"([0-9a-f]{32})"|&quot;([0-9a-f]{32})&quot;/.exec(listed.body.toString()) ?? [];
  const tags = [must(first, 'an ETag').replaceAll('&quot;', '"'), String(second.headers.etag)];
  const parts = tags.map((tag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${tag}</ETag></Part>`);
  const body = `<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`;
  await ask('POST', `${path}?uploadId=${uploadId}`, Buffer.from(body));
  expect((await get('upload')).equals(Buffer.concat(PARTS))).toBe(true);
}

const config = () => loadConfig({ flags: { join: cluster.etcd.endpoint } });

test('the data of a single node is there after it has grown, and nodes join one by one', async () => {
  cluster = await openRoleProcesses({ keys: 'single/keys' });
  const single = await startSingle();
  const written = await write();

  const whileRunning = await cluster.run('cluster', 'grow', single);
  expect(whileRunning.output).toContain('in use by another Holdfast server');
  await cluster.end('server-1');

  await growCutShort(single);
  const again = await cluster.run('cluster', 'grow', single);
  expect(again.output).toContain('already');
  expect(again.code).toBe(0);
  expect((await readdir(single)).sort()).toEqual(
    ['gateway', 'grow.json', 'keys', 'lock', 'metadata', 'storage'].sort(),
  );
  cluster.start('server-1', '--data-dir', single);
  await cluster.until('the single node to be refused', async () => cluster.exitCode('server-1'));

  const health = await freePort();
  for (const role of ROLES) {
    const more = role === 'metadata' ? ['--health-listen', `127.0.0.1:${health}`] : [];
    cluster.start(`${role}-1`, '--data-dir', join(single, role), ...more);
  }
  await cluster.untilReady();
  expect((await fetch(`http://127.0.0.1:${health}/health/ready`)).status).toBe(200);
  const readMetrics = async () => (await fetch(`http://127.0.0.1:${health}/metrics`)).text();
  expect(await readMetrics()).toContain(`holdfast_shards{role="primary"} ${SHARDS}\n`);
  // Told when work and places have been looked at, all by the only metadata node.
  await cluster.until('gauges of disks and repair', async () => {
    const metrics = await readMetrics();
    const isTold = (series: RegExp) => series.test(metrics);
    const areTold = [
      /^holdfast_disk_state\{disk="\w{32}",node="\w{32}",state="serving",leave="staying"\} 1$/m,
      /^holdfast_disk_partitions\{disk="\w{32}",hold="owned"\} 4096$/m,
      /^holdfast_disk_partitions\{disk="\w{32}",hold="pending"\} 0$/m,
      /^holdfast_missed_disks 0$/m,
      /^holdfast_chunks_to_repair\{copies="unknown"\} \d+$/m,
      /^holdfast_repair_left_seconds \S+$/m,
      new RegExp(`^holdfast_cluster_shards ${SHARDS}$`, 'm'),
      /^holdfast_unsettled_shards\{why="few-voters"\} \d+$/m,
      /^holdfast_lacking_metadata_nodes 2$/m,
      /^holdfast_audits_awaited \d+$/m,
      /^holdfast_etcd_silent_seconds \S+$/m,
    ].every(isTold);
    return areTold || undefined;
  });
  await expectAll(written);
  await completeUpload(written);
  await put('new', LARGE);
  expect((await get('new')).equals(LARGE)).toBe(true);
  await ask('PUT', '/later');

  const startStorage = (name: string) =>
    cluster.start(name, '--node-listen', '127.0.0.1:0', '--node-zone', name);
  for (const name of ['metadata-2', 'metadata-3']) cluster.start(name);
  // Its share comes while the others take theirs.
  startStorage('storage-2');
  await cluster.until('three voters of each shard', async () => {
    const { shards } = await cluster.status();
    const isDone = ({ voters, prevVoters, isOpen }: (typeof shards)[number]) =>
      isOpen &&
      prevVoters.length === 0 &&
      voters.length === 3 &&
      voters.every(({ state }) => state === 'live');
    return (shards.length === SHARDS && shards.every(isDone)) || undefined;
  });
  await expectAll(written);
  // The others have all of the metadata.
  await cluster.end('metadata-1');
  await cluster.until('the others to lead', async () => {
    const { shards } = await cluster.status();
    return shards.every(({ isOpen }) => isOpen) || undefined;
  });
  await cluster.until('the objects to be read', async () =>
    (await send(cluster.access, { method: 'GET', path: '/kept/small' })).status === 200 ? true : undefined,
  );
  await expectAll(written);
  expect((await get('upload')).equals(Buffer.concat(PARTS))).toBe(true);
  cluster.start('metadata-1', '--data-dir', join(single, 'metadata'));

  await untilOnDisks(2);
  startStorage('storage-3');
  await untilOnDisks(3);
  // Each of the disks has everything.
  await cluster.end('storage-1');
  await expectAll(written);
  expect((await get('upload')).equals(Buffer.concat(PARTS))).toBe(true);
  expect((await get('new')).equals(LARGE)).toBe(true);
  cluster.start('storage-1', '--data-dir', join(single, 'storage'));
  await cluster.until('no alarm', async () =>
    (await cluster.status()).alarms.length === 0 ? true : undefined,
  );
  await expectSound(single);
});

/** The whole comparison, with all data read. */
async function expectSound(single: string): Promise<void> {
  const { context, taken } = createPrintedTool();
  const { endpoint } = cluster.access;
  const code = await runFsck(context, {
    endpoint,
    dataDir: join(single, 'keys'),
    readData: true,
    fullSpeed: true,
  });
  expect(code, taken()).toBe(0);
}

/** All partitions have so many owners, all shards have looked at where their chunks lie, and nothing is owed. */
async function untilOnDisks(count: number): Promise<void> {
  await cluster.until(`${count} copies of everything`, async () => {
    const { disks, placement, repair } = await cluster.status();
    if (placement === undefined || placement.audits.doneCount < SHARDS || placement.pendingCount > 0)
      return undefined;
    const owned = disks.filter(({ ownedCount }) => ownedCount === placement.partitionCount);
    const isEven = new Set(owned.map(({ usage }) => usage?.chunkCount)).size === 1;
    return (owned.length === count && isEven && repair.chunkCount === 0) || undefined;
  });
}

/** Cut short behind each of its steps, and repeated, until there is no step left. */
async function growCutShort(folder: string): Promise<void> {
  const seen = new Set<string>();
  for (;;) {
    const onStep = (step: string) => {
      if (seen.has(step)) return;
      seen.add(step);
      throw new Error(`cut short: ${step}`);
    };
    const tried = await growCluster(config(), { folder, replicaCount: 3, chunkCopies: 3, onStep }).catch(
      (error: Error) => error,
    );
    if (!(tried instanceof Error)) break;
    expect(tried.message).toContain('cut short');
  }
  expect(seen.size).toBeGreaterThan(10);
}

test('a folder that must not grow is refused, and stays unchanged', async () => {
  cluster = await openRoleProcesses({ keys: 'single/keys' });
  const single = await startSingle();
  await ask('PUT', '/kept');
  await put('small', SMALL);
  await cluster.end('server-1');
  const grow = (folder: string) => growCluster(config(), { folder, replicaCount: 3, chunkCopies: 3 });

  await expect(grow(cluster.folderOf('nowhere'))).rejects.toThrow('there is no folder');
  await expect(accessFile(cluster.folderOf('nowhere'))).rejects.toThrow('ENOENT');
  const chunks = join(single, 'chunks');
  await rename(chunks, `${chunks}.aside`);
  await expect(grow(single)).rejects.toThrow('is not whole: its database chunks is not there');
  await symlink(`${chunks}.aside`, chunks);
  await expect(grow(single)).rejects.toThrow('is a link or a file system of its own');
  await rm(chunks);
  await rename(`${chunks}.aside`, chunks);
  const keys = join(single, 'master-keys.json');
  await rename(keys, `${keys}.aside`);
  await expect(grow(single)).rejects.toThrow('master-keys.json is missing');
  await rename(`${keys}.aside`, keys);
  const format = join(single, 'format.json');
  const text = await readFile(format, 'utf8');
  await writeFile(format, text.replace(/"format": \d/, '"format": 9'));
  await expect(grow(single)).rejects.toThrow('is of format 9, newer than this program reads');
  await writeFile(format, text);

  const made = await cluster.run('cluster', 'init', '--out', cluster.folderOf('other-keys'));
  expect(made.code).toBe(0);
  await expect(grow(single)).rejects.toThrow('etcd has a cluster already');
  await cluster.etcd.process().stop();
  await expect(grow(single)).rejects.toThrow('etcd does not answer');
  await expect(accessFile(join(single, 'grow.json'))).rejects.toThrow('ENOENT');

  await startSingle();
  expect((await get('small')).equals(SMALL)).toBe(true);
});

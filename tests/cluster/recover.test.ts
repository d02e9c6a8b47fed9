// What an operator does when more is lost than the cluster bears by itself (docs/disasters.md), with real processes.
import { readdir, rm } from 'node:fs/promises';
import { afterEach, expect, test } from 'vitest';
import { openRoleProcesses, type RoleProcesses } from '../support/cluster/role-processes.ts';
import { sendAgain } from '../support/cluster/send-again.ts';
import { pathOf, send } from '../support/servers/raw-s3.ts';

const SHARDS = 4;
const ALL = `0-${SHARDS - 1}`;
/** Its bytes lie in chunks. */
const LARGE = Buffer.alloc(300_000, 'large');

let cluster: RoleProcesses;
afterEach(() => cluster.stop());

async function put(bucket: string, key: string, body: Buffer = Buffer.from(key)): Promise<void> {
  await cluster.until(`${bucket}/${key} to be written`, async () => {
    const answer = await send(cluster.access, { method: 'PUT', path: pathOf(bucket, key), body });
    return answer.status === 200 ? true : undefined;
  });
}

async function get(bucket: string, key: string): Promise<Buffer> {
  const answer = await sendAgain(() => cluster.access, { method: 'GET', path: pathOf(bucket, key) });
  expect(answer.status, `GET ${bucket}/${key}`).toBe(200);
  return answer.body;
}

/** Buckets have their homes in several shards. */
const BUCKETS = ['one', 'two', 'three', 'four'];

async function createBuckets(): Promise<void> {
  for (const bucket of BUCKETS)
    await cluster.until(`${bucket} to be made`, async () => {
      const answer = await send(cluster.access, { method: 'PUT', path: `/${bucket}` });
      return answer.status === 200 || answer.status === 409 ? true : undefined;
    });
}

async function putEverywhere(key: string): Promise<void> {
  for (const bucket of BUCKETS) await put(bucket, key);
}

async function expectEverywhere(...keys: string[]): Promise<void> {
  for (const bucket of BUCKETS) for (const key of keys) expect((await get(bucket, key)).toString()).toBe(key);
}

/** Ends the primary of a shard, and waits for the next one: of its epoch a backup of before knows nothing. */
async function endPrimary(): Promise<void> {
  const led = await cluster.until('a shard that is led', async () =>
    (await cluster.status()).shards.find(({ isOpen }) => isOpen),
  );
  const names = ['metadata-1', 'metadata-2', 'metadata-3'];
  const ids = await Promise.all(names.map((name) => cluster.nodeIdOf(name)));
  await cluster.end(...names.filter((_, index) => ids[index] === led.primary));
  await cluster.until('the next primary', async () => {
    const shard = (await cluster.status()).shards.find(({ shard }) => shard === led.shard);
    return (shard?.isOpen && shard.epoch > led.epoch) || undefined;
  });
}

test('etcd restored from an old backup is refused until its records are rebuilt, and then all data is there', async () => {
  cluster = await openRoleProcesses({ shards: SHARDS });
  await cluster.startAll();
  await createBuckets();
  await putEverywhere('before');
  await put('one', 'large', LARGE);
  await cluster.etcd.process().stop();
  await cluster.etcd.copyData();
  await cluster.etcd.restart();
  await endPrimary();
  await putEverywhere('after');
  await cluster.endAll();
  await cluster.etcd.process().stop();
  await cluster.etcd.restoreData();
  await cluster.etcd.restart();

  const nodes = ['metadata-1', 'metadata-2', 'metadata-3'];
  for (const name of nodes) cluster.start(name);
  const refused = await cluster.until('an alarm', async () => {
    const { alarms, shards } = await cluster.status();
    return alarms.some((alarm) => alarm.startsWith('etcd is behind')) && shards.some(({ isOpen }) => !isOpen)
      ? alarms
      : undefined;
  });
  expect(refused.join('\n')).toContain('rebuild-coordination');
  const whileRunning = await cluster.run('cluster', 'rebuild-coordination', '--yes');
  expect(whileRunning).toMatchObject({ code: 1, output: expect.stringContaining('runs: stop it') });
  await cluster.end(...nodes);

  for (const name of ['metadata-2', 'metadata-3']) cluster.start(name, '--maintenance');
  const rebuild = ['cluster', 'rebuild-coordination', '--from', cluster.folderOf('metadata-1')];
  const shown = await cluster.until('the nodes at rest', async () => {
    const ran = await cluster.run(...rebuild);
    return ran.output.match(/^Node /gm)?.length === 3 ? ran : undefined;
  });
  expect(shown).toMatchObject({ code: 2, output: expect.stringContaining('Nothing was changed') });
  expect(await cluster.run(...rebuild, '--yes')).toMatchObject({ code: 0 });
  await cluster.end('metadata-2', 'metadata-3');

  await cluster.startAll();
  await expectEverywhere('before', 'after');
  expect(await get('one', 'large')).toEqual(LARGE);
  await putEverywhere('later');
  await expectEverywhere('later');
});

test('two of three metadata nodes are lost for good: the data of the third is served, and the shards grow again', async () => {
  cluster = await openRoleProcesses({ shards: SHARDS });
  await cluster.startAll();
  await createBuckets();
  await putEverywhere('before');
  await put('one', 'large', LARGE);
  const lost = ['metadata-2', 'metadata-3'];
  await cluster.end(...lost);
  for (const name of lost) await rm(cluster.folderOf(name), { recursive: true });
  for (const name of lost) cluster.start(name);
  const survivor = await cluster.nodeIdOf('metadata-1');

  const recover = ['shard', 'recover', ALL, '--from', survivor];
  const shown = await cluster.until('the nodes to be gone from the list', async () => {
    const ran = await cluster.run(...recover);
    return ran.output.includes('CANNOT BE RECOVERED') ? undefined : ran;
  });
  expect(shown).toMatchObject({ code: 2, output: expect.stringContaining('--accept-loss') });
  const recovered = await cluster.run(...recover, '--accept-loss');
  expect(recovered.code, recovered.output).toBe(0);
  await cluster.until('open shards', async () => {
    const { shards } = await cluster.status();
    return shards.length === SHARDS && shards.every(({ isOpen }) => isOpen) ? true : undefined;
  });
  await cluster.untilReady();
  await putEverywhere('after');
  await expectEverywhere('before', 'after');
  expect(await get('one', 'large')).toEqual(LARGE);

  await cluster.until('the operator’s word', async () => {
    const { code } = await cluster.run('shard', 'confirm', ALL);
    return code === 0 ? true : undefined;
  });
  await cluster.until('three whole replicas of each, and no alarm', async () => {
    const { shards, alarms } = await cluster.status();
    const isWhole = shards.every(({ voters, incarnation }) => voters.length === 3 && incarnation === 2);
    return isWhole && alarms.length === 0 ? true : undefined;
  });
  const told = await cluster.run('cluster', 'status', '--json');
  expect([told.code, JSON.parse(told.output).alarms]).toEqual([0, []]);
  expect(await readdir(cluster.folderOf('metadata-1'))).toContain('placement.json');
});

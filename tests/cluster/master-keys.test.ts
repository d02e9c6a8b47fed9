// Master keys of a cluster: a new one comes to all gateways in copies of the file, wraps from then on, and the old one goes when
// nothing needs it any more (docs/security.md, "Master keys of a cluster").
import { type ChildProcess, spawn } from 'node:child_process';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import type { CliContext } from '../../src/cli/connect.ts';
import { type Keys, removeKey, rotateKeys, showKeys } from '../../src/cli/keys-commands.ts';
import { freePort } from '../support/cluster/free-ports.ts';
import { startCluster, type TestCluster } from '../support/cluster/start-cluster.ts';
import { ROOT } from '../support/run/root.ts';
import { endGracefully, ranToEnd } from '../support/servers/process-ends.ts';
import { type Access, send } from '../support/servers/raw-s3.ts';

const MAIN = join(ROOT, 'cmd', 'main.ts');
const BODY = Buffer.alloc(300_000, 'body');

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await startCluster({ metadata: 1, storage: 1, gateways: 2, shards: 2 });
});
/** Started beside those of the cluster. */
const children: ChildProcess[] = [];
afterAll(async () => {
  await Promise.all(children.map(endGracefully));
  await cluster.stop();
});

const keysFolder = () => join(cluster.folder, 'keys');
const fileOf = (folder: string) => join(folder, 'master-keys.json');
const keyIdsOf = async (folder: string): Promise<string[]> =>
  JSON.parse(await readFile(fileOf(folder), 'utf8')).keys.map(({ id }: { id: string }) => id);

async function run(
  command: (context: CliContext, options: { dataDir: string; json: true }) => Promise<void>,
): Promise<Keys> {
  const lines: string[] = [];
  const context = { env: {}, print: (line: string) => lines.push(line), nowMs: Date.now, sleep };
  await command(context, { dataDir: keysFolder(), json: true });
  return JSON.parse(lines.join('\n'));
}

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  for (let left = 600; left > 0; left--) {
    const found = await look().catch(() => undefined);
    if (found !== undefined) return found;
    await sleep(100);
  }
  throw new Error(`in a minute: ${what}`);
}

test('a new master key waits for all gateways, wraps everything, and the old one leaves their files', async () => {
  const [first, second] = cluster.gateways as [Access, Access];
  expect((await send(first, { method: 'PUT', path: '/keys' })).status).toBe(200);
  expect((await send(first, { method: 'PUT', path: '/keys/before', body: BODY })).status).toBe(200);
  const { activeKeyId: oldKeyId } = await run(showKeys);
  await expect(run(rotateKeys)).rejects.toThrow('There is no new master key');

  // A third gateway, of another machine: it has a copy of the folder, which is not brought up to date at once.
  const otherFolder = join(cluster.folder, 'other-keys');
  await cp(keysFolder(), otherFolder, { recursive: true });
  const startThird = async () => {
    const address = `127.0.0.1:${await freePort()}`;
    const flags = ['--cluster-keys', otherFolder, '--listen', address, '--gateway-threads', '1'];
    const child = cluster.spawn('gateway', '--data-dir', join(cluster.folder, 'third'), ...flags);
    children.push(child);
    return { address, child };
  };
  let third = await startThird();
  const isReady = async (address: string) =>
    (await fetch(`http://${address}/health/ready`)).ok ? true : undefined;
  await until('the third gateway is ready', () => isReady(third.address));
  await until('all know it', async () => ((await cluster.status()).members.length === 5 ? true : undefined));

  const added = await ranToEnd(
    spawn(process.execPath, [MAIN, 'cluster', 'add-key', keysFolder()]),
    'cluster add-key',
  );
  expect(added.output).toContain('has the new master key');
  const newKeyId = must((await keyIdsOf(keysFolder())).at(-1), 'the new key');
  const lacking = await until('the gateway that lacks it is known', async () => {
    const { newKeyIds, lacking = [] } = await run(showKeys);
    return newKeyIds?.includes(newKeyId) && lacking.length === 1 ? lacking : undefined;
  });
  expect(lacking).toEqual([{ gateway: third.address, keyIds: [newKeyId] }]);
  await expect(run(rotateKeys)).rejects.toThrow(
    `These gateways lack the new master key ${newKeyId}: ${third.address}.`,
  );

  await cp(fileOf(keysFolder()), fileOf(otherFolder));
  await until('all have it', async () => ((await run(showKeys)).lacking?.length === 0 ? true : undefined));
  const rotated = await run((context, options) => rotateKeys(context, { ...options, wait: true }));
  expect(rotated).toMatchObject({
    activeKeyId: newKeyId,
    olderKeyIds: [oldKeyId],
    isUnused: true,
    lacking: [],
  });
  expect(rotated.rewrappedCount).toBeGreaterThanOrEqual(2);
  await expect(run((context, options) => removeKey(context, newKeyId, options))).rejects.toThrow(
    'is not one of the older master keys',
  );

  // The last copy of a key that is needed is not taken out.
  const takeOut = (keyId: string) =>
    ranToEnd(
      spawn(process.execPath, [
        ...[MAIN, 'cluster', 'remove-key', otherFolder, keyId],
        ...['--endpoint', first.endpoint],
      ]),
      'cluster remove-key',
    );
  expect(await takeOut(oldKeyId)).toMatchObject({
    code: 1,
    output: expect.stringContaining('holdfast keys remove'),
  });
  expect(await takeOut(newKeyId)).toMatchObject({ code: 1, output: expect.stringContaining('wraps by') });

  const oldFile = await readFile(fileOf(otherFolder), 'utf8');
  const removed = await run((context, options) => removeKey(context, oldKeyId, options));
  expect(removed).toMatchObject({ activeKeyId: newKeyId, olderKeyIds: [] });
  for (const folder of [keysFolder(), otherFolder])
    await until('the old key is out of the file', async () =>
      (await keyIdsOf(folder)).join() === newKeyId ? true : undefined,
    );
  const thirdAccess = { ...first, endpoint: `http://${third.address}` };
  expect((await send(thirdAccess, { method: 'PUT', path: '/keys/after', body: BODY })).status).toBe(200);
  for (const access of [first, second, thirdAccess])
    for (const key of ['before', 'after'])
      expect((await send(access, { method: 'GET', path: `/keys/${key}` })).body.equals(BODY)).toBe(true);

  // A copy from before does not start; one from within the rotation does, and is brought up to date.
  await endGracefully(third.child);
  const stale = JSON.parse(oldFile);
  const onlyOld = {
    ...stale,
    activeKeyId: oldKeyId,
    keys: stale.keys.filter(({ id }: { id: string }) => id === oldKeyId),
  };
  await writeFile(fileOf(otherFolder), JSON.stringify(onlyOld), { mode: 0o600 });
  third = await startThird();
  const said: string[] = [];
  for (const stream of [third.child.stdout, third.child.stderr])
    stream.on('data', (text) => said.push(String(text)));
  const code = await new Promise((resolve) => third.child.once('close', resolve));
  expect(code).not.toBe(0);
  expect(said.join('')).toContain(`lacks the master key ${newKeyId}, which the cluster uses`);
  await writeFile(fileOf(otherFolder), oldFile, { mode: 0o600 });
  third = await startThird();
  await until('the third gateway is ready', () => isReady(third.address));
  await until('the old key is out of the file again', async () =>
    (await keyIdsOf(otherFolder)).join() === newKeyId ? true : undefined,
  );
  await endGracefully(third.child);
}, 240_000);

// Keys that `holdfast user create` makes for backup programs: the programs work by them as the command says, and what a template
// forbids is refused. In a cluster: tests/cluster/restic.test.ts.
import { mkdirSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { deleteUser } from '../../src/cli/access/user-commands.ts';
import {
  backUpTwice,
  expectForbidden,
  makeBackupBucket,
  makeBackupUser,
  programsOf,
  toolOf,
  versionOf,
  writeSmallTree,
} from '../support/clients/backup-keys.ts';
import { type ClientWorld, openWorld } from '../support/clients/clients.ts';
import { compareTrees } from '../support/clients/tree.ts';
import { send } from '../support/servers/raw-s3.ts';

let world: ClientWorld;
const tree = () => world.path('tree');
beforeAll(async () => {
  world = await openWorld({ transport: 'http' });
  writeSmallTree(tree());
});
afterAll(() => world.close());

async function makeUser(policy: string, { isVersioned = true } = {}) {
  const bucket = `for-${policy}${isVersioned ? '' : '-unversioned'}`;
  await makeBackupBucket(world.server, bucket, { isVersioned });
  const user = await makeBackupUser(world.server, { name: `of-${bucket}`, policy, bucket });
  const home = world.path(`home-${bucket}`);
  mkdirSync(home, { recursive: true });
  const status = async (method: string, path: string) => (await send(user.access, { method, path })).status;
  const programs = programsOf(world.run, user, home);
  const restored = world.path(`restored-${bucket}`);
  return { bucket, user, programs, status, restored, remote: `${user.name}:${bucket}` };
}

test('append-only: restic, rclone and the AWS CLI back up by the printed lines, and take nothing away', async () => {
  const { bucket, user, programs, remote, restored } = await makeUser('append-only');
  expect(user.warnings).toEqual([]);
  await backUpTwice(programs, { tree: tree(), restored, remote, keepsLocks: true });
  const profile = user.name;
  const back = world.path('back');
  await programs.aws('--profile', profile, 's3', 'cp', `s3://${bucket}/tree`, back, '--recursive');
  await programs.aws('--profile', profile, 's3', 'cp', tree(), `s3://${bucket}/again`, '--recursive');
  expect(compareTrees({ expected: tree(), actual: back })).toEqual([]);
  await expectForbidden({ owner: world.server, user: user.access }, bucket);
  await expect(programs.rclone('delete', `${remote}/tree`)).rejects.toThrow('not authorized');
  await expect(programs.aws('--profile', profile, 's3', 'ls')).rejects.toThrow('AccessDenied');
  await programs.rclone('check', tree(), `${remote}/tree`);
});

test('restic: its locks go, and nothing else', async () => {
  const { bucket, user, programs, remote, restored, status } = await makeUser('restic');
  await backUpTwice(programs, { tree: tree(), restored, remote, keepsLocks: false });
  expect((await programs.restic('list', 'locks', '--no-lock')).stdout).toBe('');
  await expectForbidden({ owner: world.server, user: user.access }, bucket);
  expect(await status('PUT', `/${bucket}/locks/one`)).toBe(200);
  const versionId = await versionOf(world.server, { bucket, key: 'locks/one' });
  expect(await status('DELETE', `/${bucket}/locks/one?versionId=${versionId}`)).toBe(403);
  expect(await status('DELETE', `/${bucket}/locks/one`)).toBe(204);
});

test('read-only: what others have backed up is read, and nothing is written', async () => {
  const { bucket, programs, remote, status } = await makeUser('read-only');
  const path = `/${bucket}/there`;
  expect((await send(world.server, { method: 'PUT', path, body: Buffer.from('x') })).status).toBe(200);
  expect((await programs.rclone('cat', `${remote}/there`)).stdout).toBe('x');
  expect(await status('PUT', path)).toBe(403);
  expect(await status('DELETE', path)).toBe(403);
});

test('a bucket without versions is warned of, and overwriting there is what the warning says', async () => {
  const { bucket, user, status } = await makeUser('append-only', { isVersioned: false });
  expect(user.warnings).toEqual([expect.stringContaining(`${bucket} keeps no versions`)]);
  const path = `/${bucket}/key`;
  for (const text of ['first', 'second']) {
    const body = Buffer.from(text);
    expect((await send(user.access, { method: 'PUT', path, body })).status).toBe(200);
  }
  expect((await send(user.access, { method: 'GET', path })).body.toString()).toBe('second');
  expect([await status('DELETE', path), await status('PUT', `${path}?append`)]).toEqual([403, 403]);
});

test('a user that is deleted with all it has is refused at once', async () => {
  const { bucket, user, status } = await makeUser('bucket-admin');
  expect([await status('PUT', `/${bucket}/x`), await status('DELETE', `/${bucket}/x`)]).toEqual([200, 204]);
  const { context, options } = toolOf(world.server);
  await deleteUser(context, user.name, { ...options, force: true });
  expect(await status('GET', `/${bucket}`)).toBe(403);
});

// A user that `holdfast user create` makes for a backup program, put to use by the very lines that the command prints.
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { must } from '../../../src/base/assert.ts';
import type { ClientLines } from '../../../src/cli/access/client-lines.ts';
import { createUser } from '../../../src/cli/access/user-commands.ts';
import { createPrintedTool } from '../run/printed-tool.ts';
import { type Access, type RawRequest, send } from '../servers/raw-s3.ts';
import { PROGRAMS, type Ran, type RunOptions } from './clients.ts';
import { compareTrees } from './tree.ts';

export interface BackupUser {
  readonly name: string;
  readonly access: Access;
  readonly warnings: readonly string[];
  readonly lines: ClientLines;
}

/** A bucket that keeps versions, unless told otherwise. */
export async function makeBackupBucket(
  owner: Access,
  bucket: string,
  { isVersioned = true } = {},
): Promise<void> {
  expect((await send(owner, { method: 'PUT', path: `/${bucket}` })).status).toBe(200);
  if (!isVersioned) return;
  const body = Buffer.from('<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>');
  expect((await send(owner, { method: 'PUT', path: `/${bucket}?versioning`, body })).status).toBe(200);
}

export function toolOf(owner: Access) {
  const tool = createPrintedTool();
  const env = { AWS_ACCESS_KEY_ID: owner.accessKey, AWS_SECRET_ACCESS_KEY: owner.secretKey };
  return { context: { ...tool.context, env }, taken: tool.taken, options: { endpoint: owner.endpoint } };
}

/** By the command, with the keys of `owner`. */
export async function makeBackupUser(
  owner: Access,
  { name, policy, bucket }: { name: string; policy: string; bucket: string },
): Promise<BackupUser> {
  const { context, taken, options } = toolOf(owner);
  await createUser(context, name, { ...options, policy, bucket, json: true });
  const { AccessKey, ClientLines: lines, Warnings: warnings } = JSON.parse(taken());
  const access = {
    endpoint: owner.endpoint,
    accessKey: must(AccessKey.AccessKeyId, 'an access key'),
    secretKey: must(AccessKey.SecretAccessKey, 'a secret key'),
  };
  return { name, access, warnings, lines };
}

/** Enough for parts of restic's packs and for an upload in parts by the AWS CLI. */
export function writeSmallTree(folder: string): void {
  mkdirSync(join(folder, 'in', 'side'), { recursive: true });
  for (const [index, sizeBytes] of [0, 1, 1000, 200_000, 12 << 20].entries())
    writeFileSync(join(folder, 'in', 'side', `file ${index}`), randomBytes(sizeBytes));
  writeFileSync(join(folder, 'ä+&'), 'odd');
}

type Run = (program: string, args: readonly string[], options?: RunOptions) => Promise<Ran>;

export interface BackupPrograms {
  /** `restic backup`, until the snapshot is saved: where the lock may not be deleted, it would go on trying for 15 minutes. */
  backUpWithLock(folder: string): Promise<Ran>;
  restic(...args: string[]): Promise<Ran>;
  rclone(...args: string[]): Promise<Ran>;
  aws(...args: string[]): Promise<Ran>;
}

const UNTIL_SAVED = `
: > "$HOME/restic.out"
"$1" backup "$2" > "$HOME/restic.out" 2>&1 &
while ! grep -q '^snapshot .* saved' "$HOME/restic.out"; do
  kill -0 $! || { cat "$HOME/restic.out" >&2; exit 1; }
  sleep 0.1
done
while ! grep -q 'Remove(<lock/.*not authorized to perform: s3:DeleteObject' "$HOME/restic.out"; do
  kill -0 $! || { echo 'it ended without its lock' >&2; exit 1; }
  sleep 0.1
done
kill -KILL $!`;

/** The programs as somebody has them who pasted the lines. `home`: a folder of this user alone. */
export function programsOf(run: Run, { lines }: BackupUser, home: string): BackupPrograms {
  const inShell = (script: string, args: readonly string[]) =>
    run('/bin/bash', ['-ec', script, 'bash', ...args], {
      env: { HOME: home, RESTIC_PASSWORD: 'a password of the repository', AWS_EC2_METADATA_DISABLED: 'true' },
    });
  const config = join(home, 'rclone.conf');
  let isAwsConfigured = false;
  return {
    backUpWithLock: (folder) => inShell(`${lines.restic}\n${UNTIL_SAVED}`, [PROGRAMS.restic, folder]),
    restic: (...args) => inShell(`${lines.restic}\nexec ${PROGRAMS.restic} "$@"`, args),
    async rclone(...args) {
      await writeFile(config, lines.rclone);
      return inShell(
        `exec ${PROGRAMS.rclone} --config ${config} --retries 1 --low-level-retries 1 "$@"`,
        args,
      );
    },
    async aws(...args) {
      const tool = `aws() { ${PROGRAMS.pypiAws} "$@"; }\n`;
      if (!isAwsConfigured) await inShell(tool + lines.aws, []);
      isAwsConfigured = true;
      return inShell(`${tool}aws "$@"`, args);
    },
  };
}

/** Backs up a tree by restic, twice, restores it whole, and does the same by rclone. */
export async function backUpTwice(
  programs: BackupPrograms,
  places: { tree: string; restored: string; remote: string; keepsLocks: boolean },
): Promise<void> {
  const { tree, restored, remote, keepsLocks } = places;
  await programs.restic('init');
  for (let round = 0; round < 2; round++)
    await (keepsLocks ? programs.backUpWithLock(tree) : programs.restic('backup', tree));
  const { stdout } = await programs.restic('snapshots', '--json', '--no-lock');
  expect(JSON.parse(stdout)).toHaveLength(2);
  await programs.restic('restore', 'latest', '--target', restored, '--no-lock');
  expect(compareTrees({ expected: tree, actual: join(restored, tree) })).toEqual([]);
  await programs.rclone('copy', tree, `${remote}/tree`);
  await programs.rclone('check', '--download', tree, `${remote}/tree`);
}

const POLICY = JSON.stringify({
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: '*', Action: 's3:*', Resource: 'arn:aws:s3:::B/*' }],
});

/** What an append-only key must not do with a bucket that has the object `key`. */
export function forbidden(bucket: string, { key, versionId }: { key: string; versionId: string }) {
  const path = `/${bucket}/${key}`;
  const xml = (text: string) => Buffer.from(text);
  const requests: Record<string, RawRequest> = {
    'delete an object': { method: 'DELETE', path },
    'delete a version': { method: 'DELETE', path: `${path}?versionId=${versionId}` },
    'rename an object': { method: 'MOVE', path, headers: { destination: `${key}-renamed` } },
    'rename over an object': {
      method: 'MOVE',
      path: `/${bucket}/added`,
      headers: { destination: key, overwrite: 'true' },
    },
    'rename a prefix': {
      method: 'MOVE',
      path: `/${bucket}/${key.slice(0, 2)}`,
      headers: { destination: 'gone-', 'x-svc-prefix': 'true' },
    },
    'rename the bucket': {
      method: 'MOVE',
      path: `/${bucket}`,
      headers: { destination: `${bucket}-renamed` },
    },
    'delete the bucket with all in it': { method: 'DELETE', path: `/${bucket}?force_delete=true` },
    'delete the bucket': { method: 'DELETE', path: `/${bucket}` },
    'set its policy': { method: 'PUT', path: `/${bucket}?policy`, body: xml(POLICY.replace('B', bucket)) },
    'delete its policy': { method: 'DELETE', path: `/${bucket}?policy` },
    'set its ACL': { method: 'PUT', path: `/${bucket}?acl`, headers: { 'x-amz-acl': 'private' } },
    'set the ACL of an object': { method: 'PUT', path: `${path}?acl`, headers: { 'x-amz-acl': 'private' } },
    'stop its versions': {
      method: 'PUT',
      path: `/${bucket}?versioning`,
      body: xml('<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>'),
    },
  };
  return requests;
}

/** The newest version of a key. */
export async function versionOf(
  owner: Access,
  { bucket, key }: { bucket: string; key: string },
): Promise<string> {
  const { headers } = await send(owner, { method: 'HEAD', path: `/${bucket}/${key}` });
  return String(headers['x-amz-version-id']);
}

/** Each is refused with 403, and nothing is lost. */
export async function expectForbidden(
  { owner, user }: { owner: Access; user: Access },
  bucket: string,
): Promise<void> {
  const key = 'kept/object';
  const list = async () =>
    (await send(owner, { method: 'GET', path: `/${bucket}?versions` })).body
      .toString()
      .match(/<(Version|DeleteMarker)>.*?<\/\1>/gs);
  for (const path of [`/${bucket}/${key}`, `/${bucket}/added`])
    expect((await send(user, { method: 'PUT', path, body: Buffer.from('kept') })).status).toBe(200);
  const versionId = await versionOf(owner, { bucket, key });
  const before = await list();
  const answers: Record<string, number> = {};
  const requests = forbidden(bucket, { key, versionId });
  for (const [what, request] of Object.entries(requests)) answers[what] = (await send(user, request)).status;
  expect(answers).toEqual(Object.fromEntries(Object.keys(requests).map((what) => [what, 403])));
  expect(await list()).toEqual(before);
  const document = `<Delete><Object><Key>${key}</Key></Object><Object><Key>${key}</Key><VersionId>${versionId}</VersionId></Object></Delete>`;
  const body = Buffer.from(document);
  const headers = { 'content-md5': createHash('md5').update(body).digest('base64') };
  const deleted = await send(user, { method: 'POST', path: `/${bucket}?delete`, headers, body });
  expect(deleted.body.toString()).toContain('<Code>AccessDenied</Code>');
  expect(deleted.body.toString()).not.toContain('<Deleted>');
  expect(await list()).toEqual(before);
}

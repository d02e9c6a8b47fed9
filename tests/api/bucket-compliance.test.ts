// Compliance as the operator sees it: `holdfast bucket` over HTTP. The lock of settings ends by that command alone, which is
// recorded with them and in the log.
import { Command } from 'commander';
import { beforeEach, expect } from 'vitest';
import { showCompliance, unlockCompliance } from '../../src/cli/bucket-command.ts';
import { addClientCommands } from '../../src/cli/commands.ts';
import { createOperatorClient } from '../../src/cli/operator-client.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { complianceOfBucket, enableCompliance, sendBucketCompliance } from '../support/servers/compliance.ts';
import { ownServerTest as test } from '../support/servers/own-server-test.ts';
import type { Access } from '../support/servers/raw-s3.ts';
import { expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
const { context, taken } = createPrintedTool();
let bucket: string;
beforeEach(async () => {
  bucket = await api.makeBucket();
});

const connection = () => ({ dataDir: api.server.dataDir });
const clientOf = (access: Access) =>
  createOperatorClient({ endpoint: access.endpoint, credentials: access, nowMs: Date.now });

async function show(): Promise<string> {
  await showCompliance(context, bucket, connection());
  return taken();
}

async function read(): Promise<Record<string, unknown>> {
  await showCompliance(context, bucket, { ...connection(), json: true });
  return JSON.parse(taken());
}

async function unlock(reason: string): Promise<string> {
  await unlockCompliance(context, bucket, { ...connection(), reason });
  return taken();
}

test('the settings are shown, for people and for programs', async () => {
  expect(await show()).toMatch(/^bucket +b-\w+\ncompliance +disabled$/);
  await enableCompliance(api, bucket, {
    RetentionDays: 30,
    ConditionalHold: true,
    LockTime: '2099-01-02T03:04:05Z',
  });
  const shown = await show();
  for (const part of [
    'enabled',
    'from 2099-01-02T03:04:05.000Z on',
    '30 days',
    'on hold until',
    'kept until',
  ])
    expect(shown).toContain(part);
  expect(await read()).toEqual({
    bucket,
    isEnabled: true,
    lockTime: '2099-01-02T03:04:05.000Z',
    isLocked: false,
    retentionDays: 30,
    conditionalHold: true,
    deleteAfterRetention: false,
    unlocks: [],
  });
  await enableCompliance(api, bucket, { DeleteAfterRetention: true });
  expect(await show()).toContain('off: settings can be changed');
  expect(await read()).not.toHaveProperty('lockTime');
});

test('the operator ends a lock, which is recorded; then settings can be reduced again', async () => {
  await enableCompliance(api, bucket, { RetentionDays: 5, LockTime: 'now' });
  expect(await show()).toContain('locked since');
  const beganMs = Date.now();
  expect(await unlock('a test in the wrong bucket')).toContain(`settings of ${bucket} are no longer locked`);
  expect(await complianceOfBucket(api, bucket)).toMatchObject({
    Status: 'enabled',
    LockTime: 'off',
    IsLocked: 'false',
    RetentionDays: '5',
  });
  const { unlocks, isLocked } = (await read()) as {
    isLocked: boolean;
    unlocks: { at: string; by: string; reason: string }[];
  };
  const record = {
    by: expect.stringMatching(/^arn:aws:iam::\d{12}:root$/),
    reason: 'a test in the wrong bucket',
  };
  expect([isLocked, unlocks]).toEqual([false, [{ at: expect.any(String), ...record }]]);
  expect(Math.abs(Date.parse(unlocks[0]?.at ?? '') - beganMs)).toBeLessThan(60_000);
  expect(await show()).toContain('a test in the wrong bucket');
  const logged = () =>
    api.server.logs().filter(({ event, bucket: of }) => event === 'compliance-unlocked' && of === bucket);
  await expect.poll(logged).toMatchObject([{ level: 'warn', ...record }]);
  await enableCompliance(api, bucket, { RetentionDays: 1 });
  expectStatus(await sendBucketCompliance(api, bucket, { Status: 'disabled' }), 200);
  // The record stays.
  expect(await show()).toContain('a test in the wrong bucket');
});

test('what is not locked, or not there, is not unlocked', async () => {
  await expect(unlock('none')).rejects.toThrow('are not locked');
  await enableCompliance(api, bucket, { LockTime: '2099-01-02T03:04:05Z' });
  await expect(unlock('not yet')).rejects.toThrow('InvalidBucketState');
  await enableCompliance(api, bucket, { LockTime: 'now' });
  await unlock('once');
  await expect(unlock('twice')).rejects.toThrow('are not locked');
  bucket = 'no-such-bucket-here';
  await expect(unlock('none')).rejects.toThrow('NoSuchEntity');
  await expect(show()).rejects.toThrow('There is no bucket of that name.');
});

test('a reason is needed, and short', async () => {
  await enableCompliance(api, bucket, { LockTime: 'now' });
  for (const reason of ['', '  ', 'r'.repeat(501)])
    await expect(unlock(reason)).rejects.toThrow('ValidationError');
  const path = `/buckets/${bucket}/compliance/unlock`;
  await expect(clientOf(api.server).call('POST', path, {})).rejects.toThrow('ValidationError');
  expect((await complianceOfBucket(api, bucket)).IsLocked).toBe('true');
});

test('nobody but the operator unlocks, not even the owner', async () => {
  const owner = await api.makeAccount();
  const own = await api.makeBucket(owner);
  const body = Buffer.from(
    '<BucketComplianceConfiguration><Status>enabled</Status><RetentionDays>1</RetentionDays><LockTime>now</LockTime></BucketComplianceConfiguration>',
  );
  expectStatus(await api.send({ method: 'PUT', path: `/${own}?compliance`, body }, owner), 200);
  const client = clientOf(owner);
  const path = `/buckets/${own}/compliance`;
  await expect(client.call('GET', path)).rejects.toThrow('AccessDenied');
  await expect(client.call('POST', `${path}/unlock`, { reason: 'mine' })).rejects.toThrow('AccessDenied');
  expect(await clientOf(api.server).call('GET', path)).toMatchObject({ isLocked: true, unlocks: [] });
});

test('the command line has both commands, and wants a reason', async () => {
  const program = new Command().exitOverride().configureOutput({ writeErr: () => {} });
  addClientCommands(program, { ...context, readFile: async () => Buffer.from('') } as never);
  const run = (...words: string[]) =>
    program.parseAsync(['bucket', ...words, '--data-dir', api.server.dataDir], { from: 'user' });
  for (const command of program.commands.flatMap(({ commands }) => commands))
    command.exitOverride().configureOutput({ writeErr: () => {} });
  await enableCompliance(api, bucket, { LockTime: 'now' });
  await run('compliance', bucket);
  expect(taken()).toContain('locked since');
  await expect(run('unlock-compliance', bucket)).rejects.toThrow('--reason');
  await run('unlock-compliance', bucket, '--reason', 'by hand');
  expect(taken()).toContain('no longer locked');
});

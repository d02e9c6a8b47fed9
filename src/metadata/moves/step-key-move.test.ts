// A key that is renamed in several entries: what clients may do meanwhile, and what becomes of it behind a crash.
import { beforeEach, expect, test } from 'vitest';
import { beginMove, DRIVER, moveCalls } from '../../../tests/support/metadata/drive-job.ts';
import {
  BUCKET,
  BUCKET_NAME,
  type MetadataShards,
  OWNER,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { runUntilIdle } from '../../../tests/support/metadata/run-worker.ts';
import type { CommandName, CommandOf } from '../../ports/metadata/port.ts';
import { LIMITS } from '../../types/limits.ts';
import type { ObjectKey } from '../../types/names.ts';
import type { MovePrefixJob } from '../../types/records/job-record.ts';
import { createJobDriver } from '../jobs/drive-jobs.ts';
import { driveMove } from './drive-move.ts';

const OLDER = 5;
const from = 'from' as ObjectKey;
const to = 'to' as ObjectKey;
let world: MetadataShards;
beforeEach(async () => {
  world = await openMetadata();
  await world.createBucket('enabled');
  for (let at = 0; at <= OLDER; at++) await world.put(from);
});

async function begin(options: Partial<CommandOf<'begin-key-move'>> = {}) {
  const command = { bucketId: BUCKET, move: { from, to }, overwrites: false, driver: DRIVER, ...options };
  return world.execute('begin-key-move', command);
}

async function begun(): Promise<MovePrefixJob> {
  const outcome = await begin();
  if (outcome.kind !== 'begun') throw new Error(outcome.kind);
  return outcome.job;
}

async function step(job: MovePrefixJob, versionsMax = 2): Promise<void> {
  const { bucketId, jobId } = job;
  const { stepCount = 0 } = (await moveCalls(world, job).findJob())?.job ?? {};
  const place = { bucketId, jobId, driver: DRIVER, stepCount, begin: { leg: 0 }, key: from, to };
  const outcome = await world.execute('step-key-move', { ...place, phase: 'move', versionsMax });
  expect(outcome).toMatchObject({ kind: 'stepped', result: { length: versionsMax }, hasMore: true });
}

/** As a gateway asks, which the shard may refuse. */
async function ask<N extends CommandName>(name: N, command: CommandOf<N>): Promise<string> {
  const { bucket } = await world.query('get-bucket', { bucketId: BUCKET });
  const claim = { bucketId: BUCKET, name: BUCKET_NAME, cfgVersion: bucket?.cfgVersion ?? 0 };
  const reply = await world.shards.execute({ shard: 0, bucket: claim }, name, command);
  return reply.kind;
}

test('each version is under one of the two keys at each moment, and so is the current object', async () => {
  const job = await begun();
  const objects = async () => {
    const page = await world.query('list-objects', { bucketId: BUCKET, prefix: '', max: 10 });
    return page.objects.map(({ key }) => key as string);
  };
  expect(await objects()).toEqual(['to']);
  expect(await world.versions()).toEqual(['from v5', 'from v4', 'from v3', 'from v2', 'from v1', 'to v6*']);
  await step(job);
  expect(await objects()).toEqual(['to']);
  expect(await world.versions()).toEqual(['from v3', 'from v2', 'from v1', 'to v6*', 'to v5', 'to v4']);
  for await (const _ of driveMove(moveCalls(world, job), job));
  expect(await world.versions()).toEqual(['to v6*', 'to v5', 'to v4', 'to v3', 'to v2', 'to v1']);
  await world.put(from);
  expect(await world.versions()).toContain('from v1*');
});

test('nothing else changes either key until the last step; other keys are free', async () => {
  const job = await begun();
  await step(job);
  for (const key of [from, to]) {
    const items = [{ key }];
    expect(await ask('delete-versions', { bucketId: BUCKET, owner: OWNER, items })).toBe('stale-bucket');
    const other = key === from ? ('other' as ObjectKey) : from;
    const move = { from: key, to: other };
    expect(await ask('move-key', { bucketId: BUCKET, move, overwrites: true })).toBe('stale-bucket');
    expect(await ask('set-tags', { bucketId: BUCKET, key, tags: [] })).toBe('stale-bucket');
  }
  const elsewhere = [{ key: 'elsewhere' as ObjectKey }];
  expect(await ask('delete-versions', { bucketId: BUCKET, owner: OWNER, items: elsewhere })).toBe('done');
  // A prefix that has one of the keys: it is told, and the others move.
  await world.put('to2');
  const prefix = await beginMove(world, { from: 'to', to: 'x' });
  for await (const _ of driveMove(moveCalls(world, prefix), prefix));
  const ended = (await moveCalls(world, prefix).findJob())?.job;
  expect(ended).toMatchObject({ movedCount: 1, errors: [{ sourceKey: 'to', code: 'OperationAborted' }] });
  for await (const _ of driveMove(moveCalls(world, job), job));
  expect(await ask('set-tags', { bucketId: BUCKET, key: to, tags: [] })).toBe('done');
});

test('overwriting is decided at the beginning: a refusal moves nothing and leaves nothing', async () => {
  await world.put(to);
  const before = await world.versions();
  expect(await begin()).toMatchObject({ kind: 'refused', result: { kind: 'exists' } });
  expect(await begin({ move: { from: 'none' as ObjectKey, to } })).toMatchObject({
    result: { kind: 'no-such-key' },
  });
  expect(
    await begin({ move: { from, to, sourceConditions: { ifNoneMatch: '*' } }, overwrites: true }),
  ).toEqual(
    expect.objectContaining({
      kind: 'refused',
      result: { kind: 'source-condition', condition: 'If-None-Match' },
    }),
  );
  expect(await world.versions()).toEqual(before);
  expect(await ask('set-tags', { bucketId: BUCKET, key: to, tags: [] })).toBe('done');
  const token = { token: 't', digest: 'd' };
  const outcome = await begin({ overwrites: true, token });
  if (outcome.kind !== 'begun') throw new Error(outcome.kind);
  const { job } = outcome;
  for await (const _ of driveMove(moveCalls(world, job), job));
  expect(await world.versions()).toEqual(
    [7, 6, 5, 4, 3, 2, 1].map((at) => `to v${at}${at === 7 ? '*' : ''}`),
  );
  // Repeated under its token it is that job, whichever command asks.
  expect(await begin({ overwrites: true, token })).toEqual({ kind: 'began-before', jobId: job.jobId });
  const again = { bucketId: BUCKET, move: { from, to }, overwrites: true, token };
  expect(await world.execute('move-key', again)).toEqual({ kind: 'began-before', jobId: job.jobId });
});

test('where a version may not move, however old, none does: all are looked at before, up to a number', async () => {
  const listed = 'listed' as ObjectKey;
  await world.put(listed, { version: { acl: [{ grantee: 'AllUsers', permission: 'READ' }] } });
  for (let at = 0; at < OLDER; at++) await world.put(listed);
  const before = await world.versions();
  const move = { from: listed, to };
  expect(await begin({ move, isPrivateOnly: true })).toMatchObject({ result: { kind: 'not-private' } });
  const limits = LIMITS as { moveCheckedVersionsMax: number };
  const { moveCheckedVersionsMax } = limits;
  limits.moveCheckedVersionsMax = OLDER;
  expect(await begin({ isPrivateOnly: true })).toMatchObject({ result: { kind: 'too-many-versions' } });
  limits.moveCheckedVersionsMax = moveCheckedVersionsMax;
  expect(await world.versions()).toEqual(before);
  expect(await begin({ isPrivateOnly: true })).toMatchObject({ kind: 'begun' });
});

test('its null version moves first: where versioning is suspended an existing one is replaced once', async () => {
  await world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'versioning',
    document: { status: 'suspended' },
  });
  await world.put(from);
  await world.put(to);
  await world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'versioning',
    document: { status: 'enabled' },
  });
  await world.put(from);
  for (const overwrites of [false, true])
    expect(await begin({ overwrites })).toMatchObject({ kind: 'refused', result: { kind: 'exists' } });
  await world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'versioning',
    document: { status: 'suspended' },
  });
  const outcome = await begin({ overwrites: true });
  if (outcome.kind !== 'begun') throw new Error(outcome.kind);
  expect(outcome.result).toHaveLength(2);
  const { job } = outcome;
  for await (const _ of driveMove(moveCalls(world, job), job));
  const listed = await world.versions();
  expect(listed.filter((line) => line.includes('null'))).toEqual(['to null']);
  expect(listed).toHaveLength(OLDER + 3);
  expect((await world.query('check-counters', { counted: [] })).findings).toEqual([]);
});

test('after a crash between two steps the shard drives it to its end', async () => {
  const job = await begun();
  await step(job);
  await world.shards.close();
  world = await openMetadata({ kv: world.kv, clock: world.clock });
  world.clock.advance(LIMITS.jobStallTimeoutMs);
  const { clock, shards: metadata } = world;
  await runUntilIdle(createJobDriver({ metadata, shards: () => [0], clock }));
  expect(await world.versions()).toEqual(['to v6*', 'to v5', 'to v4', 'to v3', 'to v2', 'to v1']);
  expect((await moveCalls(world, job).findJob())?.job).toMatchObject({ movedCount: OLDER + 1 });
});

test('a forced deletion of the bucket deletes both keys and the job', async () => {
  const job = await begun();
  await step(job);
  const closed = await world.execute('close-bucket', { bucketId: BUCKET });
  if (closed.kind !== 'closing') throw new Error(closed.kind);
  const { jobId } = closed.job;
  const look = { bucketId: BUCKET, jobId, stepCount: 0, count: OLDER + 1, next: { kind: 'delete' as const } };
  expect(await world.execute('step-closing', look)).toMatchObject({ kind: 'deleted' });
  for await (const _ of driveMove(moveCalls(world, job), job));
  const ended = (await moveCalls(world, job).findJob())?.job;
  expect(ended).toMatchObject({ endedAtMs: expect.any(Number) });
  expect(ended).not.toHaveProperty('within');
});

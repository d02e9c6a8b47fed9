// Which commands write which events: in their order, with the request that asked for them, and none where nothing happened or
// nobody wants to know.
import { beforeEach, describe, expect, test } from 'vitest';
import { beginMove, DRIVER, driveJob, moveCalls } from '../../../tests/support/metadata/drive-job.ts';
import {
  BUCKET,
  BUCKET_NAME,
  beginUpload,
  etagOf,
  kek,
  type MetadataShards,
  OWNER,
  openMetadata,
  putPart,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { must } from '../../base/assert.ts';
import type { CommandName, CommandOf } from '../../ports/metadata/port.ts';
import type { RequestOrigin } from '../../types/events.ts';
import type { LinkId, ObjectKey, VersionId } from '../../types/names.ts';
import { type ClosingCalls, driveClosing } from '../buckets/drive-closing.ts';
import { driveMove } from '../moves/drive-move.ts';

let world: MetadataShards;
beforeEach(async () => {
  world = await openMetadata();
});

const ORIGIN: RequestOrigin = { requestId: 'R', accountId: OWNER, address: '192.0.2.1' };
const keyOf = (text: string) => text as ObjectKey;

async function record(versioning?: 'enabled' | 'suspended'): Promise<void> {
  await world.createBucket(versioning);
  const document = { consumers: ['feed' as const] };
  await world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'events', document });
}

async function happened() {
  const { events, lostCount } = await world.query('list-events', { consumer: 'feed', limit: 1000 });
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at));
  expect(lostCount).toBe(0);
  return events.map(({ event }) => event);
}

/** Type and key of each, and `null` or `v` for its version, where it has one. */
async function shown(): Promise<string[]> {
  return (await happened()).map(({ type, key, versionId, otherKey }) => {
    const version = versionId === undefined ? '' : versionId === 'null' ? ' null' : ' v';
    return `${type.slice(3)} ${key}${version}${otherKey === undefined ? '' : ` (${otherKey})`}`;
  });
}

/** As a request of a client makes it. */
async function ask<N extends CommandName>(name: N, command: CommandOf<N>) {
  const reply = await world.shards.execute({ shard: 0, origin: ORIGIN }, name, command);
  if (reply.kind !== 'done') throw new Error(reply.kind);
  return reply.value;
}

async function putVersion(key: string): Promise<VersionId> {
  const outcome = await world.put(key);
  if (outcome.kind !== 'committed') throw new Error(outcome.kind);
  return outcome.versionId;
}

test('a bucket that asks for none has none: no row, and no number is used', async () => {
  await world.createBucket('enabled');
  await world.put('a');
  await world.remove('a');
  expect(await happened()).toEqual([]);
  const { rowCount } = await world.query('check-rows', { table: 'events', limit: 10, keyIds: [] });
  expect(rowCount).toBe(0);
  await world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'events',
    document: { consumers: ['feed'] },
  });
  await world.put('b');
  await world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'events', document: null });
  await world.put('c');
  expect(await shown()).toEqual(['ObjectCreated:Put b v']);
});

describe('a version comes to be', () => {
  test('by a PUT: with its size, ETag, time, and the request that made it', async () => {
    await record();
    world.clock.advance(1000);
    const { grant, manifest, sizeBytes } = world.newData({ sizeBytes: 12 });
    const version = {
      sizeBytes,
      etag: etagOf('a'),
      owner: OWNER,
      kek,
      originals: new Uint8Array(0),
      manifest,
    };
    await ask('commit-version', { bucketId: BUCKET, key: keyOf('a'), version, data: grant });
    expect(await happened()).toEqual([
      {
        type: 's3:ObjectCreated:Put',
        bucketId: BUCKET,
        bucket: BUCKET_NAME,
        key: 'a',
        timeMs: world.clock.wallMs(),
        sizeBytes: 12,
        etag: etagOf('a'),
        origin: ORIGIN,
      },
    ]);
  });

  test('by a copy, by one onto itself, and by a Complete, which tells it once', async () => {
    await record('enabled');
    const versionId = await putVersion('a');
    const { grant, manifest, sizeBytes } = world.newData();
    const version = {
      sizeBytes,
      etag: etagOf('b'),
      owner: OWNER,
      kek,
      originals: new Uint8Array(0),
      manifest,
    };
    const copy = { bucketId: BUCKET, key: keyOf('b'), version, data: grant };
    await world.execute('commit-version', { ...copy, event: 's3:ObjectCreated:Copy' });
    const found = await world.query('get-version', { bucketId: BUCKET, key: keyOf('a'), includeBody: false });
    if (found.kind !== 'found') throw new Error(found.kind);
    const { order, manifest: source } = found.version;
    const dataLinkId = source.kind === 'direct' ? (source.uses[0]?.linkId as LinkId) : null;
    await world.execute('recommit-version', {
      bucketId: BUCKET,
      key: keyOf('a'),
      expected: { versionId, order, dataLinkId },
      version: { owner: OWNER, kek },
      linkId: world.newLinkId(),
    });
    const uploadId = await beginUpload(world, 'm');
    await putPart(world, { key: 'm', uploadId }, { partNumber: 1 });
    const parts = [{ partNumber: 1, etag: etagOf('part 1') }];
    const complete = { bucketId: BUCKET, key: keyOf('m'), uploadId, parts };
    for (let time = 0; time < 2; time++)
      expect(await world.execute('complete-upload', complete)).toMatchObject({ repeated: time === 1 });
    expect(await shown()).toEqual([
      'ObjectCreated:Put a v',
      'ObjectCreated:Copy b v',
      'ObjectCreated:Copy a v',
      'ObjectCreated:CompleteMultipartUpload m v',
    ]);
  });

  test('none where it is refused', async () => {
    await record();
    await world.put('a');
    const refused = await world.put('a', { conditions: { ifNoneMatch: '*' } });
    expect(refused.kind).not.toBe('committed');
    expect(await shown()).toEqual(['ObjectCreated:Put a']);
  });

  test('other tags, and none', async () => {
    await record('suspended');
    await world.put('a');
    const target = { bucketId: BUCKET, key: keyOf('a') };
    await world.execute('set-tags', { ...target, tags: [{ key: 'k', value: 'v' }] });
    await world.execute('set-tags', { ...target, tags: [] });
    await world.execute('set-tags', { ...target, tags: null });
    expect(await shown()).toEqual([
      'ObjectCreated:Put a null',
      'ObjectTagging:Put a null',
      'ObjectTagging:Put a null',
      'ObjectTagging:Delete a null',
    ]);
  });

  test('another access control list', async () => {
    await record();
    await world.put('a');
    const target = { bucketId: BUCKET, key: keyOf('a'), owner: OWNER };
    await world.execute('set-acl', { ...target, grants: [{ grantee: 'AllUsers', permission: 'READ' }] });
    await world.execute('set-acl', { ...target, grants: null });
    expect(await shown()).toEqual(['ObjectCreated:Put a', 'ObjectAcl:Put a', 'ObjectAcl:Put a']);
  });
});

describe('a version goes', () => {
  test('of a bucket without versions: with its size; what is not there is no event', async () => {
    await record();
    await world.put('a');
    await world.remove('a');
    await world.remove('a');
    expect(await shown()).toEqual(['ObjectCreated:Put a', 'ObjectRemoved:Delete a']);
    expect((await happened())[1]).toMatchObject({ sizeBytes: 10, etag: etagOf('a') });
  });

  test('one event for each item of a delete, in its order, and none for what was refused', async () => {
    await record('enabled');
    const first = await putVersion('a');
    for (const key of ['b', 'kept']) await world.put(key);
    const conditions = { ifMatch: ['0'.repeat(32)] };
    const items = [
      { key: keyOf('b') },
      { key: keyOf('a') },
      { key: keyOf('a'), versionId: first },
      { key: keyOf('gone'), versionId: first },
      { key: keyOf('kept'), conditions },
    ];
    const { items: outcomes } = await ask('delete-versions', { bucketId: BUCKET, owner: OWNER, items });
    expect(outcomes.map(({ kind }) => kind === 'deleted')).toEqual([true, true, true, true, false]);
    expect((await shown()).slice(3)).toEqual([
      'ObjectRemoved:DeleteMarkerCreated b v',
      'ObjectRemoved:DeleteMarkerCreated a v',
      'ObjectRemoved:Delete a v',
    ]);
    const removed = must((await happened())[5], 'an event');
    expect(removed).toMatchObject({ versionId: first, sizeBytes: 10, origin: ORIGIN });
    const marker = must((await happened())[3], 'an event');
    expect(marker).not.toHaveProperty('sizeBytes');
    await world.remove('b', must(marker.versionId, 'a version'));
    expect((await shown()).at(-1)).toBe('ObjectRemoved:Delete b v');
  });

  test('each version and marker of a bucket that is deleted by force, for the request that asked for that', async () => {
    await record('enabled');
    for (const key of ['a', 'a', 'b']) await world.put(key);
    await world.remove('b');
    const closing = await ask('close-bucket', { bucketId: BUCKET });
    if (closing.kind !== 'closing') throw new Error(closing.kind);
    const calls: ClosingCalls = {
      look: (query) => world.query('find-protected', query),
      step: (command) => world.execute('step-closing', command),
    };
    expect(await driveClosing(calls, closing.job)).toMatchObject({ kind: 'deleted' });
    for (let { jobId, stepCount } = closing.job, hasEnded = false; !hasEnded; stepCount++) {
      const outcome = await world.execute('empty-bucket', { bucketId: BUCKET, jobId, stepCount });
      hasEnded = outcome.kind === 'stepped' && outcome.job.endedAtMs !== undefined;
    }
    expect((await shown()).slice(4).sort()).toEqual([
      'ObjectRemoved:Delete a v',
      'ObjectRemoved:Delete a v',
      'ObjectRemoved:Delete b v',
      'ObjectRemoved:Delete b v',
    ]);
    for (const { origin } of (await happened()).slice(4)) expect(origin).toEqual(ORIGIN);
    const { findings } = await world.query('check-rows', { table: 'events', limit: 100, keyIds: [] });
    expect(findings).toEqual([]);
  });
});

describe('a rename is two events', () => {
  test('of a key: the new one comes, the old one goes', async () => {
    await record();
    await world.put('a');
    const move = { from: keyOf('a'), to: 'b' };
    await ask('move-key', { bucketId: BUCKET, move, overwrites: false });
    await ask('move-key', { bucketId: BUCKET, move, overwrites: false });
    expect((await shown()).slice(1)).toEqual(['ObjectCreated:Copy b (a)', 'ObjectRemoved:Delete a (b)']);
    for (const event of (await happened()).slice(1))
      expect(event).toMatchObject({ sizeBytes: 10, etag: etagOf('a'), origin: ORIGIN });
  });

  test('of a key whose latest version is a delete marker: no object comes', async () => {
    await record('enabled');
    await world.put('a');
    await world.remove('a');
    const move = { from: keyOf('a'), to: 'b' };
    await world.execute('move-key', { bucketId: BUCKET, move, overwrites: false });
    expect((await shown()).slice(2)).toEqual([
      'ObjectRemoved:DeleteMarkerCreated b v (a)',
      'ObjectRemoved:Delete a v (b)',
    ]);
  });

  test('of each key of a prefix, in the order of the walk, for the request that began it', async () => {
    await record();
    for (const key of ['d/1', 'd/2', 'e/2']) await world.put(key);
    const begun = await ask('begin-move', {
      bucketId: BUCKET,
      from: 'd/',
      to: 'e/',
      overwrites: false,
      driver: DRIVER,
    });
    if (begun.kind !== 'begun') throw new Error(begun.kind);
    await driveJob(world, begun.job);
    expect((await shown()).slice(3)).toEqual([
      'ObjectCreated:Copy e/1 (d/1)',
      'ObjectRemoved:Delete d/1 (e/1)',
    ]);
    for (const { origin } of (await happened()).slice(3)) expect(origin).toEqual(ORIGIN);
  });

  test('of a key that moves in several entries: both with the first one', async () => {
    await record('enabled');
    for (let at = 0; at < 5; at++) await world.put('a');
    const move = { from: keyOf('a'), to: 'b' };
    const begun = await ask('begin-key-move', { bucketId: BUCKET, move, overwrites: false, driver: DRIVER });
    if (begun.kind !== 'begun') throw new Error(begun.kind);
    const both = ['ObjectCreated:Copy b v (a)', 'ObjectRemoved:Delete a v (b)'];
    expect((await shown()).slice(5)).toEqual(both);
    for await (const _ of driveMove(moveCalls(world, begun.job), begun.job));
    expect((await shown()).slice(5)).toEqual(both);
  });

  test('a job that began before its bucket asked for events tells the rest of them, of no request', async () => {
    await world.createBucket();
    for (const key of ['d/1', 'd/2']) await world.put(key);
    const job = await beginMove(world, { from: 'd/', to: 'e/' });
    const document = { consumers: ['feed' as const] };
    await world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'events', document });
    await driveJob(world, job);
    expect(await happened()).toHaveLength(4);
    for (const event of await happened()) expect(event).not.toHaveProperty('origin');
  });
});

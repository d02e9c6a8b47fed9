import { beforeEach, expect, test } from 'vitest';
import {
  BUCKET,
  BUCKET_NAME,
  type MetadataShards,
  OWNER,
  openMetadata,
} from '../../tests/support/metadata/metadata-shards.ts';
import { must } from '../base/assert.ts';
import type { CommandName, CommandOf, MetadataPort, OutcomeOf, Reply } from '../ports/metadata/port.ts';
import type { DeleteItem } from '../ports/metadata/versions.ts';
import type { BucketName, ObjectKey } from '../types/names.ts';
import { refuseGrowth } from './refuse-growth.ts';

let world: MetadataShards;
let metadata: MetadataPort;
let isFull: boolean;
let isHalfUsed: boolean;
let heldBytes: number;
const askedBytes: number[] = [];

beforeEach(async () => {
  world = await openMetadata();
  await world.createBucket('enabled');
  isFull = false;
  isHalfUsed = false;
  heldBytes = 0;
  askedBytes.length = 0;
  metadata = refuseGrowth(world.shards, {
    async hold(sizeBytes, { isForFullDisk } = { isForFullDisk: false }) {
      askedBytes.push(sizeBytes);
      if (isForFullDisk ? isHalfUsed : isFull) return undefined;
      heldBytes += sizeBytes;
      return {
        release() {
          heldBytes -= sizeBytes;
        },
      };
    },
    measure: async () => ({ freeBytes: 0, totalBytes: 0 }),
  });
});

const execute = <N extends CommandName>(name: N, command: CommandOf<N>): Promise<Reply<OutcomeOf<N>>> =>
  metadata.execute({ shard: 0 }, name, command);

test('growth is refused without evaluation while the disk is full, and not before or after', async () => {
  const name = 'another' as BucketName;
  isFull = true;
  expect(await execute('reserve-name', { name, owner: OWNER })).toEqual({ kind: 'full' });
  isFull = false;
  expect((await execute('reserve-name', { name, owner: OWNER })).kind).toBe('done');
  expect(heldBytes).toBe(0);
});

test('deletes, settings and upkeep need no room', async () => {
  await world.put('k');
  isFull = true;
  const key = 'k' as ObjectKey;
  const deleted = await execute('delete-versions', { bucketId: BUCKET, owner: OWNER, items: [{ key }] });
  expect(deleted).toMatchObject({ kind: 'done', value: { items: [{ kind: 'deleted' }] } });
  expect(
    (
      await execute('set-bucket-config', {
        bucketId: BUCKET,
        kind: 'versioning',
        document: { status: 'suspended' },
      })
    ).kind,
  ).toBe('done');
  expect((await execute('set-tags', { bucketId: BUCKET, key, tags: [] })).kind).toBe('done');
  expect((await execute('tick', {})).kind).toBe('done');
  expect(askedBytes).toEqual([]);
  const page = { bucketId: BUCKET, prefix: '', max: 10 };
  expect((await metadata.query({ shard: 0 }, 'list-objects', page)).kind).toBe('done');
});

test('what grows and is wanted on a full disk goes on until half of the reserve is used: no account fills the rest', async () => {
  const outcome = await world.put('k');
  const versionId = must(outcome.kind === 'committed' ? outcome.versionId : undefined, 'it is stored');
  const remove = async (item: Partial<DeleteItem>, mayMark: boolean) => {
    const items = [{ key: 'k' as ObjectKey, ...item }];
    return (await execute('delete-versions', { bucketId: BUCKET, owner: OWNER, items, mayMark })).kind;
  };
  const setPolicy = async (document: object | null) =>
    (await execute('set-bucket-config', { bucketId: BUCKET, kind: 'policy', document } as never)).kind;
  const policy = { text: '{}', ids: {} };
  const changeUser = async (record: object | null) => {
    const rows = [{ key: 'user/a', record }];
    const change = { accountId: OWNER, ifRevision: 0, rows, isSeen: false };
    return (await execute('change-identities', change as never)).kind;
  };
  isFull = true;
  expect([await remove({}, true), await setPolicy(policy)]).toEqual(['done', 'done']);
  isHalfUsed = true;
  expect([await remove({}, true), await setPolicy(policy), await changeUser({})]).toEqual(
    Array(3).fill('full'),
  );
  // What takes something away, and what does so where no version is kept.
  expect([await remove({}, false), await remove({ versionId }, true)]).toEqual(['done', 'done']);
  expect([await setPolicy(null), await changeUser(null)]).toEqual(['done', 'done']);
  expect(heldBytes).toBe(0);
});

test('an inline body needs its own bytes', async () => {
  const births = [{ body: new Uint8Array(50_000) }, {}];
  const command = { data: { births, links: [] } } as unknown as CommandOf<'commit-version'>;
  isFull = true;
  expect(await execute('commit-version', command)).toEqual({ kind: 'full' });
  expect(askedBytes[0]).toBeGreaterThan(50_000);
  expect(askedBytes[0]).toBeLessThan(60_000);
});

test('room is given back when the command fails', async () => {
  const broken = refuseGrowth(
    { ...world.shards, execute: () => Promise.reject(new Error('broken')) },
    {
      hold: async () => ({ release: () => heldBytes++ }),
      measure: async () => ({ freeBytes: 0, totalBytes: 0 }),
    },
  );
  const command = { name: BUCKET_NAME, owner: OWNER };
  await expect(broken.execute({ shard: 0 }, 'reserve-name', command)).rejects.toThrow('broken');
  expect(heldBytes).toBe(1);
});

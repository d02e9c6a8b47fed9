// Whoever follows the events of a bucket knows which objects there are, whatever was asked for and in which order.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { beginMove, driveJob } from '../../../tests/support/metadata/drive-job.ts';
import {
  BUCKET,
  type MetadataShards,
  OWNER,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import type { ObjectKey } from '../../types/names.ts';
import type { EventRecord } from '../../types/records/event-record.ts';

const keys = fc.constantFrom('a', 'b', 'd/1', 'd/2', 'd/d/1', 'e/1').map((key) => key as ObjectKey);
const steps = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('put' as const), key: keys }) },
  fc.record({ kind: fc.constant('delete' as const), keys: fc.array(keys, { minLength: 1, maxLength: 4 }) }),
  fc.record({ kind: fc.constant('move' as const), from: keys, to: keys, overwrites: fc.boolean() }),
  fc.record({
    kind: fc.constant('move-prefix' as const),
    from: fc.constantFrom('d/', 'e/', 'd/d/'),
    to: fc.constantFrom('d/', 'e/', 'd/d/', 'f/'),
    overwrites: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('take' as const), share: fc.integer({ min: 0, max: 3 }) }),
);
type Step = typeof steps extends fc.Arbitrary<infer S> ? S : never;

/** Current objects: key and ETag. */
type Objects = Map<string, string>;

function follow(objects: Objects, { type, key = '' as ObjectKey, etag, versionId }: EventRecord): void {
  if (type.startsWith('s3:ObjectCreated:')) objects.set(key, String(etag));
  else if (type.startsWith('s3:ObjectRemoved:')) {
    expect(versionId, 'of a bucket without versions').toBeUndefined();
    expect(objects.get(key), `${key} was there`).toBe(etag);
    objects.delete(key);
  }
}

async function run(world: MetadataShards, step: Step, at: number): Promise<void> {
  if (step.kind === 'put') await world.put(step.key, { etag: `${at}`.padStart(32, '0') });
  else if (step.kind === 'delete') {
    const items = step.keys.map((key) => ({ key }));
    await world.execute('delete-versions', { bucketId: BUCKET, owner: OWNER, items });
  } else if (step.kind === 'move') {
    const { from, to, overwrites } = step;
    if (from === to) return;
    await world.execute('move-key', { bucketId: BUCKET, move: { from, to }, overwrites });
  } else if (step.kind === 'move-prefix') {
    if (step.from !== step.to) await driveJob(world, await beginMove(world, step));
  }
}

test('the objects that events tell of are those that are listed', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { minLength: 1, maxLength: 25 }), async (all) => {
      const world = await openMetadata();
      await world.createBucket();
      const document = { consumers: ['feed' as const] };
      await world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'events', document });
      const told: Objects = new Map();
      let from = { incarnation: 1, seq: 0 };
      for (const [at, step] of all.entries()) {
        await run(world, step, at);
        const page = await world.query('list-events', { consumer: 'feed', from, limit: 1000 });
        for (const { event } of page.events) follow(told, event);
        from = page.next;
        const { objects } = await world.query('list-objects', { bucketId: BUCKET, prefix: '', max: 1000 });
        const listed = objects.map(({ key, summary }) => [key, summary.etag]);
        expect([...told].sort()).toEqual(listed.sort());
        if (step.kind !== 'take') continue;
        const upTo = { ...from, seq: Math.floor((from.seq * step.share) / 3) };
        await world.execute('take-events', { consumer: 'feed', upTo });
      }
    }),
    { numRuns: 60 },
  );
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BUCKET, OWNER, openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import type { DeleteItem } from '../../ports/metadata/versions.ts';
import type { BlobId, ObjectKey, VersionId } from '../../types/names.ts';

// Any sequence of writes, deletes and changes of tags in any versioning states, against a list per key: what is listed,
// what GET gives, which blobs live, what is counted.

interface ModelVersion {
  id: string;
  isMarker: boolean;
  blobId?: BlobId;
  tag?: string;
}

type Versioning = 'enabled' | 'suspended';
type Step =
  | { kind: 'put'; key: string }
  | { kind: 'delete'; items: { key: string; pick: number | null }[] }
  | { kind: 'tag'; key: string; pick: number | null }
  | { kind: 'set'; versioning: Versioning };

const keyArbitrary = fc.constantFrom('a', 'a', 'a', 'a\u0000');
const itemArbitrary = fc.record({ key: keyArbitrary, pick: fc.option(fc.nat(3)) });
const stepArbitrary: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('put' as const), key: keyArbitrary }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('delete' as const),
      items: fc.array(itemArbitrary, { minLength: 1, maxLength: 5 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('tag' as const),
      key: keyArbitrary,
      pick: fc.option(fc.nat(3)),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('set' as const),
      versioning: fc.constantFrom<Versioning>('enabled', 'suspended'),
    }),
  },
);

class Model {
  versioning: 'unversioned' | Versioning = 'unversioned';
  readonly keys = new Map<string, ModelVersion[]>();

  of(key: string): ModelVersion[] {
    return this.keys.get(key) ?? [];
  }

  /** Newest first. */
  write(key: string, version: ModelVersion): void {
    const others = this.of(key).filter(({ id }) => version.id !== 'null' || id !== 'null');
    this.keys.set(key, [version, ...others]);
  }

  remove(key: string, id: string): void {
    this.keys.set(
      key,
      this.of(key).filter((version) => version.id !== id),
    );
  }

  all(): { key: string; version: ModelVersion; isLatest: boolean }[] {
    const keys = [...this.keys.keys()].sort();
    return keys.flatMap((key) => this.of(key).map((version, at) => ({ key, version, isLatest: at === 0 })));
  }
}

async function check(steps: readonly Step[]): Promise<void> {
  const world = await openMetadata();
  await world.createBucket();
  const model = new Model();
  const blobIds: BlobId[] = [];

  for (const [at, step] of steps.entries()) {
    if (step.kind === 'tag') {
      const { key, pick } = step;
      const version = model.of(key)[pick ?? 0];
      const versionId = (version?.id ?? 'unknown') as VersionId;
      const tags = [{ key: 'at', value: String(at) }];
      const named = { bucketId: BUCKET, key: key as ObjectKey, ...(pick !== null && { versionId }), tags };
      const absent = pick === null ? 'no-such-key' : 'no-such-version';
      const kind = version === undefined ? absent : version.isMarker ? 'delete-marker' : 'tagged';
      expect(await world.execute('set-tags', named)).toMatchObject({ kind });
      if (version !== undefined && !version.isMarker) version.tag = String(at);
    } else if (step.kind === 'set') {
      model.versioning = step.versioning;
      await world.execute('set-bucket-config', {
        bucketId: BUCKET,
        kind: 'versioning',
        document: { status: step.versioning },
      });
    } else if (step.kind === 'put') {
      const data = world.newData();
      const blobId = data.uses[0]?.blobId as BlobId;
      blobIds.push(blobId);
      const outcome = await world.put(step.key, { data });
      if (outcome.kind !== 'committed') throw new Error(outcome.kind);
      expect(outcome.versionId === 'null').toBe(model.versioning !== 'enabled');
      model.write(step.key, { id: outcome.versionId, isMarker: false, blobId });
    } else {
      const items = step.items.map(({ key, pick }): DeleteItem => {
        const versionId = pick === null ? undefined : (model.of(key)[pick]?.id ?? 'unknown');
        return { key: key as ObjectKey, ...(versionId && { versionId: versionId as VersionId }) };
      });
      const outcome = await world.execute('delete-versions', { bucketId: BUCKET, owner: OWNER, items });
      for (const [at, { key, versionId }] of items.entries()) {
        const done = outcome.items[at];
        if (done?.kind !== 'deleted') throw new Error(done?.kind);
        if (versionId !== undefined) model.remove(key, versionId);
        else if (model.versioning === 'unversioned') model.remove(key, 'null');
        else model.write(key, { id: done.versionId ?? '', isMarker: true });
      }
    }
  }

  const { versions } = await world.query('list-versions', { bucketId: BUCKET, prefix: '', max: 1000 });
  expect(versions.map(({ key, versionId, isLatest }) => ({ key, versionId, isLatest }))).toEqual(
    model.all().map(({ key, version, isLatest }) => ({ key, versionId: version.id, isLatest })),
  );
  const current = model.all().filter(({ version, isLatest }) => isLatest && !version.isMarker);
  const listed = await world.query('list-objects', { bucketId: BUCKET, prefix: '', max: 1000 });
  expect(listed.objects.map(({ key }) => key)).toEqual(current.map(({ key }) => key));
  for (const { key, version, isLatest } of model.all()) {
    const query = {
      bucketId: BUCKET,
      key: key as ObjectKey,
      versionId: version.id as VersionId,
      includeBody: false,
    };
    const kind = version.isMarker ? 'delete-marker' : 'found';
    const found = await world.query('get-version', query);
    expect(found).toMatchObject({ kind, isLatest });
    const tags = found.kind === 'found' ? found.version.tags : undefined;
    expect(tags?.map(({ value }) => value)).toEqual(version.tag === undefined ? undefined : [version.tag]);
  }
  await world.markUnlinked();
  const living = new Set(model.all().map(({ version }) => version.blobId));
  const states = await world.stateOf(...blobIds);
  expect(states).toEqual(blobIds.map((blobId) => (living.has(blobId) ? 'live' : 'condemned')));
  const objectCount = model.all().filter(({ version }) => !version.isMarker).length;
  expect(await world.query('count-usage', { bucketId: BUCKET })).toMatchObject({
    objectCount,
    sizeBytes: objectCount * 10,
  });
}

test('histories equal a plain list of versions', async () => {
  const property = fc.asyncProperty(fc.array(stepArbitrary, { maxLength: 30 }), check);
  await fc.assert(property, { numRuns: amountOf({ short: 40, long: 150 }) });
});

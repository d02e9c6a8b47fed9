// Lifecycle against a naive model: a list of versions, looked at whole each midnight. Random objects, deletions, rules and
// restarts; what is listed after each day is what the model has.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createLifecycleWorld, DAY } from '../../../tests/support/metadata/lifecycle-world.ts';
import { type MetadataShards, openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import type { LifecycleRule } from '../../types/lifecycle.ts';

const KEYS = ['a/1', 'a/2', 'b'];
type Step =
  | { kind: 'put'; key: string }
  | { kind: 'delete'; key: string }
  | { kind: 'remove'; key: string; at: number }
  | { kind: 'wait'; hours: number };
const key = fc.constantFrom(...KEYS);
const stepArbitrary: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.oneof(
      fc.record({ kind: fc.constant('put' as const), key }),
      fc.record({ kind: fc.constant('delete' as const), key }),
    ),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), key, at: fc.nat({ max: 3 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), hours: fc.integer({ min: 1, max: 40 }) }),
  },
);
const days = fc.integer({ min: 1, max: 3 });
const prefix = fc.constantFrom('', 'a/', 'b');
const rulesArbitrary = fc.array(
  fc.oneof(
    fc.record({ prefix, expiration: fc.record({ days }) }),
    fc.record({ prefix, expiration: fc.constant({ expiredObjectDeleteMarker: true }) }),
    fc.record({
      prefix,
      noncurrentExpiration: fc.record({ days, newerVersions: fc.integer({ min: 0, max: 2 }) }),
    }),
  ),
  { minLength: 1, maxLength: 3 },
);

interface ModelVersion {
  key: string;
  id: string;
  atMs: number;
  isMarker: boolean;
}

/** Newest first; a pass as the rules say it, over all of it. */
function passOf(versions: ModelVersion[], rules: readonly LifecycleRule[], nowMs: number): ModelVersion[] {
  const behind = (fromMs: number, count: number) => (Math.floor(fromMs / DAY) + count + 1) * DAY <= nowMs;
  const left = KEYS.flatMap((name) => {
    const ofKey = versions.filter((version) => version.key === name);
    const mine = rules.filter(({ filter }) => name.startsWith(filter.prefix ?? ''));
    const kept = ofKey.filter((_, at) => {
      const newer = ofKey[at - 1];
      if (newer === undefined) return true;
      return !mine.some(({ noncurrentExpiration: one }) => {
        return one !== undefined && at - 1 >= (one.newerVersions ?? 0) && behind(newer.atMs, one.days);
      });
    });
    const [latest] = kept;
    if (latest === undefined) return [];
    const isOld = mine.some(
      ({ expiration }) => expiration && 'days' in expiration && behind(latest.atMs, expiration.days),
    );
    const endsMarkers = mine.some(
      ({ expiration }) => expiration && 'expiredObjectDeleteMarker' in expiration,
    );
    if (!latest.isMarker && isOld) return [{ key: name, id: 'new', atMs: nowMs, isMarker: true }, ...kept];
    return latest.isMarker && kept.length === 1 && (isOld || endsMarkers) ? [] : kept;
  });
  return left;
}

async function listed(world: MetadataShards, model: readonly ModelVersion[]): Promise<ModelVersion[]> {
  const page = await world.query('list-versions', {
    bucketId: 'b000000000000001' as never,
    prefix: '',
    max: 1000,
  });
  const known = new Set(model.map(({ id }) => id));
  return page.versions.map(({ key: name, versionId, summary }) => ({
    key: name,
    id: known.has(versionId) ? versionId : 'new',
    atMs: summary.modifiedAtMs,
    isMarker: summary.isDeleteMarker,
  }));
}

test('after each midnight there is what the model has', async () => {
  const property = fc.asyncProperty(
    fc.array(stepArbitrary, { maxLength: 25 }),
    rulesArbitrary,
    async (steps, drawn) => {
      const world = await openMetadata();
      const lifecycle = createLifecycleWorld(world);
      await world.createBucket('enabled');
      const rules = drawn.map(({ prefix: begin, ...rule }, at) => {
        return { id: `${at}`, isEnabled: true, filter: { prefix: begin }, ...rule } as LifecycleRule;
      });
      let model: ModelVersion[] = [];
      await lifecycle.putRules(...rules);
      for (const step of steps) {
        if (step.kind === 'put') {
          const written = await world.put(step.key);
          if (written.kind !== 'committed') throw new Error(written.kind);
          const { versionId: id, modifiedAtMs: atMs } = written;
          model = [{ key: step.key, id, atMs, isMarker: false }, ...model];
        } else if (step.kind === 'delete') {
          const done = await world.remove(step.key);
          if (done.kind !== 'deleted') throw new Error(done.kind);
          const atMs = world.clock.wallMs();
          model = [{ key: step.key, id: done.versionId ?? '', atMs, isMarker: true }, ...model];
        } else if (step.kind === 'remove') {
          const gone = model.filter((version) => version.key === step.key)[step.at];
          if (gone === undefined || gone.id === 'new') continue;
          await world.remove(step.key, gone.id);
          model = model.filter((version) => version !== gone);
        } else {
          const before = Math.floor(world.clock.wallMs() / DAY);
          world.clock.advance(step.hours * 3600_000);
          if (Math.floor(world.clock.wallMs() / DAY) === before) continue;
          await lifecycle.run();
          model = passOf(model, rules, world.clock.wallMs());
          const found = await listed(world, model);
          expect(found).toEqual(KEYS.flatMap((name) => model.filter((version) => version.key === name)));
          const ids = await world.query('list-versions', {
            bucketId: 'b000000000000001' as never,
            prefix: '',
            max: 1000,
          });
          model = model.map((version, at) => ({ ...version, id: ids.versions[at]?.versionId ?? '' }));
        }
      }
    },
  );
  await fc.assert(property, { numRuns: amountOf({ short: 60, long: 1000 }) });
});

// Several versions by one question, as a composition asks for its components.
import { expect, test } from 'vitest';
import { BUCKET, openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import { LIMITS } from '../../types/limits.ts';
import type { ObjectKey, VersionId } from '../../types/names.ts';

test('each as by itself, in the requested order', async () => {
  const world = await openMetadata();
  await world.createBucket('enabled');
  const put = async (key: string) => {
    const outcome = await world.put(key);
    return outcome.kind === 'committed' ? outcome.versionId : ('' as VersionId);
  };
  const [older] = [await put('a'), await put('a'), await put('b'), await put('gone')];
  await world.remove('gone');
  const wanted = [
    { key: 'b' },
    { key: 'a', versionId: older },
    { key: 'gone' },
    { key: 'a' },
    { key: 'none' },
    { key: 'b', versionId: older },
    { key: 'a' },
  ] as { key: ObjectKey; versionId?: VersionId }[];
  const alone = await Promise.all(
    wanted.map((one) => world.query('get-version', { bucketId: BUCKET, ...one, includeBody: false })),
  );
  expect(alone.map(({ kind }) => kind)).toEqual([
    ...['found', 'found', 'delete-marker', 'found', 'no-such-key', 'no-such-version', 'found'],
  ]);
  expect((await world.query('get-versions', { bucketId: BUCKET, wanted })).found).toEqual(alone);
});

test('of large ones the first that fit, and one at least', async () => {
  const world = await openMetadata();
  await world.createBucket();
  const data = world.newData({ sizeBytes: 10 });
  const [use] = data.uses;
  const uses = Array.from({ length: LIMITS.appendCountMax }, () => {
    const { uses: own } = world.newData({ sizeBytes: 10 });
    return { ...use, ...own[0] } as typeof use & object;
  });
  const segments = uses.map((_use, at) => ({ use: at, offsetBytes: 0, sizeBytes: 10 }));
  const births = uses.map((one) => ({ use: one }));
  const manifest = { kind: 'direct' as const, uses, segments, parts: [] };
  await world.put('large', { data: { ...data, grant: { births, links: [] }, manifest } });
  const wanted = Array.from({ length: 32 }, () => ({ key: 'large' as ObjectKey }));
  const { found } = await world.query('get-versions', { bucketId: BUCKET, wanted });
  expect(found.length).toBeGreaterThan(1);
  expect(found.length).toBeLessThan(32);
});

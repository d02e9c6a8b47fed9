// A bucket may have a thousand rules with ten tags each. What is read and judged between two turns of the process, and what is
// judged anew in one commit, is the less the more there is to compare.
import { beforeEach, expect, test } from 'vitest';
import {
  BUCKET,
  type MetadataShards,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import type { FairTurns } from '../../base/async/fair-turns.ts';
import type { LifecycleRule } from '../../types/lifecycle.ts';
import { LIMITS } from '../../types/limits.ts';
import type { ObjectKey } from '../../types/names.ts';
import { packOriginals } from '../../types/originals.ts';
import { encodeVersion, storedHead } from '../../types/records/version-record.ts';
import { EMPTY_MANIFEST, type VersionRecord } from '../../types/version.ts';
import { subjectOf } from './judge.ts';

const DAY = 24 * 3600 * 1000;
const TAGS = Array.from({ length: LIMITS.tagsMax }, (_, at) => ({ key: `key-${at}`, value: 'value' }));
/** All of its tags are there but the last one. */
const OTHER_TAGS = [...TAGS.slice(1), { key: 'key-0', value: 'other' }];
const EVERYTHING: LifecycleRule = {
  id: 'all',
  isEnabled: true,
  filter: {},
  expiration: { days: 1 },
  noncurrentExpiration: { days: 1 },
};

let world: MetadataShards;
let largestRead = 0;
let turnCount = 0;

beforeEach(async () => {
  const turns: FairTurns = {
    async take() {
      turnCount++;
    },
    join: () => undefined,
    finish: () => Promise.reject(new Error('nobody asks for it')),
    begin: async () => () => {},
  };
  world = await openMetadata({ turns });
  largestRead = 0;
  const { kv } = world;
  const { cursor } = kv;
  kv.cursor = (bounds) => {
    const opened = cursor(bounds);
    return {
      ...opened,
      next(count) {
        largestRead = Math.max(largestRead, count);
        return opened.next(count);
      },
    };
  };
});

function rulesWithTags(count: number): LifecycleRule[] {
  return Array.from({ length: count }, (_, at) => ({
    id: `r${at}`,
    isEnabled: true,
    filter: { tags: OTHER_TAGS },
    expiration: { days: 1 },
  }));
}

/** How many items the first page has of what is due by the rules. */
async function countDue(rules: LifecycleRule[]): Promise<number> {
  await world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'lifecycle', document: { rules } });
  world.clock.advance(3 * DAY);
  largestRead = 0;
  turnCount = 0;
  const query = { bucketId: BUCKET, dayMs: DAY, rowsMax: 5000, itemsMax: 250 };
  const found = await world.query('find-expirable', query);
  if (found.kind !== 'found' || found.page === undefined) throw new Error(found.kind);
  return found.page.items.length;
}

test('one rule: as many rows are read at once, and as many items are found, as asked for', async () => {
  await world.createBucket();
  for (let at = 0; at < 40; at++) await world.put(`k${at}`, { version: { tags: TAGS } });
  expect(await countDue([EVERYTHING])).toBe(40);
  expect(largestRead).toBe(250);
  expect(turnCount).toBe(2);
});

test('a thousand rules with ten tags: a few rows at once, and a few items in one commit', async () => {
  await world.createBucket();
  for (let at = 0; at < 40; at++) await world.put(`k${at}`, { version: { tags: TAGS } });
  expect(await countDue([...rulesWithTags(999), EVERYTHING])).toBe(10);
  expect(largestRead).toBe(4);
  // One before each of them.
  expect(turnCount).toBe(3);
});

test('where rules count the newest hundred versions of a key, few keys are in one commit', async () => {
  await world.createBucket('enabled');
  for (let at = 0; at < 80; at++) await world.put(`k${at % 40}`);
  const noncurrentExpiration = { days: 1, newerVersions: 100 };
  const newest = { id: 'newest', isEnabled: true, filter: { prefix: 'other/' }, noncurrentExpiration };
  expect(await countDue([newest, EVERYTHING])).toBe(25);
});

test('the tags of a version are decoded once, however many rules ask for them', async () => {
  const version: VersionRecord = {
    isDeleteMarker: false,
    owner: '000000000001' as VersionRecord['owner'],
    order: 1,
    sizeBytes: 0,
    modifiedAtMs: 0,
    etag: '0'.repeat(32),
    versionId: 'null' as VersionRecord['versionId'],
    tags: TAGS,
    originals: packOriginals({ sizeBytes: 0, md5: '0'.repeat(32) }),
    manifest: EMPTY_MANIFEST,
  };
  const value = encodeVersion(version);
  const { tags } = subjectOf({ key: 'k' as ObjectKey, head: storedHead(value), value });
  expect(tags()).toEqual(TAGS);
  expect(tags()).toBe(tags());
});

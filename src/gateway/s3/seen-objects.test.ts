// What is read must be what was judged.
import { expect, test } from 'vitest';
import type { AccountId, BucketId, ObjectKey, VersionId } from '../../types/names.ts';
import { SeenObjects } from './seen-objects.ts';

const OWNER = '100000000001' as AccountId;
const address = { bucketId: 'b1' as BucketId, key: 'key' as ObjectKey };
const grants = [{ grantee: '100000000002' as AccountId, permission: 'READ' as const }];

test('another owner, another list and other tags are a change, and what no decision has looked at is none', () => {
  const seen = new SeenObjects();
  const tags = [{ key: 'a', value: 'b' }];
  seen.note(address, { acl: { owner: OWNER, grants }, tags });
  expect(seen.compare(address, { owner: OWNER, acl: grants, tags })).toBe('same');
  expect(seen.compare(address, { owner: OWNER, acl: grants })).toBe('changed');
  expect(seen.compare(address, { owner: OWNER, tags })).toBe('changed');
  expect(seen.compare(address, { owner: '100000000003' as AccountId, acl: grants, tags })).toBe('changed');
  expect(seen.compare({ ...address, versionId: 'v' as VersionId }, { owner: OWNER })).toBe('same');
});

test('one that was judged as missing is missing, and one that was judged twice must be both', () => {
  const seen = new SeenObjects();
  seen.note(address, undefined);
  expect(seen.compare(address, { owner: OWNER })).toBe('missing');
  const twice = new SeenObjects();
  twice.note(address, { acl: { owner: OWNER }, tags: [] });
  twice.note(address, { acl: { owner: OWNER, grants }, tags: [] });
  expect(twice.compare(address, { owner: OWNER })).toBe('changed');
});

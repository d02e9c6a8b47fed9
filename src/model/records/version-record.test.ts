// The stored form of versions as renames take it: order and id without the rest, and another order in its place.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AccountId, VersionId } from '../names.ts';
import { EMPTY_MANIFEST, type VersionRecord } from '../version.ts';
import { decodeVersion, encodeVersion, storedVersionId, versionOrder, withOrder } from './version-record.ts';

const record = fc
  .record({
    versionId: fc.oneof(
      fc.constant('null'),
      fc.string({ unit: 'grapheme-ascii', minLength: 32, maxLength: 32 }),
    ),
    order: fc.integer({ min: 0, max: 2 ** 48 - 1 }),
    isDeleteMarker: fc.boolean(),
    withTags: fc.boolean(),
  })
  .map(
    ({ versionId, order, isDeleteMarker, withTags }): VersionRecord => ({
      ...{ versionId: versionId as VersionId, order, isDeleteMarker, sizeBytes: 2 ** 40, modifiedAtMs: 7 },
      ...{ etag: isDeleteMarker ? '' : 'ab'.repeat(16), owner: '000000000001' as AccountId },
      ...{ originals: [], manifest: EMPTY_MANIFEST },
      ...(withTags && { tags: [{ key: 'k', value: 'v' }] }),
    }),
  );

test('order and id alone are those of the whole', () => {
  fc.assert(
    fc.property(record, (version) => {
      const bytes = encodeVersion(version);
      expect([storedVersionId(bytes), versionOrder(bytes)]).toEqual([version.versionId, version.order]);
    }),
  );
});

test('with another order everything else stays, and so do the bytes that were given', () => {
  fc.assert(
    fc.property(record, fc.integer({ min: 0, max: 2 ** 48 - 1 }), (version, order) => {
      const bytes = encodeVersion(version);
      expect(decodeVersion(withOrder(bytes, order))).toEqual({ ...version, order });
      expect(decodeVersion(bytes)).toEqual(version);
    }),
  );
});

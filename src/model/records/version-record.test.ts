// The stored form of versions as renames take it: order and id without the rest, and another order in its place.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AccountId, VersionId } from '../names.ts';
import { packOriginals } from '../originals.ts';
import { EMPTY_MANIFEST, type VersionRecord } from '../version.ts';
import { decodeVersion, encodeVersion, storedVersionId, versionOrder, withOrder } from './version-record.ts';

const originalsOf = (count: number) =>
  packOriginals(
    ...Array.from({ length: count }, (_, at) => ({ sizeBytes: at, md5: String(at).padStart(32, '0') })),
  );

const record = fc
  .record({
    versionId: fc.oneof(
      fc.constant('null'),
      fc.string({ unit: 'grapheme-ascii', minLength: 32, maxLength: 32 }),
    ),
    order: fc.integer({ min: 0, max: 2 ** 48 - 1 }),
    isDeleteMarker: fc.boolean(),
    withTags: fc.boolean(),
    originalCount: fc.integer({ min: 0, max: 3 }),
  })
  .map(
    ({ versionId, order, isDeleteMarker, withTags, originalCount }): VersionRecord => ({
      ...{ versionId: versionId as VersionId, order, isDeleteMarker, sizeBytes: 2 ** 40, modifiedAtMs: 7 },
      ...{ etag: isDeleteMarker ? '' : 'ab'.repeat(16), owner: '000000000001' as AccountId },
      ...{ originals: originalsOf(originalCount), manifest: EMPTY_MANIFEST },
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

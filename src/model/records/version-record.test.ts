// The stored form of versions as renames take it: order and id without the rest, and another order in its place.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { packPlain } from '../../lib/record-codec.ts';
import type { AccountId, VersionId } from '../names.ts';
import { packOriginals, unpackOriginals } from '../originals.ts';
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

test('records that were written before originals were packed are read as they were meant', () => {
  const rest = { manifest: EMPTY_MANIFEST };
  const head = encodeVersion({
    ...{
      versionId: 'null' as VersionId,
      order: 1,
      isDeleteMarker: false,
      sizeBytes: 3,
      modifiedAtMs: 7,
      ...rest,
    },
    ...{ etag: 'ab'.repeat(16), owner: '000000000001' as AccountId, originals: originalsOf(0) },
  }).subarray(0, 45);
  for (const originals of [[], [{ sizeBytes: 3, md5: 'ab'.repeat(16) }]]) {
    const old = Buffer.concat([head, packPlain({ versionId: 'null', originals, ...rest })]);
    expect(unpackOriginals(decodeVersion(old).originals)).toEqual(originals);
    expect(decodeVersion(encodeVersion(decodeVersion(old)))).toEqual(decodeVersion(old));
  }
});

// The stored form of versions: what is written is read, as listings and renames take it and as a whole, and what was
// written in the first form, too.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { packPlain } from '../../base/record-codec.ts';
import { ACL_GROUPS, ACL_PERMISSIONS } from '../acl.ts';
import { LIMITS } from '../limits.ts';
import type { AccountId, BlobId, LinkId, VersionId } from '../names.ts';
import { joinOriginals, NO_ORIGINALS, packOriginals, unpackOriginals } from '../originals.ts';
import type { VersionProtection } from '../protection.ts';
import {
  type BlobUse,
  EMPTY_MANIFEST,
  type Manifest,
  type ManifestBody,
  type VersionRecord,
} from '../version.ts';
import {
  decodeVersion,
  decodeVersionSummary,
  encodeVersion,
  storedHasAcl,
  storedVersionId,
  versionOrder,
  withOrder,
} from './version-record.ts';

const HEAD_BYTES = 45;

const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((some) => Buffer.from(some));
const hex = (digits: number) =>
  fc
    .uint8Array({ minLength: digits / 2, maxLength: digits / 2 })
    .map((some) => Buffer.from(some).toString('hex'));
const size = fc.integer({ min: 0, max: 2 ** 48 - 1 });

const blobId = hex(32).map((id) => id as BlobId);
const anyUse = {
  blobId,
  linkId: hex(32).map((id) => id as LinkId),
  sizeBytes: size,
  chunkSizeBytes: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  wrappedDataKey: bytes(100),
};
const grown = fc.record({ pieceCount: fc.integer({ min: 1, max: 65_535 }), lastPieceId: blobId });
const use: fc.Arbitrary<BlobUse> = fc.oneof(
  fc.record({ ...anyUse, storage: fc.constantFrom('inline' as const, 'chunks' as const) }),
  fc.record({ ...anyUse, storage: fc.constant('pieces' as const), grown }),
);
const body: fc.Arbitrary<ManifestBody> = fc.record({
  uses: fc.array(use, { maxLength: 5 }),
  segments: fc.array(
    fc.record({ use: fc.integer({ min: 0, max: 65_535 }), offsetBytes: size, sizeBytes: size }),
    { maxLength: 5 },
  ),
});
const part = fc.record(
  { partNumber: fc.integer({ min: 1, max: 10_000 }), sizeBytes: fc.nat(), checksum: fc.base64String() },
  { requiredKeys: ['partNumber', 'sizeBytes'] },
);
const manifest: fc.Arbitrary<Manifest> = fc.oneof(
  fc
    .tuple(body, fc.array(part, { maxLength: 3 }))
    .map(([its, parts]) => ({ kind: 'direct' as const, ...its, parts })),
  fc.tuple(hex(32), hex(32), fc.option(body)).map(([manifestId, linkId, tail]) => ({
    kind: 'paged' as const,
    manifestId: manifestId as BlobId,
    linkId: linkId as LinkId,
    partCount: 2,
    segmentCount: 3,
    pages: [{ startBytes: 0, partStart: 0 }],
    ...(tail && { tail: { ...tail, startBytes: 7 } }),
  })),
);
const original = fc.record({ sizeBytes: fc.integer({ min: 0, max: 5 * 2 ** 40 }), md5: hex(32) });

const protection: fc.Arbitrary<VersionProtection> = fc
  .record({
    mode: fc.constantFrom('GOVERNANCE' as const, 'COMPLIANCE' as const, undefined),
    untilMs: size,
    hold: fc.constantFrom({ legalHold: true as const }, { hadLegalHold: true as const }, {}),
    compliance: fc.option(
      fc.record(
        {
          retainUntilMs: size,
          conditionalHold: fc.constant(true as const),
          holdReleasedAtMs: size,
          legalHold: fc.constant(true as const),
        },
        { requiredKeys: [] },
      ),
    ),
  })
  .map(({ mode, untilMs, hold, compliance }) => ({
    ...(mode && { retention: { mode, untilMs } }),
    ...hold,
    ...(compliance && Object.keys(compliance).length > 0 && { compliance }),
  }));

const record = fc
  .record({
    versionId: fc.oneof(fc.constant('null'), hex(32)).map((id) => id as VersionId),
    order: size,
    isDeleteMarker: fc.boolean(),
    sizeBytes: size,
    etag: fc.tuple(hex(32), fc.integer({ min: 0, max: 10_000 })),
    originals: fc.oneof(
      fc.array(original, { maxLength: 3 }).map((some) => packOriginals(...some)),
      fc
        .array(original, { minLength: LIMITS.composeOriginalsMax + 1, maxLength: 40 })
        .map((some) => joinOriginals(NO_ORIGINALS, packOriginals(...some))),
    ),
    manifest,
    kek: fc.option(
      fc.record({
        by: fc.constantFrom('master' as const, 'customer' as const),
        keyId: hex(80),
        wrapped: bytes(80),
      }),
    ),
    sealedHeaders: fc.option(bytes(300)),
    tags: fc.option(
      fc.array(fc.record({ key: fc.string(), value: fc.string() }), { minLength: 1, maxLength: 2 }),
    ),
    checksum: fc.option(
      fc.record({
        algorithm: fc.constantFrom('CRC32' as const, 'SHA256' as const),
        type: fc.constantFrom('COMPOSITE' as const, 'FULL_OBJECT' as const),
        value: fc.base64String({ maxLength: 50 }),
      }),
    ),
    appendCount: fc.option(fc.integer({ min: 0, max: 1023 })),
    chargedBytes: fc.option(fc.integer({ min: 0, max: 2 ** 45 }), { freq: 2 }),
    acl: fc.option(
      fc.array(
        fc.record({
          grantee: fc.constantFrom(...ACL_GROUPS, '000000000001' as AccountId, '999999999999' as AccountId),
          permission: fc.constantFrom(...ACL_PERMISSIONS),
        }),
        { maxLength: 3 },
      ),
      { freq: 2 },
    ),
    protection: fc.option(protection, { freq: 2 }),
  })
  .map((fields): VersionRecord => {
    const {
      etag: fullETag,
      kek,
      sealedHeaders,
      tags,
      checksum,
      appendCount,
      chargedBytes,
      acl,
      protection: its,
      ...rest
    } = fields;
    const [md5, parts] = fullETag;
    const { isDeleteMarker } = rest;
    return {
      ...(its && { protection: its }),
      ...rest,
      owner: '000000000001' as AccountId,
      modifiedAtMs: 7,
      etag: isDeleteMarker ? '' : parts === 0 ? md5 : `${md5}-${parts}`,
      ...(kek && { kek }),
      ...(sealedHeaders && { sealedHeaders }),
      ...(tags && { tags }),
      ...(checksum && { checksum }),
      ...(appendCount !== null && { appendCount }),
      ...(chargedBytes !== null && { chargedBytes }),
      ...(acl && { acl }),
    };
  });

test('a written version is read back', () => {
  fc.assert(
    fc.property(record, (version) => {
      expect(decodeVersion(encodeVersion(version))).toEqual(version);
    }),
  );
});

test('a record that ends too early or too late is refused', () => {
  fc.assert(
    fc.property(record, fc.nat(), (version, at) => {
      const whole = encodeVersion(version);
      const cut = HEAD_BYTES + (at % (whole.length - HEAD_BYTES));
      expect(() => decodeVersion(whole.subarray(0, cut))).toThrow();
      expect(() => decodeVersion(Buffer.concat([whole, Uint8Array.of(0)]))).toThrow();
    }),
  );
});

test('order and id are read alone', () => {
  fc.assert(
    fc.property(record, (version) => {
      const stored = encodeVersion(version);
      expect([storedVersionId(stored), versionOrder(stored)]).toEqual([version.versionId, version.order]);
    }),
  );
});

test('a change of the order keeps everything else, and the given bytes', () => {
  fc.assert(
    fc.property(record, size, (version, order) => {
      const stored = encodeVersion(version);
      expect(decodeVersion(withOrder(stored, order))).toEqual({ ...version, order });
      expect(decodeVersion(stored)).toEqual(version);
    }),
  );
});

test('versions of the first form are read correctly', () => {
  fc.assert(
    fc.property(record, fc.boolean(), (version, isPacked) => {
      const {
        versionId,
        originals,
        manifest: its,
        kek,
        sealedHeaders,
        tags,
        appendCount,
        checksum,
      } = version;
      const some = unpackOriginals(originals);
      // Whoever wrote it had each of them, and knew of nothing that protects or shares.
      fc.pre(some !== undefined && version.protection === undefined && version.acl === undefined);
      fc.pre(version.chargedBytes === undefined);
      const packed = isPacked || some.length > 1;
      const tail = {
        versionId,
        originals: packed ? [] : some,
        manifest: its,
        ...(packed && { packedOriginals: originals }),
        ...(kek && { kek }),
        ...(sealedHeaders && { sealedHeaders }),
        ...(tags && { tags }),
        ...(appendCount !== undefined && { appendCount }),
        ...(checksum && { checksumValue: checksum.value }),
      };
      const head = encodeVersion(version).subarray(0, HEAD_BYTES);
      const stored = Buffer.concat([Uint8Array.of(1), head.subarray(1), packPlain(tail)]);
      expect(decodeVersion(stored)).toEqual(version);
      expect(storedVersionId(stored)).toBe(versionId);
      expect(decodeVersionSummary(stored)).toEqual(decodeVersionSummary(encodeVersion(version)));
      expect(encodeVersion(decodeVersion(stored))).toEqual(encodeVersion(version));
    }),
  );
});

const marker: VersionRecord = {
  versionId: 'null' as VersionId,
  order: 1,
  isDeleteMarker: true,
  sizeBytes: 0,
  modifiedAtMs: 7,
  etag: '',
  owner: '000000000001' as AccountId,
  originals: NO_ORIGINALS,
  manifest: EMPTY_MANIFEST,
};

test('an unknown form is refused', () => {
  for (const read of [decodeVersion, decodeVersionSummary, storedVersionId])
    expect(() => read(Buffer.alloc(100, 5))).toThrow('unknown format 5');
});

test.each([3, 8, 128])(
  'a protection with the flags %i behind those of before is refused, and not read as none',
  (more) => {
    const stored = Buffer.from(encodeVersion({ ...marker, protection: { hadLegalHold: true } }));
    expect(decodeVersionSummary(stored).protection).toEqual({ hadLegalHold: true });
    stored[HEAD_BYTES + 1] = more;
    for (const read of [decodeVersion, decodeVersionSummary, storedVersionId])
      expect(() => read(stored)).toThrow(`unknown protection 3 ${more}`);
  },
);

test('flags of protection stand where they stood before there was a second byte of them', () => {
  const flagsOf = (its: VersionProtection) => encodeVersion({ ...marker, protection: its })[HEAD_BYTES];
  const untilMs = 1;
  expect(flagsOf({ retention: { mode: 'GOVERNANCE', untilMs } })).toBe(1);
  expect(flagsOf({ retention: { mode: 'COMPLIANCE', untilMs }, legalHold: true })).toBe(6);
});

test('a version without protection is stored as before', () => {
  expect(encodeVersion(marker)[0]).toBe(2);
  expect(encodeVersion({ ...marker, protection: {} })[0]).toBe(4);
});

test('whether a version has an access control list is known without decoding it, unless it may have one', () => {
  fc.assert(
    fc.property(record, (version) => {
      const stored = encodeVersion(version);
      expect(storedHasAcl(stored)).toBe(version.acl !== undefined);
      if (stored[0] === 2) expect(storedHasAcl(stored.subarray(0, HEAD_BYTES))).toBe(false);
    }),
  );
});

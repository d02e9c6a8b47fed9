// Where the keys that a master key wraps are written down, as the rotation names them: a section, then the row. Versions
// are named by their position, because they move between regions while a rotation goes by; where one lies is looked up.
import { assert } from '../../base/assert.ts';
import { concatBytes, equalBytes, toHex } from '../../base/bytes/bytes.ts';
import type { LockRequest, RowAddress } from '../../ports/state-machine.ts';
import { identityCodec } from '../../types/records/identity-records.ts';
import { accessKeyCodec, uploadCodec } from '../../types/records/rows.ts';
import { decodeVersion, encodeVersion } from '../../types/records/version-record.ts';
import type { WrappedKek } from '../../types/version.ts';
import { exclusive, LOCK, shared } from '../schema/define-command.ts';
import { currentRow, readVersionPosition, TABLES, versionRow } from '../schema/keyspace.ts';

/** In the order of a scan: Complete carries a key from an upload to a version, so that it is met again, not missed. */
export const SECTION = { uploads: 1, versions: 2, accessKeys: 3, identities: 4 } as const;
export type Section = (typeof SECTION)[keyof typeof SECTION];

export function wrappedKeyName(section: Section, rest: Uint8Array): Uint8Array {
  return concatBytes(Uint8Array.of(section), rest);
}

function readName(name: Uint8Array): { section: Section; rest: Uint8Array } {
  const section = name[0] as Section;
  assert(Object.values(SECTION).includes(section), 'a wrapped key is in one of the sections');
  return { section, rest: name.subarray(1) };
}

/** What holds the row still; a version also against what empties its bucket, which asks for no key (R7). */
export function locksOf(name: Uint8Array): LockRequest[] {
  const { section, rest } = readName(name);
  if (section === SECTION.accessKeys || section === SECTION.identities) return [exclusive(LOCK.accounts)];
  if (section === SECTION.uploads) return [exclusive(LOCK.upload(toHex(rest.subarray(-22))))];
  const { bucketId, key } = readVersionPosition(rest);
  return [shared(LOCK.bucket(bucketId)), exclusive(LOCK.key(bucketId, key))];
}

/** Rows that may hold it: one of them does, or it is gone. */
export function addressesOf(name: Uint8Array): RowAddress[] {
  const { section, rest } = readName(name);
  if (section === SECTION.uploads) return [{ table: TABLES.uploads, key: rest }];
  if (section === SECTION.accessKeys) return [{ table: TABLES.accessKeys, key: rest }];
  if (section === SECTION.identities) return [{ table: TABLES.identities, key: rest }];
  const { bucketId, key, order } = readVersionPosition(rest);
  return [currentRow(bucketId, key), versionRow(bucketId, key, order)];
}

/** The master-wrapped key in a row; undefined where a customer's key wraps it, or nothing is wrapped. */
export function wrappedIn(section: Section, row: Uint8Array): WrappedKek | undefined {
  const kek = kekIn(section, row);
  return kek?.by === 'master' ? kek : undefined;
}

function kekIn(section: Section, row: Uint8Array): WrappedKek | undefined {
  if (section === SECTION.uploads) return uploadCodec.decode(row).kek;
  if (section === SECTION.accessKeys) return accessKeyCodec.decode(row).sealedSecret;
  if (section === SECTION.identities) {
    const record = identityCodec.decode(row);
    return record.kind === 'mfa-device' ? record.sealedSeed : undefined;
  }
  return decodeVersion(row).kek;
}

/** The row with `replacement` for `expected`; undefined where it is another row, or another key is in it by now. */
export function rewrapRow(
  name: Uint8Array,
  row: Uint8Array,
  keys: { expected: WrappedKek; replacement: WrappedKek },
): Uint8Array | undefined {
  const { section } = readName(name);
  const found = wrappedIn(section, row);
  if (found === undefined || found.keyId !== keys.expected.keyId) return undefined;
  if (!equalBytes(found.wrapped, keys.expected.wrapped)) return undefined;
  if (section === SECTION.uploads) {
    return uploadCodec.encode({ ...uploadCodec.decode(row), kek: keys.replacement });
  }
  if (section === SECTION.accessKeys) {
    return accessKeyCodec.encode({ ...accessKeyCodec.decode(row), sealedSecret: keys.replacement });
  }
  if (section === SECTION.identities) {
    const record = identityCodec.decode(row);
    assert(record.kind === 'mfa-device', 'of identities, MFA devices alone hold a wrapped key');
    return identityCodec.encode({ ...record, sealedSeed: keys.replacement });
  }
  return encodeVersion({ ...decodeVersion(row), kek: keys.replacement });
}

// Every row of a shard on one page: its table, its key, what it holds. The engine puts shard and table before the key.
// Ids are hex in the model and raw bytes here; times are 6 bytes, big-endian; where a key is followed by something it
// is escaped (0x00 as 0x00 0xff, ended by 0x00 0x01), which keeps the order of keys.
import { assert } from '../../base/assert.ts';
import {
  afterPrefix,
  compareBytes,
  concatBytes,
  fromHex,
  fromUtf8,
  toHex,
  utf8,
} from '../../base/bytes/bytes.ts';
import type { RangeAddress, RowAddress, RowPut, TableRef } from '../../ports/state-machine.ts';
import { CONFIG_KIND_IDS, type ConfigKind } from '../../types/bucket-config.ts';
import type {
  AccountId,
  BlobId,
  BucketId,
  BucketName,
  LinkId,
  ObjectKey,
  OutboxId,
  UploadId,
  VersionId,
} from '../../types/names.ts';
import {
  END_MARK,
  escapeBytes,
  escapedKey,
  invertedOrder,
  ORDER_MAX,
  plainKey,
  readU16,
  readU48,
  textKey,
  u16,
  u48,
  unescapeKey,
} from './key-parts.ts';

export const TABLES = {
  /** region | bucket | ... -> VersionRecord. One table, so that one cursor sees all versions at one moment (L3). */
  objects: rows(1),
  /** bucket | key, escaped | version id -> order: of the versions that are not their key's latest. */
  versionIds: rows(2),
  /** bucket -> BucketRecord. Stays after deletion: a deleted id is NoSuchBucket for ever (R42). */
  buckets: rows(3),
  /** bucket: deleted, with uploads still to end. */
  deletedBuckets: rows(4),
  /** bucket | kind 1 -> BucketConfigRecord */
  bucketConfigs: rows(5),
  /** bucket -> LifecycleRecord, of buckets in which anything may go by itself */
  lifecycles: rows(6),
  /** due at | bucket */
  lifecycleTimes: rows(7),

  /** bucket | key, escaped | upload -> UploadRecord */
  uploads: rows(10),
  /** upload -> bucket | key. In order of initiation, upload ids being so. */
  uploadTimes: rows(11),
  /** upload | part number -> PartRecord */
  parts: rows(12),
  /** upload -> CompletedUploadRecord */
  completedUploads: rows(13),
  /** completion time | upload */
  completedTimes: rows(14),
  /** end time | upload: parts are left, whose links are still to end */
  endedUploads: rows(15),

  /** blob -> BlobRecord, in its home */
  blobs: rows(20),
  /** blob | link -> LinkRecord: in its home, or under the blob's row in `foreign` */
  links: rows(21),
  /** blob -> ForeignRecord */
  foreign: rows(22),
  /** manifest | page -> ManifestPage */
  manifestPages: rows(23),
  /** end time | blob | link: the blob may be without links now */
  endedLinks: rows(24),
  /** marked for deletion at | blob */
  condemned: rows(25),
  /** link (time first) | blob -> claiming shard */
  pendingClaims: rows(26),
  /** outbox id (time first) -> OutboxRecord */
  outbox: rows(27),
  /** (no key) -> shard time of the last tick */
  ticks: rows(28),
  /** (no key) -> HistoryRecord, where it did not begin with nothing (R23) */
  history: rows(30),
  /** home shard -> HomeHistoryRecord */
  homeHistories: rows(31),
  /** blob -> RepairEntryRecord */
  debts: rows(32),
  /** copies | noted at | blob: fewest copies first, then the oldest */
  debtQueue: rows(33),
  /** name of a scan -> ScanRecord; one byte, 0: of the audit -> AuditRecord */
  scans: rows(34),
  /** job (time first) -> JobRecord; `openJobs`, by kind: it is under way, and whose it is; `endedJobs`, by time (jobs.ts) */
  jobs: rows(35),
  /** bucket | token -> TokenRecord */
  tokens: rows(36),
  /** kept at | bucket | token */
  tokenTimes: rows(37),
  openJobs: rows(38),
  endedJobs: rows(49),
  /** job | number, from 0, 2 bytes -> MoveErrorsRecord */
  jobErrors: rows(56),
  /** consumer | number, from 0 -> EventRecord: without gaps, the last LIMITS.eventsKeptMax that are not taken yet */
  events: rows(50),
  /** consumer -> EventCursorRecord */
  eventCursors: rows(51),
  /** blob -> sealed bytes of an inline blob, in a column of its own so that listings never pass over them */
  bodies: { id: 29, column: 'bodies' },
  /** blob | index -> PieceRecord, of a blob of pieces */
  pieces: { id: 39, column: 'bodies' },

  // The system shard (R41).
  /** name -> NameRecord */
  names: rows(40),
  /** account -> AccountRecord */
  accounts: rows(41),
  /** name -> account */
  accountNames: rows(42),
  /** e-mail, lower case -> account */
  accountEmails: rows(43),
  /** canonical id -> account */
  canonicalIds: rows(44),
  /** access key -> AccessKeyRecord */
  accessKeys: rows(45),
  /** account | access key */
  accountAccessKeys: rows(46),
  /** account | bucket name -> NameRecord: of names that readers see */
  accountBuckets: rows(47),
  /** number, from 1 -> IdentityChangeRecord: the last LIMITS.identityChangesKept, without gaps */
  identityChanges: rows(48),
  /** account | key of an identity (identity-records.ts) -> IdentityRecord */
  identities: rows(52),
  /** account -> number of changes of its identities, 6 bytes */
  identityRevisions: rows(53),
  /** alias -> account */
  accountAliases: rows(54),
  /** account -> AccountQuotaRecord */
  accountQuotas: rows(58),

  /** account 6 bytes | bucket -> UsageStateRecord, in the bucket's home: of buckets that are metered */
  usageStates: rows(80),
  /** account | day 6 bytes | bucket -> UsageRecord */
  usageRecords: rows(81),
  /** one byte, 0 -> the last day that is closed for all buckets of the shard, 6 bytes */
  usageClosed: rows(82),

  /** access key -> KeyUseRecord */
  keyUses: rows(55),
  /** id of a partner, partner user, sub-account or member -> TenancyRow */
  tenancy: rows(60),
  /** kind | what is one record's alone (a login) -> id */
  tenancyWords: rows(61),
  /** number of the last change of a record -> its id */
  tenancyChanges: rows(62),
  /** account -> id of the sub-account that it is */
  accountCustomers: rows(63),
  /** (no key) -> TenancySequenceRecord */
  tenancySequence: rows(64),
  /** account -> AccountRemovalRecord: of accounts that are deleted and have left something */
  accountRemovals: rows(65),
  /** number, from 1 -> MailRecord: the last MAILS_MAX, without gaps */
  mails: rows(66),
  /** (no key) -> MasterKeysRecord, once the master keys of a cluster were changed */
  masterKeys: rows(67),
  /** first day -> PriceListRecord */
  priceLists: rows(70),
  /** id -> InvoiceRecord */
  invoices: rows(71),
  /** month | sub-account -> id of its invoice */
  customerInvoices: rows(72),
  /** month | control account -> number that its invoices share */
  controlInvoices: rows(73),
  /** (no key) -> BillingRecord */
  billing: rows(74),
} as const satisfies Record<string, TableRef>;

function rows(id: number): TableRef {
  return { id, column: 'rows' };
}

/** What a row holds whose key says all. */
export const PRESENT = Uint8Array.of(1);

// ---- ids that clients choose ----

const UPLOAD_ID = /^[0-9a-f]{44}$/;
const UPLOAD_ID_BYTES = 22;

/** Upload ids come from clients: one that was never minted becomes a key that nothing has. */
function uploadIdBytes(id: UploadId): Uint8Array {
  return UPLOAD_ID.test(id) ? fromHex(id) : new Uint8Array(UPLOAD_ID_BYTES).fill(0xff);
}

// ---- ranges ----

/** All rows of `table` whose keys begin with `prefix`. */
export function prefixRange(options: { table: TableRef; prefix: Uint8Array; limit: number }): RangeAddress {
  const { table, prefix, limit } = options;
  const lt = afterPrefix(prefix);
  assert(lt !== undefined, 'a prefix has something behind it');
  return { table, gte: prefix, lt, limit };
}

/** Rows of a queue from one time (inclusive), and behind one row, to another time (exclusive). */
export function timeRange(options: {
  table: TableRef;
  fromMs?: number | undefined;
  after?: RowAddress | undefined;
  toMs: number;
  limit: number;
}): RangeAddress {
  const { table, fromMs = 0, after, toMs, limit } = options;
  const lt = u48(toMs);
  const gte = after === undefined ? u48(fromMs) : concatBytes(after.key, Uint8Array.of(0));
  return { table, gte: compareBytes(gte, lt) < 0 ? gte : lt, lt, limit };
}

// ---- versions ----

/** Of the table `objects`; at most one of the first two has a row for a key. */
export const REGION = {
  /** bucket | key: the key's latest version, where that is an object. Listings read only these. */
  current: 1,
  /** bucket | key: the key's latest version, where that is a delete marker. */
  marker: 2,
  /** bucket | key, escaped | inverted order: all others, newest first within a key. */
  version: 3,
} as const;
export type Region = (typeof REGION)[keyof typeof REGION];

const BUCKET_ID_BYTES = 8;
/** Where the key begins in a row key of the table `objects`. */
export const OBJECT_KEY_AT = 1 + BUCKET_ID_BYTES;

/** `rest` is what follows region and bucket. */
export function objectsKey(region: Region, bucketId: BucketId, rest: Uint8Array): Uint8Array {
  return concatBytes(Uint8Array.of(region), fromHex(bucketId), rest);
}

export function currentRow(bucketId: BucketId, key: ObjectKey): RowAddress {
  return { table: TABLES.objects, key: plainKey(REGION.current, bucketId, key) };
}

export function markerRow(bucketId: BucketId, key: ObjectKey): RowAddress {
  return { table: TABLES.objects, key: plainKey(REGION.marker, bucketId, key) };
}

export function versionRow(bucketId: BucketId, key: ObjectKey, order: number): RowAddress {
  const rest = concatBytes(escapedKey(key), invertedOrder(order));
  return { table: TABLES.objects, key: objectsKey(REGION.version, bucketId, rest) };
}

/**
 * bucket | key, escaped | inverted order: orders all versions of a shard by key, then newest first, wherever they are.
 * For a row of `version` it is what follows the region; for the others it is made of the row's key and its order.
 */
export function versionPosition(rowKey: Uint8Array, order: number): Uint8Array {
  const bucketId = rowKey.subarray(1, OBJECT_KEY_AT);
  const key = escapeBytes(rowKey.subarray(OBJECT_KEY_AT));
  return concatBytes(bucketId, key, END_MARK, invertedOrder(order));
}

export function readVersionPosition(bytes: Uint8Array): {
  bucketId: BucketId;
  key: ObjectKey;
  order: number;
} {
  const { key, end } = unescapeKey(bytes, BUCKET_ID_BYTES);
  const bucketId = toHex(bytes.subarray(0, BUCKET_ID_BYTES)) as BucketId;
  return { bucketId, key, order: ORDER_MAX - readU48(bytes, end) };
}

/** The newest versions of a key below its latest. */
export function versionRange(options: { bucketId: BucketId; key: ObjectKey; limit: number }): RangeAddress {
  const prefix = objectsKey(REGION.version, options.bucketId, escapedKey(options.key));
  return prefixRange({ table: TABLES.objects, prefix, limit: options.limit });
}

export function regionRange(options: { region: Region; bucketId: BucketId; limit: number }): RangeAddress {
  const prefix = objectsKey(options.region, options.bucketId, new Uint8Array(0));
  return prefixRange({ table: TABLES.objects, prefix, limit: options.limit });
}

export function versionIdRow(bucketId: BucketId, key: ObjectKey, versionId: VersionId): RowAddress {
  const parts = [fromHex(bucketId), escapedKey(key), textKey(versionId)];
  return { table: TABLES.versionIds, key: concatBytes(...parts) };
}

export function readVersionIdKey(bytes: Uint8Array): {
  bucketId: BucketId;
  key: ObjectKey;
  versionId: VersionId;
} {
  const { key, end } = unescapeKey(bytes, BUCKET_ID_BYTES);
  const bucketId = toHex(bytes.subarray(0, BUCKET_ID_BYTES)) as BucketId;
  return { bucketId, key, versionId: fromUtf8(bytes.subarray(end)) as VersionId };
}

// ---- buckets ----

export function bucketRow(bucketId: BucketId): RowAddress {
  return { table: TABLES.buckets, key: fromHex(bucketId) };
}

export function deletedBucketRow(bucketId: BucketId): RowAddress {
  return { table: TABLES.deletedBuckets, key: fromHex(bucketId) };
}

export function bucketConfigRow(bucketId: BucketId, kind: ConfigKind): RowAddress {
  const key = concatBytes(fromHex(bucketId), Uint8Array.of(CONFIG_KIND_IDS[kind]));
  return { table: TABLES.bucketConfigs, key };
}

export function lifecycleRow(bucketId: BucketId): RowAddress {
  return { table: TABLES.lifecycles, key: fromHex(bucketId) };
}

export function lifecycleTimeRow(dueAtMs: number, bucketId: BucketId): RowAddress {
  return { table: TABLES.lifecycleTimes, key: concatBytes(u48(dueAtMs), fromHex(bucketId)) };
}

// ---- uploads ----

export function uploadRow(bucketId: BucketId, key: ObjectKey, uploadId: UploadId): RowAddress {
  const parts = [fromHex(bucketId), escapedKey(key), uploadIdBytes(uploadId)];
  return { table: TABLES.uploads, key: concatBytes(...parts) };
}

export function bucketUploads(bucketId: BucketId, limit: number): RangeAddress {
  return prefixRange({ table: TABLES.uploads, prefix: fromHex(bucketId), limit });
}

/** The least key of `uploads` behind one upload of a key, or behind all of them where the id is no upload's. */
export function uploadsAfter(bucketId: BucketId, key: Uint8Array, uploadId: string | undefined): Uint8Array {
  const ofKey = concatBytes(fromHex(bucketId), escapeBytes(key), END_MARK);
  if (uploadId === undefined || !UPLOAD_ID.test(uploadId)) return afterPrefix(ofKey) ?? ofKey;
  return concatBytes(ofKey, fromHex(uploadId), Uint8Array.of(0));
}

export function uploadTimeRow(uploadId: UploadId): RowAddress {
  return { table: TABLES.uploadTimes, key: uploadIdBytes(uploadId) };
}

export function uploadTimeValue(bucketId: BucketId, key: ObjectKey): Uint8Array {
  return concatBytes(fromHex(bucketId), utf8(key));
}

/** What {@link uploadTimeValue} has written. */
export function readUploadTime(value: Uint8Array): { bucketId: BucketId; key: ObjectKey } {
  const bucketId = toHex(value.subarray(0, BUCKET_ID_BYTES)) as BucketId;
  return { bucketId, key: fromUtf8(value.subarray(BUCKET_ID_BYTES)) as ObjectKey };
}

export function partRow(uploadId: UploadId, partNumber: number): RowAddress {
  return { table: TABLES.parts, key: concatBytes(uploadIdBytes(uploadId), u16(partNumber)) };
}

/** Parts behind number `after`, by number. */
export function partRange(options: {
  uploadId: UploadId;
  after: number;
  limit: number;
  bytesMax?: number;
}): RangeAddress {
  const { limit, bytesMax } = options;
  const id = uploadIdBytes(options.uploadId);
  // Markers come from clients and may be beyond every part.
  const gte = concatBytes(id, u16(Math.min(options.after + 1, 0xffff)));
  const range = { table: TABLES.parts, gte, lt: concatBytes(id, u16(0xffff)), limit };
  return bytesMax === undefined ? range : { ...range, bytesMax };
}

/** Of the row of a part. */
export function uploadIdOf(rowKey: Uint8Array): UploadId {
  return toHex(rowKey.subarray(0, UPLOAD_ID_BYTES)) as UploadId;
}

export function partNumberOf(rowKey: Uint8Array): number {
  return readU16(rowKey, UPLOAD_ID_BYTES);
}

export function endedUploadRow(endedAtMs: number, uploadId: UploadId): RowAddress {
  return { table: TABLES.endedUploads, key: concatBytes(u48(endedAtMs), uploadIdBytes(uploadId)) };
}

export function completedUploadRow(uploadId: UploadId): RowAddress {
  return { table: TABLES.completedUploads, key: uploadIdBytes(uploadId) };
}

export function completedTimeRow(completedAtMs: number, uploadId: UploadId): RowAddress {
  return { table: TABLES.completedTimes, key: concatBytes(u48(completedAtMs), uploadIdBytes(uploadId)) };
}

// ---- blobs and links ----

export function blobRow(blobId: BlobId): RowAddress {
  return { table: TABLES.blobs, key: fromHex(blobId) };
}

export function bodyRow(blobId: BlobId): RowAddress {
  return { table: TABLES.bodies, key: fromHex(blobId) };
}

export function foreignRow(blobId: BlobId): RowAddress {
  return { table: TABLES.foreign, key: fromHex(blobId) };
}

export function linkRow(blobId: BlobId, linkId: LinkId): RowAddress {
  return { table: TABLES.links, key: concatBytes(fromHex(blobId), fromHex(linkId)) };
}

export function linkRange(blobId: BlobId, limit: number): RangeAddress {
  return prefixRange({ table: TABLES.links, prefix: fromHex(blobId), limit });
}

export function manifestPageRow(manifestId: BlobId, page: number): RowAddress {
  return { table: TABLES.manifestPages, key: concatBytes(fromHex(manifestId), u16(page)) };
}

/** Pages from number `from` on. */
export function manifestPageRange(manifestId: BlobId, from: number, limit: number): RangeAddress {
  const id = fromHex(manifestId);
  const lt = concatBytes(id, u16(0xffff));
  return { table: TABLES.manifestPages, gte: concatBytes(id, u16(from)), lt, limit };
}

export function endedLinkRow(endedAtMs: number, blobId: BlobId, linkId: LinkId): RowAddress {
  return endedRowOf(linkRow(blobId, linkId), endedAtMs);
}

/** The same, of the row of a link. */
export function endedRowOf({ key }: Pick<RowAddress, 'key'>, endedAtMs: number): RowAddress {
  return { table: TABLES.endedLinks, key: concatBytes(u48(endedAtMs), key) };
}

export function deletionRow(condemnedAtMs: number, blobId: BlobId): RowAddress {
  return { table: TABLES.condemned, key: concatBytes(u48(condemnedAtMs), fromHex(blobId)) };
}

export function pendingClaimRow(blobId: BlobId, linkId: LinkId): RowAddress {
  return { table: TABLES.pendingClaims, key: concatBytes(fromHex(linkId), fromHex(blobId)) };
}

export function outboxRow(id: OutboxId): RowAddress {
  return { table: TABLES.outbox, key: fromHex(id) };
}

export const TICK_ROW: RowAddress = { table: TABLES.ticks, key: Uint8Array.of(0) };
export const HISTORY_ROW: RowAddress = { table: TABLES.history, key: Uint8Array.of(0) };

// ---- the system shard ----

export function nameRow(name: BucketName): RowAddress {
  return { table: TABLES.names, key: textKey(name) };
}

export function accountRow(accountId: AccountId): RowAddress {
  return { table: TABLES.accounts, key: u48(Number(accountId)) };
}

export function mailRow(id: number): RowAddress {
  return { table: TABLES.mails, key: u48(id) };
}

export function accountRemovalRow(accountId: AccountId): RowAddress {
  return { table: TABLES.accountRemovals, key: u48(Number(accountId)) };
}

export function accountQuotaRow(accountId: AccountId): RowAddress {
  return { table: TABLES.accountQuotas, key: u48(Number(accountId)) };
}

export function accountNameRow(name: string): RowAddress {
  return { table: TABLES.accountNames, key: textKey(name) };
}

export function accountEmailRow(email: string): RowAddress {
  return { table: TABLES.accountEmails, key: textKey(email.toLowerCase()) };
}

export function canonicalIdRow(canonicalId: string): RowAddress {
  return { table: TABLES.canonicalIds, key: textKey(canonicalId) };
}

export function accessKeyRow(accessKey: string): RowAddress {
  return { table: TABLES.accessKeys, key: textKey(accessKey) };
}

/** `accessKey` '' gives what all of the account's rows begin with. */
export function accountAccessKeyRow(accountId: AccountId, accessKey: string): RowAddress {
  return { table: TABLES.accountAccessKeys, key: concatBytes(u48(Number(accountId)), textKey(accessKey)) };
}

/** `key` may be a prefix of keys. */
export function identityRow(accountId: AccountId, key: string): RowAddress {
  return { table: TABLES.identities, key: concatBytes(u48(Number(accountId)), textKey(key)) };
}

export function identityRevisionRow(accountId: AccountId): RowAddress {
  return { table: TABLES.identityRevisions, key: u48(Number(accountId)) };
}

export function accountAliasRow(alias: string): RowAddress {
  return { table: TABLES.accountAliases, key: textKey(alias) };
}

export function keyUseRow(accessKey: string): RowAddress {
  return { table: TABLES.keyUses, key: textKey(accessKey) };
}

export function tenancyRow(id: number): RowAddress {
  return { table: TABLES.tenancy, key: u48(id) };
}

export function tenancyWordRow(word: string): RowAddress {
  return { table: TABLES.tenancyWords, key: textKey(word) };
}

export function tenancyChangeRow(change: number): RowAddress {
  return { table: TABLES.tenancyChanges, key: u48(change) };
}

export function accountCustomerRow(accountId: AccountId): RowAddress {
  return { table: TABLES.accountCustomers, key: u48(Number(accountId)) };
}

export const TENANCY_SEQUENCE_ROW: RowAddress = { table: TABLES.tenancySequence, key: Uint8Array.of(0) };

export const MASTER_KEYS_ROW: RowAddress = { table: TABLES.masterKeys, key: Uint8Array.of(0) };

/** `name` may be any text: a prefix of names, or where a list goes on. */
export function accountBucketRow(accountId: AccountId, name: string): RowAddress {
  return { table: TABLES.accountBuckets, key: concatBytes(u48(Number(accountId)), textKey(name)) };
}

/** `from` as YYYY-MM-DD. */
export function priceListRow(from: string): RowAddress {
  return { table: TABLES.priceLists, key: textKey(from) };
}

export function invoiceRow(id: number): RowAddress {
  return { table: TABLES.invoices, key: u48(id) };
}

/** `month` as YYYY-MM. */
export function customerInvoiceRow(month: string, customerId: number): RowAddress {
  return { table: TABLES.customerInvoices, key: concatBytes(textKey(month), u48(customerId)) };
}

export function controlInvoiceRow(month: string, controlId: number): RowAddress {
  return { table: TABLES.controlInvoices, key: concatBytes(textKey(month), u48(controlId)) };
}

export const BILLING_ROW: RowAddress = { table: TABLES.billing, key: Uint8Array.of(0) };

// ---- writes ----

export function put(address: RowAddress, value: Uint8Array): RowPut {
  return { table: address.table, key: address.key, value };
}

export function remove(address: RowAddress): RowPut {
  return { table: address.table, key: address.key, value: null };
}

// ---- usage ----

export function usageStateRow(accountId: AccountId, bucketId: BucketId): RowAddress {
  return { table: TABLES.usageStates, key: concatBytes(u48(Number(accountId)), fromHex(bucketId)) };
}

export function usageRecordRow(of: { accountId: AccountId; bucketId: BucketId }, day: number): RowAddress {
  const parts = [u48(Number(of.accountId)), u48(day), fromHex(of.bucketId)];
  return { table: TABLES.usageRecords, key: concatBytes(...parts) };
}

export const USAGE_CLOSED_ROW: RowAddress = { table: TABLES.usageClosed, key: Uint8Array.of(0) };

// Configuration of buckets: one command changes a document of any kind, and `get-bucket` reads all of them with the
// bucket. They are keyed by bucket id, so they follow a rename, and go when the bucket is deleted. Each change counts
// `cfgVersion`: gateways that hold the bucket with its documents learn of it by that, and authorise anew (R45).
import { isDeepStrictEqual } from 'node:util';
import { assert } from '../../base/assert.ts';
import { toHex } from '../../base/bytes/bytes.ts';
import type { ConfigRefusal } from '../../ports/metadata/buckets.ts';
import type { CommandOf, OutcomeOf, QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, RowPut, View } from '../../ports/state-machine.ts';
import {
  type BucketConfigs,
  CONFIG_KIND_IDS,
  CONFIG_KINDS,
  type ConfigKind,
  type ConfigsOfBucket,
  type CreationSettings,
} from '../../types/bucket-config.ts';
import type { BucketId } from '../../types/names.ts';
import { type BucketRecord, bucketCodec, bucketConfigCodec } from '../../types/records/rows.ts';
import { isComplianceLocked, refusedCompliance } from '../../types/retention.ts';
import type { RowCheck } from '../checks/scan.ts';
import { endLifecycle, findLifecycle, restartLifecycle } from '../lifecycle/lifecycle-rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { bucketConfigRow, bucketRow, put, remove } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findBucket } from './buckets.ts';
import { decodeDocument } from './decoded-documents.ts';

const CREATION_KINDS = ['versioning', 'acl', 'objectLock'] as const satisfies (keyof CreationSettings)[];

interface Change<Document> {
  bucket: BucketRecord;
  before: Document | undefined;
  document: Document | undefined;
  nowMs: number;
}

interface ConfigRule<Document> {
  /** What is stored when `given` is put in the place of `before`. Default: what was given. */
  merge?(before: Document | undefined, given: Document): Document;
  /** Changes the bucket's own row by the document: what commands decide by without reading the document. */
  applyTo?(bucket: BucketRecord, document: Document | undefined): BucketRecord;
  /** Why it does not fit to what the bucket is; undefined: it does. */
  refusal?(change: Change<Document>): ConfigRefusal | undefined;
  /** What goes by itself in the bucket goes by it: a change is examined at once, in the same entry. */
  restartsLifecycle?: true;
  /** False: it is never taken away again. */
  mayDelete: boolean;
  /** Of a bucket that was configured before its document had a row. */
  ofOldBucket?(bucket: BucketRecord): Document | undefined;
}

const RULES: { readonly [K in ConfigKind]: ConfigRule<BucketConfigs[K]> } = {
  versioning: {
    merge: (before, given) => ({ ...before, ...given }),
    applyTo: (bucket, document) => ({ ...bucket, versioning: document?.status ?? 'unversioned' }),
    refusal: ({ bucket, document }) =>
      bucket.objectLock !== undefined && document?.status !== 'enabled' ? 'has-object-lock' : undefined,
    mayDelete: false,
    ofOldBucket({ versioning, mfaDelete }) {
      if (versioning === 'unversioned' && mfaDelete === undefined) return undefined;
      return { ...(versioning !== 'unversioned' && { status: versioning }), ...(mfaDelete && { mfaDelete }) };
    },
  },
  events: {
    applyTo({ events: _, ...bucket }, document) {
      return document === undefined ? bucket : { ...bucket, events: document.consumers };
    },
    mayDelete: true,
  },
  acl: { mayDelete: true },
  policy: { mayDelete: true },
  objectLock: {
    applyTo(bucket, document) {
      if (document === undefined) return bucket;
      const { defaultRetention } = document;
      return { ...bucket, mayProtect: true, objectLock: { ...(defaultRetention && { defaultRetention }) } };
    },
    refusal({ bucket }) {
      if (bucket.versioning !== 'enabled') return 'needs-versioning';
      if (bucket.compliance?.isEnabled) return 'has-compliance';
      return bucket.mayProtect === undefined && bucket.keyRenames !== undefined
        ? 'keys-are-moving'
        : undefined;
    },
    mayDelete: false,
  },
  compliance: {
    merge: (before, given) => ({ ...given, ...(before?.unlocks && { unlocks: before.unlocks }) }),
    applyTo(bucket, document) {
      if (document === undefined) return bucket;
      const { unlocks: _, ...compliance } = document;
      return { ...bucket, ...(compliance.isEnabled && { mayProtect: true as const }), compliance };
    },
    refusal({ bucket, before, document, nowMs }) {
      if (document === undefined) return undefined;
      if (bucket.objectLock !== undefined && document.isEnabled) return 'has-object-lock';
      const setting = refusedCompliance(before, document, nowMs);
      if (setting !== undefined) return `locked-${setting}`;
      // It binds all versions at once, and those of a key that moves are asked as that begins.
      return document.isEnabled && bucket.keyRenames !== undefined ? 'keys-are-moving' : undefined;
    },
    restartsLifecycle: true,
    mayDelete: false,
  },
  lifecycle: {
    applyTo({ hasLifecycle: _, ...bucket }, document) {
      const isOn = document?.rules.some(({ isEnabled }) => isEnabled) ?? false;
      return isOn ? { ...bucket, hasLifecycle: true } : bucket;
    },
    restartsLifecycle: true,
    mayDelete: true,
  },
  quota: {
    applyTo({ quota: _, ...bucket }, document) {
      return document === undefined ? bucket : { ...bucket, quota: document };
    },
    mayDelete: true,
  },
};

function ruleOf(kind: ConfigKind): ConfigRule<unknown> {
  return RULES[kind] as ConfigRule<unknown>;
}

function documentOf(kind: ConfigKind, bucket: BucketRecord, row: Uint8Array | undefined): unknown {
  if (row === undefined) return ruleOf(kind).ofOldBucket?.(bucket);
  return decodeDocument(row, { bucketId: bucket.bucketId, kind });
}

/** The bucket with this document in the place of the one it had (undefined: with none), and the rows that make it so. */
function withDocument(
  bucket: BucketRecord,
  { kind, document, nowMs }: { kind: ConfigKind; document: unknown; nowMs: number },
): { changed: BucketRecord; puts: RowPut[] } {
  const { bucketId } = bucket;
  const applied = ruleOf(kind).applyTo?.(bucket, document) ?? bucket;
  const changed: BucketRecord = { ...applied, cfgVersion: bucket.cfgVersion + 1 };
  const row = bucketConfigRow(bucketId, kind);
  const puts = [
    put(bucketRow(bucketId), bucketCodec.encode(changed)),
    document === undefined
      ? remove(row)
      : put(row, bucketConfigCodec.encode({ document, changedAtMs: nowMs })),
  ];
  return { changed, puts };
}

/** A new bucket with its first settings, and their rows. They must fit to one another. */
export function withSettings(
  plain: BucketRecord,
  { settings, nowMs }: { settings: CreationSettings; nowMs: number },
): { bucket: BucketRecord; puts: RowPut[] } {
  let bucket = plain;
  const puts: RowPut[] = [];
  // Versioning is before the lock, which needs it.
  for (const kind of CREATION_KINDS) {
    const document = settings[kind];
    if (document === undefined) continue;
    const rule = ruleOf(kind);
    const because = rule.refusal?.({ bucket, before: undefined, document, nowMs });
    assert(because === undefined, `the settings of a new bucket fit: ${because}`);
    bucket = rule.applyTo?.(bucket, document) ?? bucket;
    const row = bucketConfigRow(bucket.bucketId, kind);
    puts.push(put(row, bucketConfigCodec.encode({ document, changedAtMs: nowMs })));
  }
  return { bucket, puts };
}

export const setBucketConfig = defineCommand<CommandOf<'set-bucket-config'>, OutcomeOf<'set-bucket-config'>>({
  locks: ({ bucketId }) => [exclusive(LOCK.bucket(bucketId))],

  look({ bucketId, kind }, view) {
    findBucket(view, bucketId);
    view.row(bucketConfigRow(bucketId, kind));
    if (ruleOf(kind).restartsLifecycle) findLifecycle(view, bucketId);
  },

  decide({ bucketId, kind, document: given }, view, { nowMs, acceptedMs }) {
    const bucket = findBucket(view, bucketId);
    if (bucket?.state !== 'open') return refuse({ kind: 'no-such-bucket' });
    const rule = ruleOf(kind);
    assert(given !== null || rule.mayDelete, `a document of ${kind} is never taken away`);
    const row = bucketConfigRow(bucketId, kind);
    const before = documentOf(kind, bucket, view.row(row));
    const document = given === null ? undefined : (rule.merge?.(before, given) ?? given);
    if (isDeepStrictEqual(document, before)) return refuse({ kind: 'changed', bucket });
    const because = rule.refusal?.({ bucket, before, document, nowMs });
    if (because !== undefined) return refuse({ kind: 'refused', because });
    const { changed, puts } = withDocument(bucket, { kind, document, nowMs });
    const restarted = rule.restartsLifecycle ? restartLifecycle(view, changed, acceptedMs) : [];
    return { outcome: { kind: 'changed', bucket: changed }, puts: [...puts, ...restarted] };
  },
});

/** How many of the operator's unlocks a document keeps. */
const UNLOCKS_MAX = 100;

export const unlockCompliance = defineCommand<CommandOf<'unlock-compliance'>, OutcomeOf<'unlock-compliance'>>(
  {
    locks: ({ bucketId }) => [exclusive(LOCK.bucket(bucketId))],

    look({ bucketId }, view) {
      findBucket(view, bucketId);
      view.row(bucketConfigRow(bucketId, 'compliance'));
    },

    decide({ bucketId, by, reason }, view, { nowMs }) {
      const bucket = findBucket(view, bucketId);
      if (bucket?.state !== 'open') return refuse({ kind: 'no-such-bucket' });
      const row = bucketConfigRow(bucketId, 'compliance');
      const before = documentOf('compliance', bucket, view.row(row)) as
        | BucketConfigs['compliance']
        | undefined;
      if (before === undefined || !before.isEnabled || !isComplianceLocked(before, nowMs))
        return refuse({ kind: 'not-locked' });
      const { lockAtMs: _, ...settings } = before;
      const unlocks = [...(before.unlocks ?? []), { atMs: nowMs, by, reason }].slice(-UNLOCKS_MAX);
      const document: BucketConfigs['compliance'] = { ...settings, unlocks };
      const { changed, puts } = withDocument(bucket, { kind: 'compliance', document, nowMs });
      return { outcome: { kind: 'unlocked', bucket: changed, unlocks }, puts };
    },
  },
);

/** The bucket's row, and the documents that it has, of those that are asked for. */
export const getBucket: QuerySpec<QueryOf<'get-bucket'>, ResultOf<'get-bucket'>> = {
  async run({ bucketId, kinds = CONFIG_KINDS, bytesMax = Number.POSITIVE_INFINITY }, state) {
    const wanted = kinds.map((kind) => bucketConfigRow(bucketId, kind));
    const [row, ...configRows] = await state.rows([bucketRow(bucketId), ...wanted]);
    if (row === undefined) return { bucket: null, configs: {} };
    const bucket = bucketCodec.decode(row);
    const sizeBytes = configRows.reduce((sum, found) => sum + (found?.length ?? 0), 0);
    if (sizeBytes > bytesMax) return { bucket, configs: {}, isLarge: true };
    const configs = kinds.flatMap((kind, at) => {
      const document = documentOf(kind, bucket, configRows[at]);
      return document === undefined ? [] : [[kind, document]];
    });
    return { bucket, configs: Object.fromEntries(configs) as ConfigsOfBucket };
  },
};

/** Of a bucket that is deleted for good. */
export function removeConfigs(view: View, bucketId: BucketId): RowPut[] {
  const rows = CONFIG_KINDS.map((kind) => bucketConfigRow(bucketId, kind));
  const puts = rows.filter((row) => view.row(row) !== undefined).map(remove);
  return [...puts, ...endLifecycle(view, bucketId)];
}

/** For `look` of commands that delete the bucket. */
export function lookAtConfigs(view: View, bucketId: BucketId): void {
  for (const kind of CONFIG_KINDS) view.row(bucketConfigRow(bucketId, kind));
  findLifecycle(view, bucketId);
}

/** A document is a known kind's, of a bucket that is there, and the bucket's row agrees with it. */
export const checkBucketConfig: RowCheck = async (row, scan) => {
  const bucketId = toHex(row.key.subarray(0, -1)) as BucketId;
  const kind = CONFIG_KINDS.find((each) => CONFIG_KIND_IDS[each] === row.key.at(-1));
  const bucket = await scan.bucket(bucketId);
  const place = { bucket: bucket?.name ?? bucketId, table: 'bucketConfigs', note: kind ?? 'unknown kind' };
  if (bucket === undefined || bucket.state === 'deleted') return scan.found('queue-orphaned', place);
  if (kind === undefined) return scan.found('broken-row', place);
  const { document } = bucketConfigCodec.decode(row.value);
  const applied = ruleOf(kind).applyTo?.(bucket, document) ?? bucket;
  if (!isDeepStrictEqual(applied, bucket)) scan.found('broken-row', place);
};

// Names of buckets to their rows and the documents that configure them. A hit costs no query, because the bucket's home
// shard refuses a request that names an outdated row (R45); missing names are always read through, so a bucket is there as
// soon as its creation is answered.
import { createOwnerPlaces, type OwnerPlaces } from '../../../base/async/owner-places.ts';
import { createSharedLooks } from '../../../base/async/shared-looks.ts';
import { BoundedMap } from '../../../base/bounded-map.ts';
import type { ClockPort } from '../../../ports/clock.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../../../ports/metadata/port.ts';
import type { ConfigsOfBucket } from '../../../types/bucket-config.ts';
import type { LifecycleRule } from '../../../types/lifecycle.ts';
import { type BucketName, parseBucketName } from '../../../types/names.ts';
import type { BucketRecord } from '../../../types/records/rows.ts';
import { requireDone } from '../../../types/require-done.ts';
import type { ResolvedBucket } from '../context.ts';

export interface BucketCache {
  /** Undefined: there is no such bucket. `isCached`: it may be out of date. */
  find(name: string): Promise<{ bucket: ResolvedBucket; isCached: boolean } | undefined>;
  /** Past the cache. */
  read(name: string): Promise<ResolvedBucket | undefined>;
  forget(name: string): void;
}

const ENTRIES_MAX = 20_000;
/** Policies, grants and lifecycle rules, as `documentBytes` counts them: 1,600 buckets with the largest policy. */
const DOCUMENT_BYTES_MAX = 32 * 1024 * 1024;
/** Whose rows take more is read in one of few places of its owner: decoded they take several times as much. */
const LARGE_BYTES = 64 * 1024;
/** Of the id of a user or role, with its objects. */
const ID_BYTES = 100;
/** Of a grant, with its objects. */
const GRANT_BYTES = 100;
/** Of a lifecycle rule and of a tag in its filter, with their objects, beside their texts. */
const RULE_BYTES = 300;
const TAG_BYTES = 60;

/** `clock`: of looks that hang. */
export function createBucketCache(metadata: MetadataPort, clock?: Pick<ClockPort, 'sleep'>): BucketCache {
  const buckets = new BoundedMap<string, ResolvedBucket>(ENTRIES_MAX, {
    weightMax: DOCUMENT_BYTES_MAX,
    weightOf: documentBytes,
  });
  const inPlace = createOwnerPlaces();

  async function lookUp(text: string): Promise<ResolvedBucket | undefined> {
    buckets.delete(text);
    const name = parseBucketName(text);
    if (name === undefined) return undefined;
    const found = await lookUpBucket(metadata, name, inPlace);
    if (found !== undefined) buckets.set(name, found);
    return found;
  }

  function findCached(name: string) {
    const bucket = buckets.get(name);
    return bucket && { bucket, isCached: true };
  }

  /** A crowd at one bucket has its documents in memory once. */
  const read = createSharedLooks(lookUp, clock);
  const findMissing = createSharedLooks(async (name) => {
    // What another one has read meanwhile.
    const cached = findCached(name);
    if (cached !== undefined) return cached;
    const bucket = await lookUp(name);
    return bucket && { bucket, isCached: false };
  }, clock);

  return {
    find: async (name) => findCached(name) ?? findMissing(name),
    read(name) {
      buckets.delete(name);
      return read(name);
    },
    forget: (name) => buckets.delete(name),
  };
}

/** Of the documents that may be large. */
function documentBytes({ configs: { acl, policy, lifecycle } }: ResolvedBucket): number {
  const rulesBytes = lifecycle?.rules.reduce((sum, rule) => sum + ruleBytes(rule), 0) ?? 0;
  const idsBytes = Object.keys(policy?.ids ?? {}).reduce((sum, arn) => sum + arn.length + ID_BYTES, 0);
  return (policy?.text.length ?? 0) + idsBytes + GRANT_BYTES * (acl?.grants.length ?? 0) + rulesBytes;
}

function ruleBytes({ id, filter: { prefix = '', tags = [] } }: LifecycleRule): number {
  const tagBytes = tags.reduce((sum, { key, value }) => sum + TAG_BYTES + key.length + value.length, 0);
  return RULE_BYTES + id.length + prefix.length + tagBytes;
}

/** The bucket as it is now. `inPlace`: what is large is read in a place of its owner. */
export async function lookUpBucket(
  metadata: MetadataPort,
  name: BucketName,
  inPlace?: OwnerPlaces,
): Promise<ResolvedBucket | undefined> {
  const { record } = requireDone(await metadata.query({ shard: SYSTEM_SHARD }, 'find-name', { name }));
  // R41: a name that is still being created is absent for readers.
  if (record === null || record.state === 'creating') return undefined;
  const { bucketId, homeShard } = record;
  const ask = async (bytesMax?: number) =>
    requireDone(
      await metadata.query({ shard: homeShard }, 'get-bucket', { bucketId, ...(bytesMax && { bytesMax }) }),
    );
  let found = await ask(inPlace && LARGE_BYTES);
  if (found.isLarge && found.bucket !== null && inPlace !== undefined)
    found = await inPlace(found.bucket.owner, () => ask());
  const { bucket, configs } = found;
  // R43: the home alone knows which name the bucket bears.
  if (bucket === null || !isServed(bucket) || bucket.name !== name) return undefined;
  return resolved(bucket, configs, homeShard);
}

/** R42: a deleted bucket counts as missing. One that is closing may be read, and refuses writes itself. */
function isServed(bucket: BucketRecord): boolean {
  return bucket.state !== 'deleted';
}

function resolved(record: BucketRecord, configs: ConfigsOfBucket, homeShard: number): ResolvedBucket {
  const { bucketId, name, cfgVersion } = record;
  return { record, configs, homeShard, believed: { bucketId, name, cfgVersion } };
}

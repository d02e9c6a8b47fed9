// Makes what a handler sees (context.ts) for one request: closures over what the pipeline has resolved.

import { must } from '../../base/assert.ts';
import type { FairTurns } from '../../base/async/fair-turns.ts';
import { createMetadataCalls } from '../../objects/metadata-calls.ts';
import type { ObjectStore } from '../../objects/object-store.ts';
import type { AccessPair, Authorizer, Principal, RequestFacts } from '../../policy/authorize.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import { AppError } from '../../types/errors.ts';
import type { RequestOrigin } from '../../types/events.ts';
import type { PolicyAction } from '../../types/policy/actions.ts';
import type { Identities } from '../auth/identities.ts';
import type { Exchange } from '../http/exchange.ts';
import type { AccessRecord } from './access-record.ts';
import type { BucketCache } from './buckets/bucket-cache.ts';
import type { Caller } from './caller.ts';
import type { OperationContext, ResolvedBucket } from './context.ts';
import { bucketArn } from './operation.ts';
import { reauthorise } from './reauthorise.ts';
import { parseVersionId } from './request/arguments.ts';
import { readTags } from './request-facts.ts';

export interface ContextDependencies {
  metadata: MetadataPort;
  buckets: BucketCache;
  identities: Identities;
  authorizer: Authorizer;
  objects: ObjectStore;
  clock: ClockPort;
  random: RandomPort;
  /** Long work of this thread, in turns by account: documents and listings. */
  turns: FairTurns;
  /** Those under way in this gateway, the one that asks among them. */
  requestCount(): number;
}

export interface ContextParts {
  caller: Caller;
  bucket: ResolvedBucket | undefined;
  facts: RequestFacts;
  record: AccessRecord;
  exchange: Exchange;
  /** The host names the bucket. */
  isVirtualHost: boolean;
  /** What step 7 has judged: asked for again when the bucket has changed. */
  pairsOf(bucket: ResolvedBucket): readonly AccessPair[];
}

/** Whether every pair is allowed. What refuses the first one stands in the request's record. */
export function mayDo(
  { authorizer, metadata }: Pick<ContextDependencies, 'authorizer' | 'metadata'>,
  asked: {
    caller: Caller;
    pairs: readonly AccessPair[];
    bucket: ResolvedBucket | undefined;
    facts: RequestFacts;
    record: AccessRecord;
    /** A refusal does not end the request. */
    isProbe?: boolean;
  },
): Promise<boolean> {
  const { caller, pairs, bucket, facts, record, isProbe = false } = asked;
  return authorizer.isAllowed({
    principal: principalOf(caller),
    pairs,
    bucket: bucket?.record,
    facts,
    async tagsOf(resource) {
      if (bucket === undefined) return [];
      const { name } = bucket.record;
      const isOwn = record.bucket === name && resource === `${bucketArn(name)}/${record.key}`;
      const versionId = isOwn ? parseVersionId(facts.parameter('versionId')) : undefined;
      return readTags(metadata, { bucket, resource, versionId });
    },
    onRefused([action, resource], decision) {
      if (isProbe) return;
      const rule = decision.rule ?? 'no rule allows it';
      record.refusedAccess = { action, resource, rule };
    },
  });
}

/** False where no key of the bucket allows the caller any of these actions. */
export function mayDoSome(
  { authorizer }: Pick<ContextDependencies, 'authorizer'>,
  asked: { caller: Caller; actions: readonly PolicyAction[]; bucket: ResolvedBucket | undefined },
): boolean {
  const { caller, actions } = asked;
  const { record: bucket } = must(asked.bucket, 'keys are in a bucket');
  return authorizer.isSomeAllowed({ principal: principalOf(caller), actions, bucket });
}

function principalOf(caller: Caller): Principal {
  return caller.kind === 'account' ? { accountId: caller.account.accountId } : undefined;
}

/** By account id, as AWS documents it, or by canonical id, as other makers' clients have it. */
export async function isOwner(
  deps: Pick<ContextDependencies, 'identities'>,
  expected: string,
  bucket: ResolvedBucket,
): Promise<boolean> {
  const { owner } = bucket.record;
  if (expected === owner) return true;
  return (await deps.identities.account(owner))?.canonicalId === expected;
}

export function createContext(deps: ContextDependencies, parts: ContextParts): OperationContext {
  const { caller, facts, record, exchange } = parts;
  let ownBucket = parts.bucket;
  const others: OtherBucket[] = [];
  const judgeAnew = async (bucket: ResolvedBucket) => {
    const { bucketId } = bucket.record;
    if (bucketId === ownBucket?.record.bucketId) {
      const pairs = parts.pairsOf(bucket);
      if (!(await mayDo(deps, { caller, pairs, bucket, facts, record }))) throw new AppError('AccessDenied');
      ownBucket = bucket;
    }
    // A copy's source, which may be the same bucket.
    for (const other of others) {
      if (bucketId !== other.present.record.bucketId) continue;
      if (!(await other.mayUse(bucket))) throw new AppError('AccessDenied');
      other.present = bucket;
    }
  };
  const metadata = createMetadataCalls({
    metadata: deps.metadata,
    tenant: exchange.tenant,
    origin: originOf(caller, record),
    reauthorise: (stale) => reauthorise(deps.buckets, stale, judgeAnew),
  });
  return {
    requestId: record.requestId,
    caller,
    account() {
      if (caller.kind === 'anonymous') throw new AppError('AccessDenied');
      return caller.account;
    },
    bucket: () => must(ownBucket, 'operations on service level have no bucket'),
    async resolveBucket(name, mayUse) {
      const other = { mayUse, present: await resolveOther(deps.buckets, name, mayUse) };
      others.push(other);
      return () => other.present;
    },
    forgetBucket: (name) => deps.buckets.forget(name),
    authorize: (pairs, bucket) => mayDo(deps, { caller, pairs, bucket, facts, record }),
    mayAlso: (pairs, bucket) => mayDo(deps, { caller, pairs, bucket, facts, record, isProbe: true }),
    isOwner: (expected, bucket) => isOwner(deps, expected, bucket),
    async ownerOf(accountId) {
      const account = await deps.identities.account(accountId);
      // Accounts outlive what they own; the id alone is the best that can be said of one that did not.
      return { id: account?.canonicalId ?? accountId, displayName: account?.name ?? accountId };
    },
    metadata,
    objects: deps.objects,
    clock: deps.clock,
    random: deps.random,
    record,
    signal: () => exchange.signal,
    turn: () => deps.turns.take(`listings of ${exchange.tenant.account ?? 'nobody'}`),
    hasCompany: () => deps.requestCount() > 1,
    bucketUrl() {
      const { scheme, host } = exchange.client;
      return `${scheme}://${host}${parts.isVirtualHost ? '' : `/${this.bucket().record.name}`}`;
    },
  };
}

function originOf(caller: Caller, { requestId, remoteAddress: address }: AccessRecord): RequestOrigin {
  if (caller.kind === 'anonymous') return { requestId, address };
  return { requestId, accountId: caller.account.accountId, address };
}

interface OtherBucket {
  mayUse(bucket: ResolvedBucket): Promise<boolean>;
  /** As it was judged last. */
  present: ResolvedBucket;
}

/** As for a request's own bucket, a cached row refuses nobody; the shard reports if it is outdated. */
async function resolveOther(
  buckets: BucketCache,
  name: string,
  mayUse: OtherBucket['mayUse'],
): Promise<ResolvedBucket> {
  const found = await buckets.find(name);
  let bucket = found?.bucket;
  let isAllowed = bucket !== undefined && (await mayUse(bucket));
  if (!isAllowed && found?.isCached === true) {
    bucket = await buckets.read(name);
    isAllowed = bucket !== undefined && (await mayUse(bucket));
  }
  if (bucket === undefined) throw new AppError('NoSuchBucket', { fields: { BucketName: name } });
  if (!isAllowed) throw new AppError('AccessDenied');
  return bucket;
}

// Makes what a handler sees (context.ts) for one request: closures over what the pipeline has resolved.

import { must } from '../../base/assert.ts';
import type { FairTurns } from '../../base/async/fair-turns.ts';
import { createMetadataCalls } from '../../objects/metadata-calls.ts';
import type { ObjectStore } from '../../objects/object-store.ts';
import {
  type AccessPair,
  type Asker,
  describeDecision,
  isAllowed,
  isSomeAllowed,
  type JudgedBucket,
  type StoredObject,
} from '../../policy/authorize.ts';
import { findAbout, NO_POLICIES } from '../../policy/evaluate.ts';
import { refusalMessage } from '../../policy/refusal-message.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import { isPublic } from '../../types/acl.ts';
import { AppError } from '../../types/errors.ts';
import type { RequestOrigin } from '../../types/events.ts';
import type { AccountId, ObjectKey, VersionId } from '../../types/names.ts';
import type { PolicyAction } from '../../types/policy/actions.ts';
import { type AccountRecord, type BucketRecord, mayBePublic } from '../../types/records/rows.ts';
import { requireDone } from '../../types/require-done.ts';
import { turnOf } from '../../types/tenant.ts';
import type { Identities } from '../auth/identities.ts';
import { signerOf } from '../auth/principal.ts';
import { turnOfDecision } from '../decision-turns.ts';
import type { Exchange } from '../http/exchange.ts';
import type { MfaCodes } from '../identity-api/mfa-codes.ts';
import { type AccessRecord, accessDenied } from './access-record.ts';
import type { BucketCache } from './buckets/bucket-cache.ts';
import type { Caller } from './caller.ts';
import type { DigestPlaces } from './compliance/digest-places.ts';
import type { OperationContext, ResolvedBucket } from './context.ts';
import type { MovePlaces } from './extensions/move-places.ts';
import { bucketArn } from './operation.ts';
import { BucketReplaced, reauthorise } from './reauthorise.ts';
import type { RequestFacts } from './request-facts.ts';
import { mayHaveFactorFor, needsSecondFactor, SECOND_FACTOR_MISSING } from './second-factor.ts';
import type { SeenAddress } from './seen-objects.ts';
import type { StoreFacts } from './sosapi/store-facts.ts';

export interface ContextDependencies {
  metadata: MetadataPort;
  mfaCodes: MfaCodes;
  buckets: BucketCache;
  identities: Identities;
  objects: ObjectStore;
  store: StoreFacts;
  clock: ClockPort;
  random: RandomPort;
  /** Length of a day as lifecycle rules count them. */
  lifecycleDayMs: number;
  /** Long work of this thread, in turns by account: documents and listings. */
  turns: FairTurns;
  digests: DigestPlaces;
  movePlaces: MovePlaces;
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
  /** As long as the client sends, or what is read has data: who asks is looked up and judged again before it changes anything. */
  takesLong?: boolean;
  /** The account that owns the bucket, as step 7 has seen it. */
  owner?: AccountRecord | null | undefined;
  /** It stores data, for which the bucket's account is charged. */
  stores?: boolean;
  /** As OperationRow has it. */
  decidesInRun?: true | undefined;
}

/** What a decision looks at. */
export interface Asked {
  caller: Caller;
  bucket: ResolvedBucket | undefined;
  facts: RequestFacts;
  record: AccessRecord;
}

/** Whether every pair is allowed. What refuses the first one stands in the request's record. */
export async function mayDo(
  deps: Pick<ContextDependencies, 'metadata' | 'identities' | 'turns'>,
  asked: Asked & {
    pairs: readonly AccessPair[];
    /** A refusal does not end the request. */
    isProbe?: boolean;
  },
): Promise<boolean> {
  const { caller, pairs, bucket, facts, record, isProbe = false } = asked;
  const asker = await askerOf(caller);
  const judged = bucket && (await judgedBucket(deps, caller, bucket));
  const isJudged = await isAllowed({
    asker,
    pairs,
    bucket: judged,
    contextOf: facts.contextOf,
    turn: () =>
      caller.kind === 'anonymous'
        ? turnOfDecision(deps.turns, undefined)
        : turnOfDecision(deps.turns, caller.account.accountId, () => signerOf(caller)),
    async storedObject(resource, versionId) {
      const address = bucket && addressOf(bucket, { resource, versionId });
      if (address === undefined || bucket === undefined) return undefined;
      const stored = await readStoredObject(deps, { caller, bucket, address });
      // What a part of the request may do without is not held against the whole.
      if (!isProbe) facts.seen.note(address, stored);
      return stored;
    },
    onRefused([action, resource], decision) {
      if (isProbe) return;
      const ofCaller = caller.kind === 'anonymous' ? '' : caller.account.accountId;
      // What is of no bucket that is there is of the caller's own account: ListBuckets, CreateBucket.
      const resourceAccount = bucket?.record.owner ?? ofCaller;
      const refused = { caller: asker.caller, action, resource, resourceAccount, decision, isOfS3: true };
      const message = refusalMessage(refused);
      const lacks = judged && judged.record.owner !== ofCaller ? whatOthersLack(judged) : '';
      record.refusedAccess = {
        action,
        resource,
        rule: `${describeDecision(decision)}${lacks}`,
        ...(message && { message }),
      };
    },
  });
  const final = pairs.find(([, , , options]) => options?.removesVersion);
  if (!isJudged || final === undefined || bucket === undefined || !needsSecondFactor(bucket)) return isJudged;
  if (mayHaveFactorFor(bucket, caller) && (await facts.hasSecondFactor())) return true;
  const [action, resource] = final;
  if (!isProbe)
    record.refusedAccess = { action, resource, rule: 'MFA delete', message: SECOND_FACTOR_MISSING };
  return false;
}

/** Behind what refused a caller of another account, or nobody known. */
function whatOthersLack({ isClosed, mayBePublic }: JudgedBucket): string {
  if (isClosed) return ', and its account is suspended';
  return mayBePublic ? '' : ', and its account may not share with everybody';
}

/** False where no key of the bucket allows the caller any of these actions. */
export async function mayDoSome(
  deps: Pick<ContextDependencies, 'identities'>,
  asked: { caller: Caller; actions: readonly PolicyAction[]; bucket: ResolvedBucket | undefined },
): Promise<boolean> {
  const bucket = await judgedBucket(deps, asked.caller, must(asked.bucket, 'keys are in a bucket'));
  const asker = await askerOf(asked.caller);
  for (const action of asked.actions) await findAbout(asker.policies, action);
  return isSomeAllowed({ asker, bucket }, asked.actions);
}

const ANONYMOUS: Asker = { caller: { kind: 'anonymous' }, policies: NO_POLICIES };

function askerOf(caller: Caller): Asker | Promise<Asker> {
  if (caller.kind === 'anonymous') return ANONYMOUS;
  const { principal } = caller;
  const policies = principal.policies();
  return policies instanceof Promise
    ? policies.then((again) => ({ caller: principal.caller, policies: again }))
    : { caller: principal.caller, policies };
}

async function judgedBucket(
  deps: Pick<ContextDependencies, 'identities'>,
  caller: Caller,
  { record, configs }: ResolvedBucket,
): Promise<JudgedBucket> {
  const { identities } = deps;
  const { policy, acl } = configs;
  const name = `arn:aws:s3:::${record.name}`;
  const accountId = record.owner;
  const owner = await ownerFor(deps, caller, record);
  return {
    record,
    policy: policy && (await identities.policies.named({ name, ...policy, type: 'resource', accountId })),
    acl: { owner: record.owner, grants: acl?.grants },
    mayBePublic: owner === null || mayBePublic(owner),
    isClosed: owner?.state === 'suspended',
  };
}

/** The account that owns the bucket: the same object as long as nothing of it changes. */
export async function ownerFor(
  { identities }: Pick<ContextDependencies, 'identities'>,
  caller: Caller,
  { owner }: BucketRecord,
): Promise<AccountRecord | null> {
  const isOwn = caller.kind === 'account' && caller.account.accountId === owner;
  return isOwn ? caller.account : identities.account(owner);
}

/** What stores data is refused where the account that is charged for it, the bucket's owner, has not paid: AccountProblem. */
export async function requirePaid(
  { identities }: Pick<ContextDependencies, 'identities'>,
  caller: Caller,
  record: BucketRecord,
): Promise<void> {
  const account = await ownerFor({ identities }, caller, record);
  if (account?.isUnpaid === true) throw new AppError('AccountProblem', { message: UNPAID });
}

const UNPAID =
  'The account that owns the bucket has unpaid bills. It can read and delete, and store nothing.';

/** Whether the account may share with everybody. What it has shared goes by it with each request, not only when it is put. */
async function mayShareWithAll(
  { identities }: Pick<ContextDependencies, 'identities'>,
  caller: Caller,
  accountId: AccountId,
): Promise<boolean> {
  const isOwn = caller.kind === 'account' && caller.account.accountId === accountId;
  const account = isOwn ? caller.account : await identities.account(accountId);
  // Objects outlive the account that wrote them into another one's bucket: there its word is the only one left.
  return account === null || mayBePublic(account);
}

/** The object that a resource names; undefined where it names none. */
function addressOf(
  { record, believed }: ResolvedBucket,
  { resource, versionId }: { resource: string; versionId: VersionId | undefined },
): SeenAddress | undefined {
  const prefix = `${bucketArn(record.name)}/`;
  if (!resource.startsWith(prefix)) return undefined;
  const { bucketId } = believed;
  return { bucketId, key: resource.slice(prefix.length) as ObjectKey, versionId };
}

/** As decisions see it; undefined where none is there. */
async function readStoredObject(
  deps: Pick<ContextDependencies, 'metadata' | 'identities'>,
  asked: { caller: Caller; bucket: ResolvedBucket; address: SeenAddress },
): Promise<StoredObject | undefined> {
  const { homeShard } = asked.bucket;
  const { versionId, ...address } = asked.address;
  const query = { ...address, includeBody: false, ...(versionId && { versionId }) };
  const found = requireDone(await deps.metadata.query({ shard: homeShard }, 'get-version', query));
  if (found.kind !== 'found') return undefined;
  const { owner, acl: grants, tags = [] } = found.version;
  const isPrivate = isPublic(grants) && !(await mayShareWithAll(deps, asked.caller, owner));
  return { acl: { owner, grants }, isPrivate, tags };
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

/**
 * Who asks, as it is now: the same object where nothing has changed; undefined where memory says so at once. Errors of
 * Identities.requireStill.
 */
export function presentCaller(
  { identities }: Pick<ContextDependencies, 'identities'>,
  caller: Caller,
): Promise<Caller> | undefined {
  if (caller.kind === 'anonymous') return undefined;
  return identities
    .requireStill(caller)
    ?.then(({ account, principal }) =>
      principal === caller.principal ? caller : { ...caller, account, principal },
    );
}

export function createContext(deps: ContextDependencies, parts: ContextParts): OperationContext {
  const { facts, record, exchange, takesLong = false } = parts;
  const { patience } = exchange;
  let ownBucket = parts.bucket;
  const others: OtherBucket[] = [];
  /** Found in `run`. */
  const needed: AccessPair[] = [];
  const asked = () => ({ caller: context.caller, facts, record });
  const judgeAnew = async (bucket: ResolvedBucket) => {
    const { bucketId } = bucket.record;
    if (bucketId === ownBucket?.record.bucketId) {
      if (parts.decidesInRun) throw new BucketReplaced(bucket);
      const pairs = [...parts.pairsOf(bucket), ...needed];
      if (!(await mayDo(deps, { ...asked(), pairs, bucket }))) throw accessDenied(record);
      ownBucket = bucket;
    }
    // A copy's source, which may be the same bucket.
    for (const other of others) {
      if (bucketId !== other.present.record.bucketId) continue;
      if (!(await other.mayUse(bucket))) throw accessDenied(record);
      other.present = bucket;
    }
  };
  let { owner } = parts;
  /** What the caller was allowed is asked for again, where it or the bucket's account has changed since. */
  const judgeAgain = async (looking: Promise<Caller> | undefined) => {
    const present = (await looking) ?? context.caller;
    const presentOwner = ownBucket && (await ownerFor(deps, present, ownBucket.record));
    if (present === context.caller && presentOwner === owner) return;
    context.caller = present;
    owner = presentOwner;
    facts.become(present);
    if (ownBucket !== undefined) {
      await judgeAnew(ownBucket);
      if (parts.stores) await requirePaid(deps, present, ownBucket.record);
    }
    for (const other of others) if (!(await other.mayUse(other.present))) throw accessDenied(record);
  };
  const beforeCommand = () => {
    const { caller } = context;
    const looking = presentCaller(deps, caller);
    const isOwn = caller.kind === 'account' && caller.account.accountId === ownBucket?.record.owner;
    return looking === undefined && isOwn ? undefined : exchange.inTime(judgeAgain(looking));
  };
  const metadata = createMetadataCalls({
    metadata: deps.metadata,
    tenant: exchange.tenant,
    patience,
    origin: originOf(parts.caller, record),
    ...(takesLong && { beforeCommand }),
    reauthorise: (stale) => exchange.inTime(reauthorise(deps.buckets, stale, judgeAnew)),
  });
  // No accessor: each context would have a hidden class of its own (docs/internals/performance.md).
  const context: OperationContext & { caller: Caller } = {
    requestId: record.requestId,
    caller: parts.caller,
    account() {
      const { caller } = context;
      if (caller.kind === 'anonymous') throw new AppError('AccessDenied');
      return caller.account;
    },
    bucket: () => must(ownBucket, 'operations on service level have no bucket'),
    async resolveBucket(name, mayUse) {
      const other = { mayUse, present: await resolveOther(deps.buckets, { name, mayUse, record }) };
      others.push(other);
      return () => other.present;
    },
    forgetBucket: (name) => deps.buckets.forget(name),
    authorize: (pairs, bucket) => mayDo(deps, { ...asked(), pairs, bucket }),
    async alsoNeed(pairs) {
      // Before it is judged: meanwhile the bucket may change.
      needed.push(...pairs);
      if (!(await mayDo(deps, { ...asked(), pairs, bucket: ownBucket }))) throw accessDenied(record);
    },
    mayAlso: (pairs, bucket) => mayDo(deps, { ...asked(), pairs, bucket, isProbe: true }),
    async requireStill() {
      await beforeCommand();
    },
    seen: facts.seen,
    hasSecondFactor: () => facts.hasSecondFactor(),
    isOwner: (expected, bucket) => isOwner(deps, expected, bucket),
    async ownerOf(accountId) {
      const account = await exchange.inTime(deps.identities.account(accountId));
      // Accounts outlive what they own; the id alone is the best that can be said of one that did not.
      return { id: account?.canonicalId ?? accountId, displayName: account?.name ?? accountId };
    },
    metadata,
    objects: deps.objects,
    store: deps.store,
    clock: deps.clock,
    random: deps.random,
    lifecycleDayMs: deps.lifecycleDayMs,
    record,
    signal: () => exchange.signal,
    withMemory: (needs, work) =>
      deps.objects.withMemory({ ...needs, tenant: exchange.tenant, patience }, async () => {
        // It waited up to some seconds, and what its client did next must not be undone.
        if (exchange.isAborted) throw new AppError('SlowDown');
        return work();
      }),
    turn: () => deps.turns.take(turnOf(exchange.tenant, 'listings')),
    beginDigest() {
      return deps.digests.begin(this.bucket().record.owner);
    },
    movePlaces: deps.movePlaces,
    hasCompany: () => deps.requestCount() > 1,
    pageGuard(contentType) {
      // A host that names no bucket serves /api/v1, whose logins browsers keep by host.
      return parts.isVirtualHost || IS_NO_PAGE.test(String(contentType)) ? NO_HEADERS : SANDBOX;
    },
    bucketUrl() {
      const { scheme, host } = exchange.client;
      return `${scheme}://${host}${parts.isVirtualHost ? '' : `/${this.bucket().record.name}`}`;
    },
  };
  return context;
}

/**
 * What no browser runs as a page, whole: of several types in one header they take the last. PDF viewers do not open in a sandbox.
 */
const IS_NO_PAGE =
  /^(?:application\/(?:json|octet-stream|pdf|zip)|binary\/octet-stream|text\/plain|(?:audio|image|video)\/[\w.-]+)$/i;
/** Without allow-same-origin: the page has no host of its own, and requests of its scripts count as another site's. */
const SANDBOX = {
  'content-security-policy': 'sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts',
};
const NO_HEADERS = {};

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
  { name, mayUse, record }: { name: string; mayUse: OtherBucket['mayUse']; record: AccessRecord },
): Promise<ResolvedBucket> {
  const found = await buckets.find(name);
  let bucket = found?.bucket;
  let mayIt = bucket !== undefined && (await mayUse(bucket));
  if (!mayIt && found?.isCached === true) {
    bucket = await buckets.read(name);
    mayIt = bucket !== undefined && (await mayUse(bucket));
  }
  if (bucket === undefined) throw new AppError('NoSuchBucket', { fields: { BucketName: name } });
  if (!mayIt) throw accessDenied(record);
  return bucket;
}

// The steps of the pipeline, in its order. Each takes what the ones before it have found, and throws AppError where the
// request ends.
import type { FairShare } from '../../base/async/fair-share.ts';
import { finishAtOnce } from '../../base/async/steps.ts';
import type { AccessPair } from '../../policy/authorize.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BucketName, ObjectKey } from '../../types/names.ts';
import type { AccountRecord } from '../../types/records/rows.ts';
import { turnOf } from '../../types/tenant.ts';
import { type Authentication, authenticate, type SigningRules } from '../auth/authenticate.ts';
import type { SignedHosts } from '../auth/authentication-request.ts';
import type { KeyUses } from '../auth/key-uses.ts';
import { type PayloadForm, readPayload, UNSIGNED_PAYLOAD } from '../auth/payload-form.ts';
import { signerOf } from '../auth/principal.ts';
import type { SignatureFailures } from '../auth/signature-failures.ts';
import { withAnswerMemory } from '../http/answer-memory.ts';
import type { Exchange } from '../http/exchange.ts';
import { redact, redactOptional } from '../http/redact.ts';
import { requireSingleHeaders } from '../http/request-headers.ts';
import type { RequestIds } from '../http/request-ids.ts';
import type { Shedding } from '../http/shedding.ts';
import { meterRequest } from '../metering/request-traffic.ts';
import type { TrafficMeter } from '../metering/traffic-meter.ts';
import { type AccessRecord, accessDenied, finishRecord, startRecord } from './access-record.ts';
import type { ResolvedBucket } from './context.ts';
import { type OpenForm, openForm, requireForm } from './forms/open-form.ts';
import type { Matcher } from './matcher.ts';
import type { Operation, OperationRequest, OperationResult } from './operation.ts';
import { BucketReplaced } from './reauthorise.ts';
import { hoistedHeaders } from './request/hoisted-headers.ts';
import { openBody } from './request/open-body.ts';
import type { RequestBody } from './request/request-body.ts';
import { screenHeaders } from './request/screen-headers.ts';
import { parseTarget, type Target } from './request/target.ts';
import {
  type ContextDependencies,
  createContext,
  isOwner,
  mayDo,
  mayDoSome,
  ownerFor,
  presentCaller,
  requirePaid,
} from './request-context.ts';
import type { RequestFacts } from './request-facts.ts';
import { type Reply, resolveError, sendError } from './respond.ts';
import type { UnsupportedOperation } from './unsupported.ts';
import { readDocument } from './xml/read-document.ts';

export interface S3Dependencies extends ContextDependencies {
  match: Matcher<Operation | UnsupportedOperation>;
  ids: RequestIds;
  hostsOf(exchange: Exchange, bucketLabel: string | undefined): SignedHosts;
  signing: SigningRules;
  keyUses: KeyUses;
  failures: SignatureFailures;
  log: Logger;
  telemetry: TelemetryPort;
  traffic: Pick<TrafficMeter, 'note'>;
  /** Customers' keys are taken over connections that others may read, too. */
  takesSecretsOverHttp: boolean;
  shedding: Shedding;
  /** Of fields of forms that are read of senders who are not known yet: bytes, by address. */
  unverifiedForms: FairShare;
  /** Throws SlowDown when the server has too much to do to take any request on. */
  requireRoom(exchange: Exchange): void;
  /** The same when the caller has used up its share. Call it once, when the caller is known. */
  requireShare(exchange: Exchange): void;
  /** The same where its clients have left too many of its answers: to be asked again by what has waited since. */
  requireTaken(exchange: Exchange): void;
}

type Headers = OperationRequest['headers'];

/** The caller, and how the body is sent: both are in what is signed. */
export type Identity = Authentication & {
  form: PayloadForm;
  /** x-amz-content-sha256, or what stands for it; absent where nobody signs. */
  payloadHash?: string;
};

type FoundBucket = { bucket: ResolvedBucket; isCached: boolean } | undefined;

const NO_BODY: RequestBody = {
  stream: { [Symbol.asyncIterator]: async function* () {} },
  sizeBytes: 0,
  awaitsContinue: false,
  trailerChecksum: () => undefined,
};

// ---- 1 ----

export function beginRecord(deps: S3Dependencies, exchange: Exchange): AccessRecord {
  const { values } = exchange.headers;
  return startRecord({
    ...deps.ids.next(),
    receivedAtMs: deps.clock.wallMs(),
    method: exchange.request.method ?? '',
    requestUri: redact(exchange.uri, LIMITS.echoedFieldCharactersMax),
    remoteAddress: exchange.client.remoteAddress,
    host: redactOptional(values.host),
    userAgent: redactOptional(values['user-agent']),
    referer: redactOptional(values.referer),
    tls: exchange.client.tls,
  });
}

// ---- 2 ----

/**
 * BadRequest unless there is a Host (RFC 9112 3.2; HTTP/1.0 may do without), InvalidArgument where a header that decides
 * something is there twice, and what parseTarget throws.
 */
export function readTarget(exchange: Exchange, bucketLabel: string | undefined): Target {
  if (exchange.headers.values.host === undefined && exchange.request.httpVersion !== '1.0') {
    throw new AppError('BadRequest', { message: 'A request has one Host header.' });
  }
  requireSingleHeaders(exchange.headers);
  return parseTarget(exchange.uri, bucketLabel);
}

// ---- 3 ----

/** NotImplemented for operations and headers of features that are not there; 400 and 405 as the matcher says. */
export function matchOperation(
  deps: S3Dependencies,
  parts: { exchange: Exchange; target: Target; record: AccessRecord },
): { row: Operation; headers: Headers } {
  const { exchange, target, record } = parts;
  if (target.bucket !== '') record.bucket = target.bucket;
  if (target.key !== '') record.key = target.key;
  const query = target.query.parameters;
  const headers = hoistedHeaders(exchange.headers.values, query);
  const method = exchange.request.method ?? '';
  const row = deps.match({ method, level: target.level, key: target.key, query, headers });
  record.operation = row.name;
  if (!('run' in row)) throw new AppError('NotImplemented');
  record.logName = row.logName;
  if (row.auth !== 'none') screenHeaders(row, headers);
  return { row, headers };
}

// ---- 4 ----

/** Errors of auth/authenticate.ts. */
export async function identify(
  deps: S3Dependencies,
  parts: {
    exchange: Exchange;
    target: Target;
    headers: Headers;
    row: Operation;
    record: AccessRecord;
    bucketLabel: string | undefined;
  },
): Promise<Identity> {
  const { exchange, target, row } = parts;
  if (row.auth === 'none') return { caller: { kind: 'anonymous' }, form: { kind: 'plain' } };
  const payload = readPayload(parts.headers, target.query.parameters);
  const authentication = await authenticate(
    { ...deps, address: exchange.client.remoteAddress, rules: deps.signing },
    {
      method: exchange.request.method ?? '',
      target,
      headers: exchange.headers,
      payloadHash: payload.hash,
      hosts: deps.hostsOf(exchange, parts.bucketLabel),
    },
  );
  noteCaller(authentication, parts);
  const { form, hash } = payload;
  // A digest is the same in either case of its letters: conditions see it in one.
  const payloadHash = form.kind === 'plain' ? (form.sha256 ?? hash) : hash;
  return { ...authentication, form, payloadHash };
}

function noteCaller(
  { caller }: Authentication,
  { exchange, record }: { exchange: Exchange; record: AccessRecord },
): void {
  if (caller.kind !== 'account') return;
  exchange.proveAccount(caller.account.accountId, signerOf(caller));
  record.accountId = caller.account.accountId;
  record.authType = caller.authType;
  record.signatureVersion = caller.signatureVersion;
}

/** A form that is open, and who has sent it. */
export interface IdentifiedForm extends Pick<OpenForm, 'headers' | 'body' | 'successAction'> {
  identity: Identity;
  names: { bucket: BucketName; key: ObjectKey };
}

/**
 * The same of a form: its fields are read for it, if there is a bucket for it. NoSuchBucket, and errors of requireForm and
 * openForm.
 */
export async function identifyForm(
  deps: S3Dependencies,
  parts: {
    exchange: Exchange;
    target: Target;
    names: { bucket: BucketName };
    row: Operation;
    record: AccessRecord;
  },
): Promise<IdentifiedForm> {
  const { exchange, target, names, row, record } = parts;
  const boundary = requireForm(exchange, target);
  await resolveBucket(deps, row, target);
  const { bucket } = names;
  const rules = deps.signing;
  const { authentication, key, ...form } = await openForm(
    { ...deps, rules },
    { exchange, boundary, bucket, row },
  );
  noteCaller(authentication, parts);
  record.key = key;
  return {
    ...form,
    identity: { ...authentication, form: { kind: 'plain' }, payloadHash: UNSIGNED_PAYLOAD },
    names: { bucket, key },
  };
}

// ---- 5 ----

/** NoSuchBucket where the operation needs one. */
export async function resolveBucket(
  deps: S3Dependencies,
  row: Operation,
  target: Target,
): Promise<FoundBucket> {
  if (target.level === 'service' || row.needsBucket === false) return undefined;
  const found = await deps.buckets.find(target.bucket);
  if (found === undefined) throw noSuchBucket(target.bucket);
  return found;
}

function noSuchBucket(name: string): AppError {
  return new AppError('NoSuchBucket', { fields: { BucketName: name } });
}

// ---- 6 ----

/** Nothing of a body is read here. Errors of openBody, where the operation takes a stream. */
export function openRequest(
  deps: Pick<S3Dependencies, 'takesSecretsOverHttp'>,
  exchange: Exchange,
  parts: {
    row: Operation;
    target: Target;
    names: { bucket: BucketName; key: ObjectKey };
    headers: Headers;
    identity: Identity;
    /** Where the request is one. */
    form?: IdentifiedForm | undefined;
  },
): OperationRequest {
  const { row, target, names, headers, identity } = parts;
  const method = exchange.request.method ?? '';
  const mayCarrySecrets = exchange.client.isPrivate || deps.takesSecretsOverHttp;
  const common = { method, ...names, query: target.query.parameters, headers, mayCarrySecrets };
  if (parts.form !== undefined) {
    const { body, successAction } = parts.form;
    return { ...common, body, successAction };
  }
  const { form, seed } = identity;
  const body =
    row.body === 'stream' ? openBody(exchange, { headers, form, seed, mayBeAbsent: false }) : NO_BODY;
  return { ...common, body };
}

// ---- 7 ----

interface Granted {
  bucket: ResolvedBucket | undefined;
  /** What the request needs of the bucket as it is: whether versions are kept may be the difference. */
  pairsOf(bucket: ResolvedBucket | undefined): readonly AccessPair[];
  /** The account that owns the bucket, as it was then: what it shares with others hangs on it. */
  owner: AccountRecord | null | undefined;
}

/** What a handler sees beside the request itself. */
interface Surrounding {
  record: AccessRecord;
  exchange: Exchange;
  isVirtualHost: boolean;
}

interface Judged {
  row: Operation;
  input: never;
  headers: Headers;
  identity: Identity;
  found: FoundBucket;
  facts: RequestFacts;
  record: AccessRecord;
  /** Once it is read: what it names is judged, too. */
  document?: never;
}

/**
 * AccessDenied unless every pair is allowed and the bucket's owner is the one expected (s3-behaviour 10). A refusal by
 * a cached row is judged anew by the present one: the bucket may have gone, or become another's.
 */
export async function authorise(deps: S3Dependencies, parts: Judged): Promise<Granted> {
  const { row, identity, found } = parts;
  // Looked up before it is judged by: what changes meanwhile counts as changed since.
  const owner = found && (await ownerFor(deps, identity.caller, found.bucket.record));
  const granted = await grant(deps, parts);
  if (granted.bucket !== undefined && storesData(row))
    await requirePaid(deps, identity.caller, granted.bucket.record);
  return { ...granted, owner };
}

/** Whatever may pass a quota stores data. */
function storesData({ errors, beginsStoring }: Operation): boolean {
  return errors.includes('QuotaExceeded') || beginsStoring === true;
}

async function grant(deps: S3Dependencies, parts: Judged): Promise<Omit<Granted, 'owner'>> {
  const { row, input, found, document } = parts;
  const named = document === undefined ? [] : (row.documentAccess?.(input, document) ?? []);
  const pairsOf: Granted['pairsOf'] = (bucket) => [...row.access(input, bucket?.record), ...named];
  const bucket = found?.bucket;
  if (await isGranted(deps, { ...parts, pairs: pairsOf(bucket), bucket })) return { bucket, pairsOf };
  if (found?.isCached === true) {
    const { name } = found.bucket.record;
    const present = await deps.buckets.read(name);
    if (present === undefined) throw noSuchBucket(name);
    const isNow = await isGranted(deps, { ...parts, pairs: pairsOf(present), bucket: present });
    if (isNow) return { bucket: present, pairsOf };
  }
  throw accessDenied(parts.record);
}

async function isGranted(
  deps: S3Dependencies,
  parts: {
    row: Operation;
    headers: Headers;
    identity: Identity;
    facts: RequestFacts;
    record: AccessRecord;
    pairs: readonly AccessPair[];
    bucket: ResolvedBucket | undefined;
  },
): Promise<boolean> {
  const { row, headers, identity, facts, record, pairs, bucket } = parts;
  const expected = headers['x-amz-expected-bucket-owner'];
  if (expected !== undefined && bucket !== undefined && !(await isOwner(deps, expected, bucket)))
    return false;
  const { caller } = identity;
  if (row.keyActions !== undefined && !(await mayDoSome(deps, { caller, actions: row.keyActions, bucket })))
    return false;
  return mayDo(deps, { caller, pairs, bucket, facts, record });
}

// ---- 8 ----

/**
 * What `run` gives for the document of an `xml` operation, read and understood. A short one is understood at once, a longer one
 * in turns with those of other accounts. Its memory counts until `run` is over: what was understood may wait for locks and
 * turns. Errors of openBody, readDocument, the row and `run`.
 */
export async function withDocument<T>(
  deps: S3Dependencies,
  parts: Judged & Surrounding & { granted: Granted },
  run: (document: never) => Promise<T>,
): Promise<T> {
  const { row, input, headers, identity, exchange } = parts;
  const { form, seed } = identity;
  const { parseDocument } = row;
  if (parseDocument === undefined) return run(undefined as never);
  const { checksumOf } = row;
  const body = openBody(exchange, {
    headers,
    form,
    seed,
    mayBeAbsent: true,
    ...(checksumOf && { checksumOf }),
  });
  if ((body.sizeBytes ?? 0) > LIMITS.shortDocumentBytesMax) await precheck(deps, parts);
  return await readDocument(deps.objects, body, {
    bytesMax: row.bodyBytesMax ?? LIMITS.xmlBodyBytesMax,
    tenant: exchange.tenant,
    patience: exchange.patience,
    turn: (sizeBytes) => exchange.body.documentTurn(sizeBytes),
    async understand(document) {
      const steps = parseDocument(document, input);
      if (document.length <= LIMITS.shortDocumentBytesMax) return finishAtOnce(steps);
      return await deps.turns.finish(turnOf(exchange.tenant, 'documents'), steps);
    },
    use: run,
  });
}

/** What the row refuses by the head alone; `run` refuses it again. */
async function precheck(
  deps: S3Dependencies,
  parts: Judged & Surrounding & { granted: Granted },
): Promise<void> {
  const { row, input, granted, identity } = parts;
  if (row.precheck === undefined) return;
  try {
    await row.precheck(createContext(deps, { ...parts, ...granted, caller: identity.caller }), input);
  } catch (error) {
    // Judged anew by `run`.
    if (!(error instanceof BucketReplaced)) throw error;
  }
}

/**
 * Who asks, and what it may, once the document is there: the client has taken as long for it as it liked, and its key or its
 * rights may be gone since. Errors of Identities.requireStill and of authorise.
 */
export async function authoriseAgain<Parts extends Judged & { granted: Granted }>(
  deps: S3Dependencies,
  parts: Parts,
): Promise<Parts> {
  const { row, identity, granted, facts } = parts;
  if (row.body !== 'xml') return parts;
  const caller = (await presentCaller(deps, identity.caller)) ?? identity.caller;
  const { bucket } = granted;
  const owner = bucket && (await ownerFor(deps, caller, bucket.record));
  if (caller === identity.caller && owner === granted.owner) return parts;
  facts.become(caller);
  const found = bucket && { bucket, isCached: true };
  const present = { ...parts, identity: { ...identity, caller }, found };
  return { ...present, granted: await authorise(deps, present) };
}

/** Requests that meet a bucket which is deleted and made again under them, at most. */
const ATTEMPTS_MAX = 3;

/**
 * The result of `run`, if the caller may do what the document says; on the new bucket of that name, if the old one is gone
 * and the body is not half consumed.
 */
export async function runOperation(
  deps: S3Dependencies,
  parts: Judged & Surrounding & { document: never; granted: Granted },
): Promise<OperationResult> {
  const { row, input, document, identity, facts, record, exchange, isVirtualHost } = parts;
  const judge = (asked: Judged) => exchange.inTime(authorise(deps, asked));
  let granted = row.documentAccess === undefined ? parts.granted : await judge(parts);
  for (let attempt = 1; ; attempt++) {
    if (granted.bucket !== undefined) {
      record.bucketOwner = granted.bucket.record.owner;
      record.metered = granted.bucket;
    }
    const { caller } = identity;
    const { decidesInRun } = row;
    const isStream = row.body === 'stream' || row.body === 'form';
    const takesLong = isStream || row.takesLong === true;
    const stores = storesData(row);
    const surrounding = { facts, record, exchange, isVirtualHost, takesLong, stores, decidesInRun };
    const context = createContext(deps, { ...granted, caller, ...surrounding });
    const run = () => row.run(context, input, document);
    try {
      if (row.memoryBytes === undefined) return await run();
      return await withAnswerMemory(deps, { exchange, sizeBytes: row.memoryBytes(input) }, run);
    } catch (error) {
      const mayRepeat = !isStream && attempt < ATTEMPTS_MAX;
      if (!(error instanceof BucketReplaced) || !mayRepeat) throw error;
      // Of a copy's source it is for the client to try again.
      if (error.present.record.name !== granted.bucket?.record.name) throw error;
      granted = await judge({ ...parts, found: { bucket: error.present, isCached: false } });
    }
  }
}

// ---- 9, 10 ----

/** What ended the request goes to the client, unless the client is gone or half of another answer is out. */
export async function answerError(reply: Reply, error: unknown): Promise<void> {
  const { exchange, record, log } = reply;
  // Work that a client leaves behind fails in many ways, and none of them is worth a line.
  if (exchange.isAborted) return;
  const appError = resolveError(reply, error);
  if (exchange.response.headersSent) {
    record.errorCode = appError.code;
    exchange.response.destroy();
    return;
  }
  try {
    await sendError(reply, appError);
  } catch (fault) {
    log.error({ requestId: record.requestId, err: fault }, 'answer-failed');
    exchange.response.destroy();
  }
}

export function endRecord(deps: S3Dependencies, exchange: Exchange, record: AccessRecord): void {
  record.receivedBytes = exchange.body.receivedBytes;
  record.sentBytes = exchange.sentBytes;
  record.isAborted = exchange.isAborted;
  record.totalMs = deps.clock.monotonicMs() - exchange.startedAtMs;
  const answeredAtMs = exchange.answeredAtMs ?? exchange.startedAtMs;
  record.turnaroundMs = Math.max(0, answeredAtMs - exchange.body.lastByteAtMs);
  meterRequest(deps.traffic, record);
  finishRecord(record, deps);
}

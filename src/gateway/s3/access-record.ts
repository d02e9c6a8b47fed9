// The one record of a request, which is filled in as the request goes through the pipeline. The log line and the metrics are
// made of it here.

import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import { AppError } from '../../types/errors.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import { redact, redactOptional } from '../http/redact.ts';
import { refusalFields } from '../http/refusal-fields.ts';

/** One of several things that a request did: a key of DeleteObjects (service 4.2, delete rule 2). */
export interface ItemRecord {
  /** As AccessRecord has it, of what was done to this one: BATCH.DELETE.OBJECT. */
  logName: string;
  key: string;
  versionId?: string;
  status: number;
  errorCode?: string;
}

export interface AccessRecord {
  /** x-amz-request-id: 16 hex digits in upper case. */
  readonly requestId: string;
  /** x-amz-id-2. */
  readonly hostId: string;
  /** Wall clock, ms since epoch. */
  readonly receivedAtMs: number;
  readonly method: string;
  /** The request line's target, as sent but for secrets and beyond a bound (redact.ts), as host, user agent and referer. */
  readonly requestUri: string;
  /** Of the client, as far as proxies can be believed. */
  readonly remoteAddress: string;
  readonly host: string | undefined;
  readonly userAgent: string | undefined;
  readonly referer: string | undefined;
  readonly tls: { readonly version: string; readonly cipher: string } | undefined;
  /** Name of the operation, once it is known. */
  operation?: string;
  /** REST.PUT.OBJECT and its likes. */
  logName?: string;
  /** Of a signature that was good. */
  signatureVersion?: 'SigV2' | 'SigV4';
  authType?: 'AuthHeader' | 'QueryString' | 'Form';
  accountId?: string;
  bucket?: string;
  /** Once the request was found to be allowed. */
  bucketOwner?: string;
  /** The bucket that it is about, for who is charged. */
  metered?: { readonly record: Pick<BucketRecord, 'owner' | 'bucketId'>; readonly homeShard: number };
  /** Bytes of objects' data that it has stored; that it has deleted for good. */
  storedBytes?: number;
  removedBytes?: number;
  key?: string;
  versionId?: string;
  /** Size of the whole object that was read or written. */
  objectSizeBytes?: number;
  status: number;
  errorCode?: string;
  /** The pair that was refused last, and by what: for the operator, who finds it by the request's id. `message`: as the caller gets it. */
  refusedAccess?: { action: string; resource: string; rule: string; message?: string };
  /** What there was too much of for it to be done, where its operation found that. */
  shedFor?: 'kept';
  /** Bytes of bodies, on the wire. */
  receivedBytes: number;
  sentBytes: number;
  /** From the head of the request to the last byte of the answer. */
  totalMs: number;
  /** From the last byte of the request to the first byte of the answer. */
  turnaroundMs: number;
  /** The client left before its answer was complete. */
  isAborted: boolean;
  /** Things that the request did, how many of them were refused, and the first of these. */
  itemCount: number;
  refusedItemCount: number;
  readonly refusedItems: readonly ItemRecord[];
  item(item: ItemRecord): void;
}

type Head = Pick<
  AccessRecord,
  | 'requestId'
  | 'hostId'
  | 'receivedAtMs'
  | 'method'
  | 'requestUri'
  | 'remoteAddress'
  | 'host'
  | 'userAgent'
  | 'referer'
  | 'tls'
>;

/** Of one request, for its log line: it may be under way for hours, with any number of keys. */
const REFUSED_ITEMS_KEPT = 5;

export function startRecord(head: Head): AccessRecord {
  const refusedItems: ItemRecord[] = [];
  return {
    ...head,
    status: 0,
    receivedBytes: 0,
    sentBytes: 0,
    totalMs: 0,
    turnaroundMs: 0,
    isAborted: false,
    itemCount: 0,
    refusedItemCount: 0,
    refusedItems,
    item(item) {
      this.itemCount++;
      if (item.errorCode === undefined) return;
      this.refusedItemCount++;
      if (refusedItems.length < REFUSED_ITEMS_KEPT) refusedItems.push(item);
    },
  };
}

/** What metrics call a request that matched no operation. */
const NO_OPERATION = 'none';
/** And one whose signature was absent, or was not good. */
const NO_SIGNATURE = 'none';

/** Writes the log line and the metrics of a finished request. */
export function finishRecord(record: AccessRecord, sinks: { log: Logger; telemetry: TelemetryPort }): void {
  const { log, telemetry } = sinks;
  const operation = record.operation ?? NO_OPERATION;
  const labels = { operation, outcome: outcomeOf(record) };
  telemetry.count('holdfast_s3_requests_total', labels);
  telemetry.observe('holdfast_s3_request_duration_seconds', record.totalMs / 1000, labels);
  const { signatureVersion } = record;
  telemetry.count('holdfast_s3_signatures_total', { version: signatureVersion ?? NO_SIGNATURE });
  if (record.shedFor !== undefined)
    telemetry.count('holdfast_requests_shed_total', { reason: record.shedFor });
  if (record.receivedBytes > 0) {
    telemetry.count('holdfast_s3_received_bytes_total', { operation }, record.receivedBytes);
  }
  if (record.sentBytes > 0) telemetry.count('holdfast_s3_sent_bytes_total', { operation }, record.sentBytes);
  log.info(logFields(record), 'request');
}

function outcomeOf(record: AccessRecord): string {
  if (record.isAborted) return 'aborted';
  if (record.status >= 500) return 'server-error';
  return record.status >= 400 ? 'client-error' : 'success';
}

function logFields(record: AccessRecord): object {
  return {
    requestId: record.requestId,
    operation: record.operation,
    logName: record.logName,
    account: record.accountId,
    signatureVersion: record.signatureVersion,
    bucket: redactOptional(record.bucket),
    key: redactOptional(record.key),
    status: record.status,
    errorCode: record.errorCode,
    ...refusalFields(record),
    ...itemFields(record),
    isAborted: record.isAborted || undefined,
    receivedBytes: record.receivedBytes,
    sentBytes: record.sentBytes,
    totalMs: rounded(record.totalMs),
    turnaroundMs: rounded(record.turnaroundMs),
    method: record.method,
    remoteAddress: record.remoteAddress,
    userAgent: record.userAgent,
  };
}

/** A request that did many things is answered 200, whatever became of some of them. */
function itemFields({ itemCount, refusedItemCount, refusedItems }: AccessRecord): object {
  if (itemCount === 0) return {};
  if (refusedItemCount === 0) return { itemCount };
  const shown = refusedItems.map(({ logName, key, versionId, status, errorCode }) => ({
    logName,
    key: redact(key),
    versionId,
    status,
    errorCode,
  }));
  return { itemCount, refusedItemCount, refusedItems: shown };
}

/** Microseconds are all that the clock gives. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}

/** The error for a request that a decision has refused: it tells the callers of the bucket's account why. */
export function accessDenied({ refusedAccess }: AccessRecord): AppError {
  const message = refusedAccess?.message;
  return new AppError('AccessDenied', message === undefined ? {} : { message });
}

// Object lock as requests bring it in headers and answers show it (AWS "Locking objects with Object Lock"): retention and
// legal hold of a new object, who may set and see them, and who bypasses GOVERNANCE. What they protect is decided in the shard
// (types/delete-blocker.ts, types/retention.ts). Documents are in xml/object-lock-xml.ts.
import { parseIsoDate } from '../../../base/text/iso-dates.ts';
import type { AccessPair } from '../../../policy/authorize.ts';
import { RETENTION_PASSED } from '../../../types/delete-blocker.ts';
import { AppError } from '../../../types/errors.ts';
import type { VersionId } from '../../../types/names.ts';
import type { Retention, VersionLock, VersionProtection } from '../../../types/protection.ts';
import { endOfDefault, RETENTION_PERIOD_MAX } from '../../../types/retention.ts';
import { presentBucket } from '../buckets/present-bucket.ts';
import type { OperationContext } from '../context.ts';
import type { OperationRequest } from '../operation.ts';
import { invalidArgument, parseBoolean } from './arguments.ts';
import type { AnswerHeaders } from './object-headers.ts';

const MODE = 'x-amz-object-lock-mode';
const UNTIL = 'x-amz-object-lock-retain-until-date';
const HOLD = 'x-amz-object-lock-legal-hold';
/** For the `options` of rows that make objects. */
export const LOCK_HEADERS: readonly string[] = [MODE, UNTIL, HOLD];
/** For the `options` of rows that delete, or change retention. */
export const BYPASS_HEADER = 'x-amz-bypass-governance-retention';

export const RETENTION_MODES: readonly Retention['mode'][] = ['GOVERNANCE', 'COMPLIANCE'];

/** What a request asks for its object. */
export interface GivenLock {
  readonly retention?: Retention;
  /** False: it says OFF. */
  readonly legalHold?: boolean;
}

// ---- a new object ----

/** undefined: none of the headers. InvalidArgument. Whether the date is to come, and the bucket has a lock: admitLock. */
export function parseLockHeaders(headers: OperationRequest['headers']): GivenLock | undefined {
  const { [MODE]: mode, [UNTIL]: until, [HOLD]: hold } = headers;
  if (mode === undefined && until === undefined && hold === undefined) return undefined;
  const retention = parseRetention(mode, until);
  return { ...(retention && { retention }), ...(hold !== undefined && { legalHold: parseHold(hold) }) };
}

function parseRetention(mode: string | undefined, until: string | undefined): Retention | undefined {
  if (mode === undefined && until === undefined) return undefined;
  if (mode === undefined || until === undefined) {
    const message = `${UNTIL} and ${MODE} must both be supplied`;
    throw invalidArgument({ name: mode === undefined ? MODE : UNTIL, value: '', message });
  }
  const known = RETENTION_MODES.find((each) => each === mode);
  if (known === undefined)
    throw invalidArgument({ name: MODE, value: mode, message: 'Unknown wormMode directive.' });
  const untilMs = parseIsoDate(until);
  if (untilMs !== undefined) return { mode: known, untilMs };
  const message = 'The retain until date must be provided in ISO 8601 format';
  throw invalidArgument({ name: UNTIL, value: until, message });
}

function parseHold(value: string): boolean {
  if (value === 'ON' || value === 'OFF') return value === 'ON';
  throw invalidArgument({ name: HOLD, value, message: "Legal Hold must be either of 'ON' or 'OFF'" });
}

/** What a request that makes an object with a lock of its own needs besides (AWS PutObject, "Permissions"). */
export function lockAccess(resource: string, lock: GivenLock | undefined): readonly AccessPair[] {
  if (lock === undefined) return [];
  const pairs: AccessPair[] = [];
  if (lock.retention !== undefined) pairs.push(['s3:PutObjectRetention', resource]);
  if (lock.legalHold !== undefined) pairs.push(['s3:PutObjectLegalHold', resource]);
  return pairs;
}

/**
 * What the new version is stored with. InvalidArgument for a date that has passed, InvalidRequest in a bucket without object
 * lock. Call it before anything of a body is read.
 */
export async function admitLock(
  context: OperationContext,
  lock: GivenLock | undefined,
): Promise<VersionLock | undefined> {
  if (lock === undefined) return undefined;
  const { retention, legalHold } = lock;
  if (retention !== undefined) requireFuture(context, retention, UNTIL);
  if (!(await hasObjectLock(context)))
    throw new AppError('InvalidRequest', { message: 'Bucket is missing ObjectLockConfiguration' });
  return {
    ...(retention && { retention }),
    ...(legalHold === true && { legalHold: true as const }),
    ...(legalHold === false && { hadLegalHold: true as const }),
  };
}

/**
 * A date to come, and within the years that a default may have: no key may make a disk undeletable for ever. The shard refuses
 * what its own time has passed (blockedRemoval). InvalidArgument; `name` is of the header or element that has the date.
 */
export function requireFuture({ clock }: OperationContext, { untilMs }: Retention, name: string): void {
  const nowMs = clock.wallMs();
  const { years } = RETENTION_PERIOD_MAX;
  const value = new Date(untilMs).toISOString();
  if (untilMs <= nowMs) throw invalidArgument({ name, value, message: RETENTION_PASSED });
  if (untilMs <= endOfDefault({ mode: 'COMPLIANCE', years }, nowMs)) return;
  const message = `The retain until date must be at most ${years} years from now`;
  throw invalidArgument({ name, value, message });
}

// ---- the bucket ----

/** A lock is never taken away again, so a row from memory that has one is right; one that has none may be old. */
async function hasObjectLock(context: OperationContext): Promise<boolean> {
  if (context.bucket().record.objectLock !== undefined) return true;
  return (await presentBucket(context)).objectLock !== undefined;
}

/** For operations on the lock of a version. InvalidRequest. */
export async function requireObjectLock(context: OperationContext): Promise<void> {
  if (!(await hasObjectLock(context))) throw missingObjectLock();
}

export function missingObjectLock(): AppError {
  return new AppError('InvalidRequest', { message: 'Bucket is missing Object Lock Configuration' });
}

// ---- answers ----

/** Shows what a version has, to callers who may read it by its own operation (AWS GetObject). */
export async function addLock(
  headers: AnswerHeaders,
  context: OperationContext,
  read: { resource: string; versionId: VersionId | undefined; protection: VersionProtection },
): Promise<void> {
  const { retention, legalHold, hadLegalHold } = read.protection;
  const { resource, versionId } = read;
  const may = (action: string) =>
    context.mayAlso([[action, resource, undefined, { versionId }]], context.bucket());
  if (retention !== undefined && (await may('s3:GetObjectRetention'))) {
    headers[MODE] = retention.mode;
    headers[UNTIL] = new Date(retention.untilMs).toISOString();
  }
  if ((legalHold || hadLegalHold) && (await may('s3:GetObjectLegalHold')))
    headers[HOLD] = legalHold ? 'ON' : 'OFF';
}

// ---- the bypass ----

/** Whether the request asks for it. InvalidArgument. */
export function asksBypass(headers: OperationRequest['headers']): boolean {
  return parseBoolean(headers, BYPASS_HEADER);
}

/** Whether the caller may have it, on this object: whoever may not goes on without. */
export function mayBypass(
  context: OperationContext,
  resource: string,
  values: Readonly<Record<string, string>> = {},
): Promise<boolean> {
  const pair: AccessPair = ['s3:BypassGovernanceRetention', resource, undefined, { values }];
  return context.mayAlso([pair], context.bucket());
}

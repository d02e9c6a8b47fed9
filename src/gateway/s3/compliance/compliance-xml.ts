// The documents of compliance, of a bucket and of an object (service 2.5, extensions 2.6): what clients put, and what they are
// shown. They are taken with and without a namespace; elements that are not known are passed over, as IsLocked of a document
// that was read before.
import type { Steps } from '../../../base/async/steps.ts';
import { parseIsoDate } from '../../../base/text/iso-dates.ts';
import { textOf, type XmlElement, XmlError } from '../../../base/xml/parse-xml.ts';
import { xmlText } from '../../../base/xml/write-xml.ts';
import { AppError } from '../../../types/errors.ts';
import type { BucketName } from '../../../types/names.ts';
import { type BucketCompliance, isComplianceLocked, RETENTION_PERIOD_MAX } from '../../../types/retention.ts';
import { invalidArgument } from '../request/arguments.ts';
import { s3Document } from '../request/vendor.ts';
import { readXmlBody, requiredText } from '../xml/xml-body.ts';

const BUCKET_ROOT = 'BucketComplianceConfiguration';
const OBJECT_ROOT = 'ObjectComplianceConfiguration';
const INTEGER = /^[+-]?\d{1,15}$/;
/** A date alone says no time. */
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/;
const YEARS_MAX = RETENTION_PERIOD_MAX.years;

// ---- of a bucket ----

/** What a bucket is to have. `lockTime` absent: the request says nothing of it; else ms since epoch. */
export type GivenBucketCompliance = Pick<
  BucketCompliance,
  'isEnabled' | 'retentionDays' | 'conditionalHold' | 'deleteAfterRetention'
> & { lockTime?: number | 'now' | 'off' };

/** Of a bucket that is not protected by compliance. */
const DISABLED: GivenBucketCompliance = {
  isEnabled: false,
  retentionDays: 0,
  conditionalHold: false,
  deleteAfterRetention: false,
};

/** The body of PutBucketCompliance. MalformedXML, InvalidArgument. */
export function* parseBucketCompliance(body: Uint8Array): Steps<GivenBucketCompliance> {
  return yield* readXmlBody(body, BUCKET_ROOT, (root): GivenBucketCompliance => {
    const status = requiredText(root, 'Status');
    // It needs no other element, and those that it has say nothing.
    if (status === 'disabled') return DISABLED;
    if (status !== 'enabled') throw new XmlError(`an unknown Status: ${status}`);
    const lockTime = parseLockTime(textOf(root, 'LockTime'));
    return {
      isEnabled: true,
      ...(lockTime !== undefined && { lockTime }),
      retentionDays: parseRetentionDays(requiredText(root, 'RetentionDays')),
      conditionalHold: parseFlag(root, 'ConditionalHold') ?? false,
      deleteAfterRetention: parseFlag(root, 'DeleteAfterRetention') ?? false,
    };
  });
}

function parseLockTime(text: string | undefined): GivenBucketCompliance['lockTime'] {
  if (text === undefined || text === 'now' || text === 'off') return text;
  return parseInstant('LockTime', text);
}

function parseRetentionDays(text: string): number {
  if (!INTEGER.test(text)) throw new XmlError(`RetentionDays of ${text}`);
  const days = Number(text);
  if (days >= 0 && days <= RETENTION_PERIOD_MAX.days) return days;
  const message = `RetentionDays must be an integer between 0 and ${RETENTION_PERIOD_MAX.days}`;
  throw invalidArgument({ name: 'RetentionDays', value: text, message });
}

/** The settings in the order of extensions 2.6. Of a bucket that is not protected, nothing but that. */
export function bucketComplianceDocument(settings: BucketCompliance | undefined, nowMs: number): string {
  if (!settings?.isEnabled) return s3Document(BUCKET_ROOT, xmlText('Status', 'disabled'));
  const { lockAtMs, retentionDays, conditionalHold, deleteAfterRetention } = settings;
  return s3Document(
    BUCKET_ROOT,
    xmlText('Status', 'enabled'),
    xmlText('LockTime', lockAtMs === undefined ? 'off' : showInstant(lockAtMs)),
    xmlText('IsLocked', isComplianceLocked(settings, nowMs)),
    xmlText('RetentionDays', retentionDays),
    xmlText('ConditionalHold', conditionalHold),
    xmlText('DeleteAfterRetention', deleteAfterRetention),
  );
}

// ---- of an object ----

export interface GivenObjectCompliance {
  retainUntilMs?: number;
  legalHold?: boolean;
  releasesHold?: true;
}

/** The body of PutObjectCompliance, which changes one thing at least. MalformedXML, InvalidArgument. */
export function* parseObjectCompliance(body: Uint8Array): Steps<GivenObjectCompliance> {
  return yield* readXmlBody(body, OBJECT_ROOT, (root) => {
    const retentionTime = textOf(root, 'RetentionTime');
    const conditionalHold = parseFlag(root, 'ConditionalHold');
    const legalHold = parseFlag(root, 'LegalHold');
    if (conditionalHold === true) {
      const message =
        'An object is released from its conditional hold for good: the value can only be false.';
      throw invalidArgument({ name: 'ConditionalHold', value: 'true', message });
    }
    const given: GivenObjectCompliance = {
      ...(retentionTime !== undefined && { retainUntilMs: parseInstant('RetentionTime', retentionTime) }),
      ...(legalHold !== undefined && { legalHold }),
      ...(conditionalHold === false && { releasesHold: true as const }),
    };
    if (Object.keys(given).length === 0) throw new XmlError('nothing to change');
    return given;
  });
}

export interface ShownObjectCompliance {
  /** When it may go; undefined: not known before its hold is released. */
  retainUntilMs: number | undefined;
  /** It is under a conditional hold that nobody has released. */
  isHeld: boolean;
  legalHold: boolean;
  /** Hex; undefined: there is none, or it cannot be had. */
  sha256: string | undefined;
}

export function objectComplianceDocument(shown: ShownObjectCompliance): string {
  const { retainUntilMs, isHeld, legalHold, sha256 } = shown;
  return s3Document(
    OBJECT_ROOT,
    xmlText('RetentionTime', retainUntilMs === undefined ? undefined : showInstant(retainUntilMs)),
    xmlText('ConditionalHold', isHeld),
    xmlText('LegalHold', legalHold),
    xmlText('SHA256', sha256),
  );
}

// ---- of both ----

function parseFlag(root: XmlElement, name: string): boolean | undefined {
  const text = textOf(root, name);
  if (text === undefined) return undefined;
  if (text !== 'true' && text !== 'false') throw new XmlError(`${name} of ${text}`);
  return text === 'true';
}

/** ms since epoch. */
function parseInstant(name: string, text: string): number {
  const timeMs = DATE_TIME.test(text) ? parseIsoDate(text) : undefined;
  if (timeMs !== undefined && timeMs >= 0) return timeMs;
  const message = `${name} must be a date and time of ISO 8601, as 2030-01-31T12:00:00Z`;
  throw invalidArgument({ name, value: text, message });
}

const showInstant = (timeMs: number) => new Date(timeMs).toISOString();

/** InvalidArgument for a time so far from now that it can only be a mistake, which nobody could take back. */
export function requireNear(name: string, timeMs: number, nowMs: number): void {
  const latest = new Date(nowMs);
  latest.setUTCFullYear(latest.getUTCFullYear() + YEARS_MAX);
  if (timeMs <= latest.getTime()) return;
  const message = `${name} must not be more than ${YEARS_MAX} years from now`;
  throw invalidArgument({ name, value: showInstant(timeMs), message });
}

/** Of an object in a bucket that is not protected by compliance. */
export function noCompliance(name: BucketName): AppError {
  return new AppError('NoSuchComplianceConfiguration', { fields: { BucketName: name } });
}

// If-Match and its kin on GET and HEAD, in the precedence of RFC 9110 13.2.2, which is AWS's too. Conditions of writes
// are decided in the shard's commit, not here.
import { parseHttpDate } from '../../../base/text/http-dates.ts';
import type { ETag } from '../../../types/etag.ts';

type Headers = Readonly<Record<string, string>>;

export type ReadVerdict =
  | { kind: 'met' }
  /** 304. */
  | { kind: 'not-modified' }
  /** 412, naming the header that failed. */
  | { kind: 'precondition-failed'; condition: 'If-Match' | 'If-Unmodified-Since' };

/** What conditions are compared with. */
export interface Validators {
  etag: ETag;
  modifiedAtMs: number;
}

const MET: ReadVerdict = { kind: 'met' };
const NOT_MODIFIED: ReadVerdict = { kind: 'not-modified' };
const ETAG_IN_LIST = /(W\/)?"([^"]*)"|[^\s,"]+/g;

/**
 * Decides the conditional headers of a read at `nowMs`. Dates that cannot be parsed are ignored (RFC 9110 13.1.3), as is
 * an If-Modified-Since that is later than now (AWS GetObject; RFC 7232 3.3).
 */
export function judgeRead(headers: Headers, validators: Validators, nowMs: number): ReadVerdict {
  const ifMatch = headers['if-match'];
  if (ifMatch !== undefined) {
    if (!listsETag({ list: ifMatch, etag: validators.etag, mayBeWeak: false })) {
      return { kind: 'precondition-failed', condition: 'If-Match' };
    }
  } else if (isModifiedSince(headers['if-unmodified-since'], validators) === true) {
    return { kind: 'precondition-failed', condition: 'If-Unmodified-Since' };
  }
  const ifNoneMatch = headers['if-none-match'];
  if (ifNoneMatch !== undefined) {
    return listsETag({ list: ifNoneMatch, etag: validators.etag, mayBeWeak: true }) ? NOT_MODIFIED : MET;
  }
  const since = headers['if-modified-since'];
  const isFuture = since !== undefined && (parseHttpDate(since) ?? 0) > nowMs;
  return !isFuture && isModifiedSince(since, validators) === false ? NOT_MODIFIED : MET;
}

/** False when If-Range asks for the whole object because it has changed (RFC 9110 13.1.5). */
export function isRangeStillWanted(ifRange: string | undefined, validators: Validators): boolean {
  if (ifRange === undefined) return true;
  const dateMs = parseHttpDate(ifRange);
  if (dateMs !== undefined) return dateMs === wholeSecondsMs(validators.modifiedAtMs);
  return listsETag({ list: ifRange, etag: validators.etag, mayBeWeak: false });
}

/** Undefined: no date that could be compared. */
function isModifiedSince(date: string | undefined, validators: Validators): boolean | undefined {
  if (date === undefined) return undefined;
  const dateMs = parseHttpDate(date);
  return dateMs === undefined ? undefined : wholeSecondsMs(validators.modifiedAtMs) > dateMs;
}

function wholeSecondsMs(timeMs: number): number {
  return timeMs - (timeMs % 1000);
}

/** ETags may come without quotes, as AWS takes them. Ours are never weak, so a weak one matches only weakly. */
function listsETag(options: { list: string; etag: ETag; mayBeWeak: boolean }): boolean {
  if (options.list.trim() === '*') return true;
  for (const [text, weak, quoted] of options.list.matchAll(ETAG_IN_LIST)) {
    if ((quoted ?? text) === options.etag && (weak === undefined || options.mayBeWeak)) return true;
  }
  return false;
}

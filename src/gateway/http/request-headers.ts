// The headers of a request in two forms: as operations read them, and as they were sent, for signatures; and which of
// them may be sent once only.
// Values are bytes, one character (0-255) for each, as Node gives them.
import { bytesToText } from '../../base/text/uri.ts';
import { AppError } from '../../types/errors.ts';
import { canonicalHeaderName } from '../s3/request/vendor.ts';

export interface RequestHeaders {
  /** By lower-case name, vendor spellings unified, values of repeated headers joined by ", ". */
  readonly values: Readonly<Record<string, string>>;
  /** Lower-case names in the order sent; `sentValues` runs beside it. */
  readonly sentNames: readonly string[];
  readonly sentValues: readonly string[];
}

/** From Node's alternating list of names and values. */
export function readHeaders(rawHeaders: readonly string[]): RequestHeaders {
  // No prototype: a header may be called "__proto__".
  const values: Record<string, string> = Object.create(null);
  const sentNames: string[] = [];
  const sentValues: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const sentName = (rawHeaders[at] as string).toLowerCase();
    const value = rawHeaders[at + 1] as string;
    sentNames.push(sentName);
    sentValues.push(value);
    const name = canonicalHeaderName(sentName);
    const earlier = values[name];
    values[name] = earlier === undefined ? value : `${earlier}, ${value}`;
  }
  return { values, sentNames, sentValues };
}

/** What a value says where it is compared with texts: clients send UTF-8. Bytes that are none are Latin-1, as HTTP once had it. */
export function headerText(value: string | undefined): string | undefined {
  return value === undefined ? undefined : (bytesToText(value) ?? value);
}

/** HTTP's own that decide something and have one value (RFC 9110 5.3: only lists may be split over several lines). */
const SINGLE = new Set([
  'authorization',
  'content-disposition',
  'content-length',
  'content-md5',
  'content-type',
  'date',
  'destination',
  'expires',
  'host',
  'if-modified-since',
  'if-range',
  'if-unmodified-since',
  'overwrite',
  'range',
  'transfer-encoding',
]);
const SINGLE_PREFIXES = ['x-amz-', 'x-svc-', 'response-'];
/** Among them the lists: AWS joins metadata of one name by commas, and SDKs send one header for each attribute. */
const LISTS = new Set(['x-amz-object-attributes', 'x-amz-optional-object-attributes']);
const LIST_PREFIX = 'x-amz-meta-';

/**
 * InvalidArgument where a header that decides something is there twice, in whatever spelling: a proxy and this server, or
 * a signature and an operation, might each go by another one. Lists (If-Match, Cache-Control, Via ...) may be repeated.
 */
export function requireSingleHeaders({ sentNames }: RequestHeaders): void {
  const seen = new Set<string>();
  for (const sentName of sentNames) {
    const name = canonicalHeaderName(sentName);
    if (!isSingle(name)) continue;
    if (seen.has(name)) {
      const message = `The header ${name} may be sent once only.`;
      throw new AppError('InvalidArgument', { message, fields: { ArgumentName: name } });
    }
    seen.add(name);
  }
}

function isSingle(name: string): boolean {
  if (SINGLE.has(name)) return true;
  if (!SINGLE_PREFIXES.some((prefix) => name.startsWith(prefix))) return false;
  return !LISTS.has(name) && !name.startsWith(LIST_PREFIX);
}

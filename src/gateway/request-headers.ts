// The headers of a request in two forms: as operations read them, and as they were sent, for signatures.
// Values are bytes, one character (0-255) for each, as Node gives them.
import { canonicalHeaderName } from './s3/vendor.ts';

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

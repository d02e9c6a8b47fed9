// How S3 listings roll keys up (AWS "Organizing objects using prefixes"). Where pages begin and end is the queries'.
import { utf8 } from '../base/bytes/bytes.ts';
import { findText } from '../base/text/find-text.ts';
import { LIMITS } from './limits.ts';

export interface Grouping {
  prefix: string;
  /** Any text; absent or empty: nothing is rolled up. */
  delimiter?: string;
}

/** What `key`, which begins with the prefix, is listed as: a common prefix, or (undefined) itself. */
export function commonPrefixOf(key: string, { prefix, delimiter }: Grouping): string | undefined {
  if (!delimiter) return undefined;
  const at = findText(key, delimiter, prefix.length);
  return at < 0 ? undefined : key.slice(0, at + delimiter.length);
}

/**
 * Where a page after `marker` goes on: behind that key, or behind the whole common prefix that it lies in (or is),
 * because an earlier page has shown that already.
 */
export function pageAfter(marker: string, grouping: Grouping): { kind: 'key' | 'prefix'; after: string } {
  const isInside = marker.startsWith(grouping.prefix);
  const rolledUp = isInside ? commonPrefixOf(marker, grouping) : undefined;
  return rolledUp === undefined ? { kind: 'key', after: marker } : { kind: 'prefix', after: rolledUp };
}

/**
 * Bytes of a prefix or marker that a client sent, cut where no key reaches: what is longer than every key compares
 * with keys as its first 1025 bytes do.
 */
export function markerBytes(text: string): Uint8Array {
  return utf8(text).subarray(0, LIMITS.keyBytesMax + 1);
}

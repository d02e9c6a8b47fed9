// The string to sign of SigV2, exactly as S3 builds it (AWS "Signing and authenticating REST requests"). Texts hold one
// character (0-255) for each byte.
import { trimBlanks } from '../../base/text/trim-blanks.ts';
import { invalidArgument } from '../s3/request/arguments.ts';
import { RESPONSE_PARAMETERS } from '../s3/request/response-overrides.ts';
import { KNOWN_SUB_RESOURCES, SELECTOR_SUB_RESOURCES } from '../s3/request/sub-resources.ts';
import type { Target } from '../s3/request/target.ts';
import { isVendorHeader } from '../s3/request/vendor.ts';
import type { SignedParts } from './canonical-request.ts';

/** Signed with their values, decoded; of all other sub-resources only the name counts, whatever value it has. */
const VALUED: ReadonlySet<string> = new Set([
  ...[...KNOWN_SUB_RESOURCES].filter((name) => !SELECTOR_SUB_RESOURCES.has(name)),
  'select-type',
  ...RESPONSE_PARAMETERS,
]);
/** Whatever may choose or change an operation must be here: what is not signed, anybody can add to a presigned URL. */
const SIGNED: ReadonlySet<string> = new Set([...KNOWN_SUB_RESOURCES, ...VALUED]);
const PARAMETER_IN_VALUE = /&([^&=]*)(=?)/g;

/**
 * The strings that a client may have signed, the right one first. A bucket's resource ends in a slash although its path
 * does not (s3-behaviour 15); clients that sign the path as they send it mean the same.
 */
export function sigV2StringsToSign(
  parts: SignedParts,
  dateLine: string,
): readonly [right: string, ...others: string[]] {
  const { values } = parts.headers;
  const head = [parts.method, values['content-md5'], values['content-type'], dateLine]
    .map((line) => `${trimBlanks(line ?? '')}\n`)
    .join('');
  const before = head + vendorHeaders(parts);
  const subResources = subResourcesOf(parts.target);
  const path = resourcePath(parts.target);
  const asSent = before + path + subResources;
  const isBareBucket = parts.target.level === 'bucket' && !path.endsWith('/');
  return isBareBucket ? [`${before}${path}/${subResources}`, asSent] : [asSent];
}

/** The path as sent, undecoded, behind the bucket where the host names it. */
function resourcePath({ path, bucket, isVirtualHost }: Target): string {
  return isVirtualHost ? `/${bucket}${path}` : path;
}

/** Sorted by name; each is there once (query.ts). InvalidArgument for a value that could be taken for several parameters. */
function subResourcesOf({ query }: Target): string {
  const named = new Map<string, string>();
  for (const [name, value] of query.pairs) {
    if (!SIGNED.has(name)) continue;
    if (!VALUED.has(name)) {
      named.set(name, name);
      continue;
    }
    requireUnambiguous(name, value);
    named.set(name, `${name}=${value}`);
  }
  if (named.size === 0) return '';
  return `?${[...named.keys()]
    .sort()
    .map((name) => named.get(name))
    .join('&')}`;
}

/**
 * Values are signed decoded, so `a=x%26versionId%3DV` gives the same string as `a=x&versionId=V`. Of the requests that
 * share a string the one that reads every signed name behind an ampersand as a parameter is taken, and no other: a value
 * with such a name in it is refused, one with other ampersands and equals signs is not.
 */
function requireUnambiguous(name: string, value: string): void {
  for (const [, inner = '', mark] of value.matchAll(PARAMETER_IN_VALUE)) {
    if (!SIGNED.has(inner) || VALUED.has(inner) !== (mark === '=')) continue;
    const message = `A value that holds the parameter ${inner} cannot be signed by version 2.`;
    throw invalidArgument({ name, value, message });
  }
}

/**
 * Every header that means something to the service, under the name it was sent by, sorted, values of a repeated one
 * joined. Those of a query count as headers, as in hoisted-headers.ts: the header that was sent wins.
 */
function vendorHeaders({ headers, target }: SignedParts): string {
  const lines = new Map<string, string>();
  for (const [at, name] of headers.sentNames.entries()) {
    if (!isVendorHeader(name)) continue;
    const value = trimBlanks(headers.sentValues[at] ?? '');
    const earlier = lines.get(name);
    lines.set(name, earlier === undefined ? value : `${earlier},${value}`);
  }
  const ofQuery = new Set<string>();
  for (const [parameter, value] of target.query.pairs) {
    const name = parameter.toLowerCase();
    if (!name.startsWith('x-amz-') || lines.has(name) || ofQuery.has(name)) continue;
    ofQuery.add(name);
    lines.set(name, value);
  }
  return [...lines.keys()]
    .sort()
    .map((name) => `${name}:${lines.get(name)}\n`)
    .join('');
}

// The query of a request: once as parameters for operations, once as bytes for signatures. Of what a parameter means only
// this is known here: one that an operation or a signature reads is there once.
import { bytesToText, queryDecode } from '../../../base/text/uri.ts';
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { QueryParameters } from '../operation.ts';
import { RESPONSE_PARAMETERS } from './response-overrides.ts';
import { KNOWN_SUB_RESOURCES, OTHER_PARAMETERS } from './sub-resources.ts';

export interface Query {
  readonly parameters: QueryParameters;
  /** Every name and value in the order sent, decoded, one character (0-255) for each byte. */
  readonly pairs: readonly (readonly [name: string, value: string])[];
}

/** Of signatures of version 2; those of version 4 begin with x-amz-. */
const SIGV2_PARAMETERS = ['AWSAccessKeyId', 'Expires', 'Signature'];
const KNOWN: ReadonlySet<string> = new Set([
  ...KNOWN_SUB_RESOURCES,
  ...OTHER_PARAMETERS,
  ...RESPONSE_PARAMETERS,
  ...SIGV2_PARAMETERS,
]);
const EMPTY: Query = { parameters: new Map(), pairs: [] };

/**
 * Reads what stands behind the question mark. InvalidURI, which names `uri`, for bad encodings, NUL, and what is no UTF-8;
 * InvalidArgument for a parameter that somebody reads and that is there twice: of unknown ones the first counts.
 */
export function parseQuery(raw: string, uri = ''): Query {
  if (raw === '') return EMPTY;
  const known = new Set<string>();
  const parameters = new Map<string, string>();
  const pairs: [string, string][] = [];
  const sent = raw.split('&');
  if (sent.length > LIMITS.queryParametersMax) {
    const message = `A request has at most ${LIMITS.queryParametersMax} query parameters.`;
    throw new AppError('InvalidArgument', { message });
  }
  for (const pair of sent) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = queryDecode(equals === -1 ? pair : pair.slice(0, equals));
    const value = equals === -1 ? '' : queryDecode(pair.slice(equals + 1));
    if (name === undefined || value === undefined) throw invalidUri(uri);
    pairs.push([name, value]);
    const nameText = checkedText(name, uri);
    const valueText = checkedText(value, uri);
    requireSingle(nameText, known);
    if (!parameters.has(nameText)) parameters.set(nameText, valueText);
  }
  return { parameters, pairs };
}

function requireSingle(name: string, known: Set<string>): void {
  const lowerName = name.toLowerCase();
  // Of these any spelling may become a header (hoisted-headers.ts).
  const knownName = lowerName.startsWith('x-amz-') ? lowerName : KNOWN.has(name) ? name : undefined;
  if (knownName === undefined) return;
  if (known.has(knownName)) {
    const message = `The query parameter ${name} may be sent once only.`;
    throw new AppError('InvalidArgument', { message, fields: { ArgumentName: name } });
  }
  known.add(knownName);
}

/** The text of decoded bytes. InvalidURI, which names `uri`, when they are no UTF-8 or hold a NUL. */
export function checkedText(bytes: string, uri: string): string {
  const text = bytesToText(bytes);
  if (text === undefined || text.includes('\u0000')) throw invalidUri(uri);
  return text;
}

/** Names the path alone: keys of customers and signatures stand in queries. */
export function invalidUri(uri: string): AppError {
  return new AppError('InvalidURI', { fields: { URI: uri.split(/[?#]/, 1)[0] ?? '' } });
}

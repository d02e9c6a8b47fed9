// The query of a request: once as parameters for operations, once as bytes for signatures. Nothing is interpreted here.

import { bytesToText, queryDecode } from '../../lib/uri.ts';
import { AppError } from '../../model/errors.ts';
import type { QueryParameters } from './operation.ts';

export interface Query {
  readonly parameters: QueryParameters;
  /** Every name and value in the order sent, decoded, one character (0-255) for each byte. */
  readonly pairs: readonly (readonly [name: string, value: string])[];
}

const EMPTY: Query = { parameters: new Map(), pairs: [] };

/** Reads what stands behind the question mark. InvalidURI for bad encodings, NUL, and what is no UTF-8. */
export function parseQuery(raw: string): Query {
  if (raw === '') return EMPTY;
  const parameters = new Map<string, string>();
  const pairs: [string, string][] = [];
  for (const pair of raw.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = queryDecode(equals === -1 ? pair : pair.slice(0, equals));
    const value = equals === -1 ? '' : queryDecode(pair.slice(equals + 1));
    if (name === undefined || value === undefined) throw invalidUri(raw);
    pairs.push([name, value]);
    const nameText = checkedText(name, raw);
    const valueText = checkedText(value, raw);
    // The first value wins where a name is repeated, as AWS does.
    if (!parameters.has(nameText)) parameters.set(nameText, valueText);
  }
  return { parameters, pairs };
}

/** The text of decoded bytes. InvalidURI when they are no UTF-8 or hold a NUL. */
export function checkedText(bytes: string, raw: string): string {
  const text = bytesToText(bytes);
  if (text === undefined || text.includes('\u0000')) throw invalidUri(raw);
  return text;
}

export function invalidUri(raw: string): AppError {
  return new AppError('InvalidURI', { fields: { URI: raw } });
}

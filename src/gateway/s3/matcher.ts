// Which operation a request means: method and level, then sub-resources, parameters, a header and a key. The most specific row
// wins whatever the order of the list; rows that could tie are refused when the matcher is made (style 3).
import { assert } from '../../base/assert.ts';
import { AppError } from '../../types/errors.ts';
import type { Level, OperationMatch, QueryParameters } from './operation.ts';
import { invalidArgument } from './request/arguments.ts';
import { KNOWN_SUB_RESOURCES, SELECTOR_SUB_RESOURCES } from './request/sub-resources.ts';

/** What the matcher needs of a row, of operations that are there and of those that are not. */
export interface MatchRow {
  readonly name: string;
  readonly match: OperationMatch;
  /** As OperationRow.claims; '*' claims every sub-resource. */
  readonly parameters?: readonly string[];
}

export interface MatchRequest {
  method: string;
  level: Level;
  /** '' but on object level. */
  key: string;
  query: QueryParameters;
  headers: Readonly<Record<string, string>>;
}

export type Matcher<Row extends MatchRow> = (request: MatchRequest) => Row;

export const ANY_PARAMETER = '*';

interface Term {
  name: string;
  value?: string;
}

interface Candidate<Row> {
  row: Row;
  terms: readonly Term[];
  header: string | undefined;
  keys: ReadonlySet<string> | undefined;
  specificity: number;
  /** Sub-resources that the row understands; undefined: all. */
  parameters: ReadonlySet<string> | undefined;
}

/** Makes the function that finds the row of a request, or throws why there is none: 400, 405. */
export function createMatcher<Row extends MatchRow>(rows: readonly Row[]): Matcher<Row> {
  const buckets = new Map<string, Candidate<Row>[]>();
  for (const row of rows) {
    const place = `${row.match.method} ${row.match.on}`;
    const candidates = buckets.get(place) ?? [];
    candidates.push(candidateOf(row));
    buckets.set(place, candidates);
  }
  for (const candidates of buckets.values()) {
    candidates.sort((a, b) => b.specificity - a.specificity);
    assertNoTies(candidates);
  }
  return (request) => {
    const candidates = buckets.get(`${request.method} ${request.level}`) ?? [];
    const winner = candidates.find((candidate) => isMatch(candidate, request));
    if (winner === undefined) throw refuseMethod(request, rows);
    if (request.query.size > 0 && winner.parameters !== undefined)
      requireParameters(winner.parameters, request, rows);
    return winner.row;
  };
}

function candidateOf<Row extends MatchRow>(row: Row): Candidate<Row> {
  const { query = [], header, keys } = row.match;
  const terms = query.map((term): Term => {
    const equals = term.indexOf('=');
    return equals === -1 ? { name: term } : { name: term.slice(0, equals), value: term.slice(equals + 1) };
  });
  const parameters = new Set([...terms.map((term) => term.name), ...(row.parameters ?? [])]);
  return {
    row,
    terms,
    header,
    keys,
    specificity: specificityOf(terms) + (header === undefined ? 0 : 2) + (keys === undefined ? 0 : 1),
    parameters: parameters.has(ANY_PARAMETER) ? undefined : parameters,
  };
}

/** What names a sub-resource outweighs parameters, these a header, and this a key: PUT ?tagging with a copy source tags. */
function specificityOf(terms: readonly Term[]): number {
  return terms.reduce((sum, { name }) => sum + (SELECTOR_SUB_RESOURCES.has(name) ? 16 : 4), 0);
}

function isMatch(
  candidate: Candidate<MatchRow>,
  { key, query, headers }: Pick<MatchRequest, 'key' | 'query' | 'headers'>,
): boolean {
  if (candidate.keys !== undefined && !takesKey(candidate, key, query)) return false;
  if (candidate.header !== undefined && headers[candidate.header] === undefined) return false;
  for (const { name, value } of candidate.terms) {
    const given = query.get(name);
    if (given === undefined || (value !== undefined && value !== given)) return false;
  }
  return true;
}

/** What a row for some keys does not understand is for the row of all keys: a stored version of such a key, by its id. */
function takesKey({ keys, parameters }: Candidate<MatchRow>, key: string, query: QueryParameters): boolean {
  if (keys?.has(key) !== true) return false;
  for (const name of query.keys()) {
    if (KNOWN_SUB_RESOURCES.has(name) && parameters?.has(name) === false) return false;
  }
  return true;
}

/** Two rows tie when one request can ask for both: equally specific, and neither would refuse the other's terms. */
function assertNoTies(candidates: readonly Candidate<MatchRow>[]): void {
  for (const [at, one] of candidates.entries()) {
    for (const other of candidates.slice(at + 1)) {
      if (one.specificity !== other.specificity) continue;
      const isRefused = refuses(one, other) && refuses(other, one);
      const isContradiction = one.terms.some(({ name, value }) =>
        other.terms.some((term) => term.name === name && term.value !== value),
      );
      assert(isRefused || isContradiction, `${one.row.name} and ${other.row.name} match the same requests`);
    }
  }
}

function refuses(one: Candidate<MatchRow>, other: Candidate<MatchRow>): boolean {
  return other.terms.some(({ name }) => KNOWN_SUB_RESOURCES.has(name) && one.parameters?.has(name) === false);
}

/** A known sub-resource must never run as the plain operation: PUT ?torrent would overwrite the object. */
function requireParameters(
  parameters: ReadonlySet<string>,
  request: MatchRequest,
  rows: readonly MatchRow[],
): void {
  const selectors: string[] = [];
  let unexpected: string | undefined;
  for (const name of request.query.keys()) {
    if (!KNOWN_SUB_RESOURCES.has(name)) continue;
    if (SELECTOR_SUB_RESOURCES.has(name)) selectors.push(name);
    if (!parameters.has(name)) unexpected ??= name;
  }
  if (unexpected === undefined) return;
  if (selectors.length > 1) {
    const message = `Conflicting query string parameters: ${selectors.join(', ')}`;
    throw invalidArgument({ name: 'ResourceType', value: selectors[0] ?? '', message });
  }
  if (SELECTOR_SUB_RESOURCES.has(unexpected)) throw refuseSubResource(unexpected, request, rows);
  const message =
    unexpected === 'versionId'
      ? 'This operation does not accept a version-id.'
      : `This operation does not accept the query parameter ${unexpected}.`;
  throw invalidArgument({ name: unexpected, value: request.query.get(unexpected) ?? '', message });
}

/** 405 where the sub-resource exists on this level for other methods, else 400. */
function refuseSubResource(name: string, request: MatchRequest, rows: readonly MatchRow[]): AppError {
  const methods = methodsOf(rows, ({ match }) => match.on === request.level && namesTerm(match, name));
  if (methods.length > 0) return methodNotAllowed(request.method, methods, name.toUpperCase());
  const message = `The sub-resource ${name} does not exist here.`;
  return invalidArgument({ name: 'ResourceType', value: name, message });
}

function refuseMethod(request: MatchRequest, rows: readonly MatchRow[]): AppError {
  const selector = [...request.query.keys()].find((name) => SELECTOR_SUB_RESOURCES.has(name));
  if (selector !== undefined) return refuseSubResource(selector, request, rows);
  const methods = methodsOf(
    rows,
    ({ match }) => match.on === request.level && match.query === undefined && match.header === undefined,
  );
  return methodNotAllowed(
    request.method,
    methods,
    request.level === 'object' ? 'OBJECT' : request.level.toUpperCase(),
  );
}

function namesTerm(match: OperationMatch, name: string): boolean {
  return match.query?.some((term) => term === name || term.startsWith(`${name}=`)) ?? false;
}

function methodsOf(rows: readonly MatchRow[], isMeant: (row: MatchRow) => boolean): string[] {
  return [...new Set(rows.filter(isMeant).map((row) => row.match.method))].sort();
}

function methodNotAllowed(method: string, allowed: readonly string[], resourceType: string): AppError {
  return new AppError('MethodNotAllowed', {
    fields: { Method: method, ResourceType: resourceType },
    headers: { Allow: allowed.join(', ') },
  });
}

// Pages of lists (AWS "IAM API: Marker, MaxItems, IsTruncated"): of what is at hand, and of stored rows. A page may have fewer
// items than were asked for although there are more: what one page reads and answers is bounded.

import type { IdentityStore, RecordOf } from '../../accounts/identity-store.ts';
import { xmlText } from '../../base/xml/write-xml.ts';
import type { AppError } from '../../types/errors.ts';
import { type IdentityKind, identityKeys } from '../../types/records/identity-records.ts';
import { readMarker, writeMarker } from './identity-parameters.ts';
import { validationError } from './parameter-rules.ts';
import { xmlMembers } from './query-protocol.ts';

export interface PageRequest {
  readonly Marker: string | undefined;
  readonly MaxItems: number;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Where the next page goes on; undefined: this is the last one. */
  readonly next: string | undefined;
}

/** Rows of one look. A role may have 192 KiB of texts. */
const ROWS_AT_ONCE = 20;
const ROWS_LOOKED_AT_MAX = 1000;
/** Of texts in a page: one more item may go beyond, and one more of each section. */
export const PAGE_CHARACTERS_MAX = 1024 * 1024;

/** Of a short list, in the order of its keys. */
export function pageOf<T>(
  items: readonly T[],
  keyOf: (item: T) => string,
  { Marker, MaxItems }: PageRequest,
): Page<T> {
  const after = readMarker(Marker);
  const keyed = items.map((item) => ({ item, key: keyOf(item) })).sort((a, b) => (a.key < b.key ? -1 : 1));
  const rest = after === undefined ? keyed : keyed.filter(({ key }) => key > after);
  const page = rest.slice(0, MaxItems);
  return {
    items: page.map(({ item }) => item),
    next: rest.length > MaxItems ? page.at(-1)?.key : undefined,
  };
}

export interface KeyedRow<K extends IdentityKind> {
  readonly key: string;
  readonly record: RecordOf<K>;
}

/** What a list makes of a row that it shows. */
export interface ShownRow<T> {
  readonly key: string;
  readonly item: T;
}

export interface RowsOfList<K extends IdentityKind, T> {
  readonly kind: K;
  readonly prefix: string;
  /** Leaves out those that the list does not show. */
  show(rows: readonly KeyedRow<K>[]): Promise<readonly ShownRow<T>[]> | readonly ShownRow<T>[];
  /** What an item has of texts. Of a row's record nothing else may be kept: a user has 64 KiB of policies, a role 192. */
  charactersOf(item: T): number;
}

/** Of stored rows, in the order of their keys. Throws ValidationError for a marker that is of another list. */
export async function pageOfRows<K extends IdentityKind, T>(
  store: IdentityStore,
  { kind, prefix, show, charactersOf }: RowsOfList<K, T>,
  { Marker, MaxItems }: PageRequest,
): Promise<Page<T>> {
  let after = readMarker(Marker);
  if (after !== undefined && !after.startsWith(prefix)) throw invalidMarker(Marker);
  const shown: ShownRow<T>[] = [];
  const pageUpTo = (next: string | undefined) => ({ items: shown.map(({ item }) => item), next });
  let charactersCount = 0;
  for (let lookedAt = 0; lookedAt < ROWS_LOOKED_AT_MAX; lookedAt += ROWS_AT_ONCE) {
    // Looks at shards of this thread wait for nothing, and many lists are made at once.
    await store.turn();
    const rows = await store.range({ prefix, after, limit: ROWS_AT_ONCE });
    const ofKind = rows.filter((row): row is KeyedRow<K> => row.record.kind === kind);
    for (const row of await show(ofKind)) {
      if (shown.length === MaxItems || charactersCount > PAGE_CHARACTERS_MAX)
        return pageUpTo(shown.at(-1)?.key);
      shown.push(row);
      charactersCount += charactersOf(row.item);
    }
    after = rows.at(-1)?.key;
    if (rows.length < ROWS_AT_ONCE || after === undefined) return pageUpTo(undefined);
  }
  return pageUpTo(after);
}

/** A list of several kinds of things, one behind the other. */
export interface Section<T> {
  /** Of its keys, which no other section has. */
  readonly prefix: string;
  read(page: PageRequest): Promise<Page<T>>;
}

/** Throws ValidationError for a marker that is of another list. */
export async function pageOfSections<T>(
  sections: readonly Section<T>[],
  { Marker, MaxItems }: PageRequest,
  charactersOf: (item: T) => number = () => 0,
): Promise<Page<T>> {
  const after = readMarker(Marker);
  const first = after === undefined ? 0 : sections.findIndex(({ prefix }) => after.startsWith(prefix));
  if (first < 0) throw invalidMarker(Marker);
  const items: T[] = [];
  let charactersCount = 0;
  for (const [at, { prefix, read }] of sections.slice(first).entries()) {
    if (items.length === MaxItems || charactersCount > PAGE_CHARACTERS_MAX) return { items, next: prefix };
    const page = await read({ Marker: at === 0 ? Marker : undefined, MaxItems: MaxItems - items.length });
    items.push(...page.items);
    for (const item of page.items) charactersCount += charactersOf(item);
    if (page.next !== undefined) return { items, next: page.next };
  }
  return { items, next: undefined };
}

function invalidMarker(marker: string | undefined): AppError {
  return validationError(`Invalid Marker: ${marker}`);
}

/** A list of stored things with a path, those within `pathPrefix`: what is written of each. */
export function listBelow<K extends 'user' | 'group' | 'role'>(
  { kind, pathPrefix }: { kind: K; pathPrefix: string },
  xmlOf: (record: RecordOf<K>) => string,
): RowsOfList<K, string> {
  return {
    kind,
    prefix: identityKeys[kind](''),
    show: (rows) =>
      rows.flatMap(({ key, record }) =>
        (record as RecordOf<'user' | 'group' | 'role'>).path.startsWith(pathPrefix)
          ? [{ key, item: xmlOf(record) }]
          : [],
      ),
    charactersOf: (xml) => xml.length,
  };
}

/** The end of every list. */
export function pageXml(name: string, members: readonly string[], next: string | undefined): string {
  return xmlMembers(name, members) + pageEndXml(next);
}

export function pageEndXml(next: string | undefined): string {
  return xmlText('IsTruncated', next !== undefined) + xmlText('Marker', next && writeMarker(next));
}

// Forms that records of /api/v1 have in common (extensions 1.1): instants, dates, the contact block, the parent block; and
// what queries have in common: pages and dates.

import type { ApiCaller, ParentView } from '../../accounts/tenancy.ts';
import { AppError } from '../../types/errors.ts';
import { dateOf, parseDate } from '../../types/months.ts';
import { CONTACT_FIELDS, type Contact, type ContactChanges, type ContactField } from '../../types/tenancy.ts';
import { DAY_MS } from '../../types/usage.ts';
import { type FieldsOf, type JsonSchema, type OptionalField, optional } from '../http/json-schemas.ts';
import type { ListOf } from './envelope.ts';

export const INTEGER: JsonSchema = { type: 'integer' };
export const NUMBER: JsonSchema = { type: 'number' };
export const TEXT: JsonSchema = { type: 'string' };
export const BOOLEAN: JsonSchema = { type: 'boolean' };
export const TEXT_OR_NULL: JsonSchema = { type: ['string', 'null'] };
export const NUMBER_OR_NULL: JsonSchema = { type: ['number', 'null'] };
export const INTEGER_OR_NULL: JsonSchema = { type: ['integer', 'null'] };
export const INSTANT: JsonSchema = { type: 'string', format: 'date-time' };
export const DATE: JsonSchema = { type: 'string', format: 'date' };
/** Texts that are taken: longer ones are nobody's name or address. */
const TEXT_CHARACTERS_MAX = 1024;
export const TEXT_IN: JsonSchema = { type: 'string', maxLength: TEXT_CHARACTERS_MAX };
export const TEXT_OR_NULL_IN: JsonSchema = { type: ['string', 'null'], maxLength: TEXT_CHARACTERS_MAX };
const ID_MAX = Number.MAX_SAFE_INTEGER;
export const ID: JsonSchema = { type: 'integer', minimum: 1, maximum: ID_MAX };
export const described = (schema: JsonSchema, description: string): JsonSchema => ({
  ...schema,
  description,
});

/** Where a record says that it has no such instant (extensions 1.4). */
export const NO_INSTANT = '0001-01-01T00:00:00.000Z';

export function instantOf(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

/** 00:00 UTC of a day. */
export function dayInstantOf(day: number): string {
  return instantOf(day * DAY_MS);
}

// ---- pages ----

export interface PageQuery {
  page?: number;
  size?: number;
}

export const PAGE_SIZE_DEFAULT = 100;
export const PAGE_SIZE_MAX = 1000;

export const PAGE_QUERY: FieldsOf<PageQuery> = {
  page: optional(described({ type: 'integer', minimum: 0, maximum: ID_MAX }, 'From 1 on; 1 when absent.')),
  size: optional(
    described(
      { type: 'integer', minimum: 1, maximum: ID_MAX },
      `Records of a page; ${PAGE_SIZE_DEFAULT} when absent, at most ${PAGE_SIZE_MAX}.`,
    ),
  ),
};

export function pageOf({ page = 1, size = PAGE_SIZE_DEFAULT }: PageQuery): { page: number; size: number } {
  return { page: Math.max(1, page), size: Math.min(size, PAGE_SIZE_MAX) };
}

export function listOf<View, Item>(
  { items, total }: { items: readonly View[]; total: number },
  page: { page: number; size: number },
  wireOf: (view: View) => Item,
): ListOf<Item> {
  return { items: items.map(wireOf), ...page, total };
}

// ---- dates ----

export const DATE_QUERY: OptionalField = optional(
  described({ type: 'string' }, 'A day: YYYY-MM-DD or YYYY/MM/DD. Inclusive.'),
);

/** Days since 1970, of a date in either form. Throws ValidationError that names the parameter. */
export function dayIn(field: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const day = parseDate(/^\d{4}\/\d{2}\/\d{2}$/.test(text) ? text.replaceAll('/', '-') : text);
  if (day === undefined) throw fieldError(field, 'must be a day as YYYY-MM-DD or YYYY/MM/DD');
  return day;
}

export function dateIn(field: string, text: string | undefined): string | undefined {
  const day = dayIn(field, text);
  return day === undefined ? undefined : dateOf(day);
}

export function fieldError(field: string, problem: string): AppError {
  return new AppError('ValidationError', { message: `${field} ${problem}`, fields: { [field]: problem } });
}

/** Errors of `act` that name fields as src/accounts does name them as the body had them: `names` has those that differ. */
export async function inWireNames<T>(
  names: Readonly<Record<string, string>>,
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof AppError) || Object.keys(error.fields).length === 0) throw error;
    const { code, status, headers } = error;
    const fields = Object.fromEntries(
      Object.entries(error.fields).map(([field, problem]) => [names[field] ?? field, problem]),
    );
    const told = Object.entries(fields).map((problem) => problem.join(' '));
    const message = code === 'ValidationError' ? told.join('; ') : error.message;
    throw new AppError(code, { status, headers, fields, message, cause: error });
  }
}

// ---- contact block ----

export type ContactBlock = Record<ContactField, string | null>;

function perContactField<Value>(each: (field: ContactField) => Value): Record<ContactField, Value> {
  return Object.fromEntries(CONTACT_FIELDS.map((field) => [field, each(field)])) as Record<
    ContactField,
    Value
  >;
}

export const CONTACT_BLOCK: FieldsOf<ContactBlock> = perContactField(() => TEXT_OR_NULL);
export const CONTACT_INPUT: FieldsOf<ContactChanges> = perContactField(() => optional(TEXT_OR_NULL_IN));

export function contactBlockOf(contact: Contact): ContactBlock {
  return perContactField((field) => contact[field] ?? null);
}

/** The contact fields that a body has. */
export function contactIn(body: ContactChanges): ContactChanges | undefined {
  const given = CONTACT_FIELDS.filter((field) => body[field] !== undefined);
  if (given.length === 0) return undefined;
  return Object.fromEntries(given.map((field) => [field, body[field]]));
}

// ---- parent block ----

export interface ParentBlock {
  controlAccountId?: number;
  controlAccountName?: string;
  controlAccountEmail?: string;
  governanceAccountId?: number | null;
  governanceAccountName?: string | null;
  channelAccountId?: number | null;
  channelAccountName?: string | null;
  channelAccountEmail?: string | null;
}

const OF_GOVERNANCE = 'Only operators see it.';
const OF_CONTROL = 'Not shown to control accounts.';

export const GOVERNANCE_BLOCK = {
  governanceAccountId: optional(described(INTEGER_OR_NULL, OF_GOVERNANCE)),
  governanceAccountName: optional(described(TEXT_OR_NULL, OF_GOVERNANCE)),
};
export const PARENT_BLOCK: FieldsOf<ParentBlock> = {
  controlAccountId: optional(described(INTEGER, OF_CONTROL)),
  controlAccountName: optional(described(TEXT, OF_CONTROL)),
  controlAccountEmail: optional(described(TEXT, OF_CONTROL)),
  ...GOVERNANCE_BLOCK,
  channelAccountId: optional(INTEGER_OR_NULL),
  channelAccountName: optional(TEXT_OR_NULL),
  channelAccountEmail: optional(TEXT_OR_NULL),
};

interface Parents {
  control: ParentView;
  governance?: ParentView;
  channel?: ParentView;
}

/** Governance accounts are shown to operators, control accounts to those above them, too (extensions 1.2). */
export function parentBlockOf({ level }: ApiCaller, { control, governance, channel }: Parents): ParentBlock {
  return {
    ...(level !== 'control' && {
      controlAccountId: control.id,
      controlAccountName: control.name,
      controlAccountEmail: control.email,
    }),
    ...governanceBlockOf(level, governance),
    channelAccountId: channel?.id ?? null,
    channelAccountName: channel?.name ?? null,
    channelAccountEmail: channel?.email ?? null,
  };
}

export function governanceBlockOf(
  level: ApiCaller['level'],
  governance: ParentView | undefined,
): Pick<ParentBlock, 'governanceAccountId' | 'governanceAccountName'> {
  if (level !== 'admin') return {};
  return { governanceAccountId: governance?.id ?? null, governanceAccountName: governance?.name ?? null };
}

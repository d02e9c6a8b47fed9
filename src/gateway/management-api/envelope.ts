// The envelope of /api/v1 (extensions 1.1): what every answer is wrapped in, a refusal too.
import type { AppError, ErrorCode } from '../../types/errors.ts';
import { type FieldsOf, type JsonSchema, objectOf, textOf } from '../http/json-schemas.ts';
import { redact } from '../http/redact.ts';
import { JSON_TYPE, type RouteAnswer } from '../http/service-route.ts';

export interface FieldProblem {
  field: string;
  message: string;
}

export interface Envelope<Data> {
  success: boolean;
  code?: string;
  message: string;
  data: Data;
  errors: FieldProblem[] | null;
}

export interface ListOf<Item> {
  items: Item[];
  page: number;
  size: number;
  total: number;
}

/** Codes of changes, as extensions 1.1 lists them. Of deletions of sub-accounts two are known: this is the later one. */
const DONE = {
  subAccountCreated: ['RES-I-0001', 'Sub-account created.'],
  subAccountUpdated: ['RES-I-0002', 'Sub-account updated.'],
  subAccountDeleted: ['RES-I-0003', 'Sub-account deleted.'],
  memberCreated: ['RES-I-0045', 'Member created.'],
  memberUpdated: ['RES-I-0036', 'Member updated.'],
  memberDeleted: ['RES-I-0034', 'Member deleted.'],
} as const;

export function readAnswer<Data>(data: Data): Envelope<Data> {
  return { success: true, message: 'Successfully read!', data, errors: null };
}

export function doneAnswer<Data>(what: keyof typeof DONE, data: Data): Envelope<Data> {
  const [code, message] = DONE[what];
  return { success: true, code, message, data, errors: null };
}

/** `RES-E-` and the status. What is wrong with which field is in `errors`. */
export function renderEnvelopeError(error: AppError): RouteAnswer {
  // Named as the parts of an envelope are, a field is no secret: only what is said of it is looked at.
  const errors = Object.entries(error.fields).map(([field, problem]) => ({
    field: redact(field),
    message: redact(String(problem)),
  }));
  const body: Envelope<null> = {
    success: false,
    code: `RES-E-${String(error.status).padStart(4, '0')}`,
    message: redact(error.message),
    data: null,
    errors: NAMES_FIELDS.has(error.code) && errors.length > 0 ? errors : null,
  };
  return { status: error.status, contentType: JSON_TYPE, body: JSON.stringify(body), headers: error.headers };
}

/** Fields of other errors are details, and no fields of the request. */
const NAMES_FIELDS: ReadonlySet<ErrorCode> = new Set([
  'ValidationError',
  'EntityAlreadyExists',
  'InvalidRequest',
  'NoSuchEntity',
]);

const FIELD_PROBLEM = objectOf<FieldProblem>({ field: textOf(), message: textOf() });
const NOTHING: JsonSchema = { type: 'null' };

/** What a call answers. `codes`: where it changes something. */
export function envelopeOf(data: JsonSchema, what?: keyof typeof DONE): JsonSchema {
  const [code] = what === undefined ? [] : DONE[what];
  const fields: FieldsOf<Omit<Envelope<unknown>, 'code'>> = {
    success: { type: 'boolean', const: true },
    message: textOf('For people.'),
    data,
    errors: NOTHING,
  };
  if (code === undefined) return objectOf<Omit<Envelope<unknown>, 'code'>>(fields);
  return objectOf<Required<Envelope<unknown>>>({ ...fields, code: { type: 'string', const: code } });
}

export function listEnvelopeOf(items: JsonSchema): JsonSchema {
  return envelopeOf(
    objectOf<ListOf<unknown>>({
      items: { type: 'array', items },
      page: { type: 'integer', description: 'As asked for; 0 is taken as 1.' },
      size: { type: 'integer', description: 'As asked for, at most 1000.' },
      total: { type: 'integer', description: 'Of all pages.' },
    }),
  );
}

export const ERROR_ENVELOPE = objectOf<Required<Envelope<null>>>({
  success: { type: 'boolean', const: false },
  code: { type: 'string', pattern: '^RES-E-0[0-9]{3}$', description: 'RES-E- and the status.' },
  message: textOf('For people.'),
  data: NOTHING,
  errors: {
    type: ['array', 'null'],
    items: FIELD_PROBLEM,
    description: 'What is wrong with which field or parameter; null where it is about none.',
  },
});

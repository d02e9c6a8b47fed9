// What an account's name, e-mail, keys and limits may look like. Pure; whether they are taken is the system shard's to
// say. Rules: extensions 1.4 where it has one, else wide enough for the credentials that clients bring along.
import { invalidFields } from '../types/errors.ts';

/** The fields that a person may choose, as given. */
export interface AccountFields {
  name?: string;
  email?: string;
  accessKey?: string;
  secretKey?: string;
  canonicalId?: string;
  bucketsMax?: number;
}

/** Highest limit of buckets that one account may be given: one page of the account's list stays cheap below it. */
export const BUCKETS_MAX_CEILING = 1_000_000;

interface FieldRule {
  isValid(value: string): boolean;
  message: string;
}

// The name is the DisplayName of Owner elements, so what XML cannot carry is refused here.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\ufffe\uffff]|\p{Surrogate}/u;

const RULES = {
  name: {
    isValid: (value) =>
      [...value].length >= 3 &&
      [...value].length <= 100 &&
      value === value.trim() &&
      !UNPRINTABLE.test(value),
    message: 'must have 3 to 100 characters, no blank at either end and no control characters',
  },
  email: {
    isValid: (value) =>
      value.length <= 254 && /^[^\s@<>,;"]{1,64}@[^\s@<>,;"]+$/.test(value) && !UNPRINTABLE.test(value),
    message: 'must be an e-mail address',
  },
  accessKey: {
    isValid: (value) => /^[A-Za-z0-9_.-]{3,128}$/.test(value),
    message: 'must have 3 to 128 letters, digits, "_", "." or "-"',
  },
  secretKey: {
    isValid: (value) => /^[!-~]{8,128}$/.test(value),
    message: 'must have 8 to 128 printable ASCII characters and no blanks',
  },
  canonicalId: {
    isValid: (value) => /^[0-9a-f]{64}$/.test(value),
    message: 'must be 64 lower-case hex digits',
  },
} as const satisfies Record<string, FieldRule>;

/** Texts that people write about themselves: names, places, numbers. Throws ValidationError for one with control characters. */
export function checkPrintable(texts: Readonly<Record<string, string>>): void {
  const wrong = Object.entries(texts).filter(([, text]) => UNPRINTABLE.test(text));
  refuse(Object.fromEntries(wrong.map(([field]) => [field, 'must have no control characters'])));
}

/** Throws AppError ValidationError that names each field which breaks its rule; absent fields break none. */
export function checkAccountFields(fields: AccountFields): void {
  const problems: Record<string, string> = {};
  for (const [field, rule] of Object.entries(RULES)) {
    const value = fields[field as keyof typeof RULES];
    if (value !== undefined && !rule.isValid(value)) problems[field] = rule.message;
  }
  if ((fields.accessKey === undefined) !== (fields.secretKey === undefined)) {
    problems[fields.accessKey === undefined ? 'accessKey' : 'secretKey'] =
      'must be given together with the other key';
  }
  const { bucketsMax } = fields;
  if (
    bucketsMax !== undefined &&
    !(Number.isSafeInteger(bucketsMax) && bucketsMax >= 0 && bucketsMax <= BUCKETS_MAX_CEILING)
  ) {
    problems.bucketsMax = `must be a whole number from 0 to ${BUCKETS_MAX_CEILING}`;
  }
  refuse(problems);
}

/** Throws AppError ValidationError with a message per field, unless there is none. */
export function refuse(problems: Readonly<Record<string, string>>): void {
  if (Object.keys(problems).length > 0) throw invalidFields(problems);
}

/** E-mail addresses are one person's whatever their case. */
export function normaliseEmail(email: string): string {
  return email.toLowerCase();
}

// Numbers, dates, truth values and bytes in conditions, as texts have them. Numbers are compared digit by digit: no two that
// differ are the same because they are large.

/** A decimal number: its sign and its digits, without needless zeros. */
export interface Decimal {
  readonly isNegative: boolean;
  /** Before the point. */
  readonly whole: string;
  /** Behind it. */
  readonly fraction: string;
}

const DECIMAL = /^([+-]?)([0-9]*)(?:\.([0-9]*))?$/;
/** More is no number of any policy's. Zeros before it are none of its digits. */
const DIGITS_MAX = 100;
const CHARACTERS_MAX = 1024;

/** Of a policy. */
export function parseWantedDecimal(text: string): Decimal | undefined {
  const decimal = parseDecimal(text);
  return decimal === undefined || decimal.whole.length + decimal.fraction.length > DIGITS_MAX
    ? undefined
    : decimal;
}

/** Of as many digits as CHARACTERS_MAX has room for: a sender may send as many as it likes. */
export function parseDecimal(text: string): Decimal | undefined {
  if (text.length > CHARACTERS_MAX) return undefined;
  const [, sign, digits = '', behind = ''] = DECIMAL.exec(text) ?? [];
  if (sign === undefined || digits + behind === '') return undefined;
  const whole = digits.replace(/^0+/, '');
  // By hand: a search for zeros at the end looks again from each zero.
  let end = behind.length;
  while (behind[end - 1] === '0') end--;
  const fraction = behind.slice(0, end);
  return { isNegative: sign === '-' && whole + fraction !== '', whole, fraction };
}

/** Below 0: the first is less. */
export function compareDecimals(one: Decimal, other: Decimal): number {
  if (one.isNegative !== other.isNegative) return one.isNegative ? -1 : 1;
  const order =
    one.whole.length - other.whole.length ||
    compareTexts(one.whole, other.whole) ||
    compareTexts(one.fraction, other.fraction);
  return one.isNegative ? -order : order;
}

function compareTexts(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

const DATE =
  /^(\d{4})-(\d{2})(?:-(\d{2})(?:T(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(Z|[+-]\d{2}(?::?\d{2})?)?)?)?$/i;
const EPOCH_SECONDS = /^-?[0-9]{1,15}$/;
const MINUTE_MS = 60_000;

/**
 * Milliseconds since 1970 of a date as W3C writes them (a profile of ISO 8601), or of seconds since 1970; undefined where the
 * text is neither. Without a zone it is UTC.
 */
export function parseDate(text: string): number | undefined {
  if (EPOCH_SECONDS.test(text)) return Number(text) * 1000;
  const [found, ...parts] = DATE.exec(text) ?? [];
  if (found === undefined) return undefined;
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = parts
    .slice(0, 6)
    .map((part, at) => (part === undefined ? (at < 3 ? 1 : 0) : Number(part)));
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  const at = new Date(0);
  at.setUTCFullYear(year, month - 1, day);
  if (month < 1 || at.getUTCMonth() !== month - 1 || at.getUTCDate() !== day) return undefined;
  const fractionMs = Number(`0.${parts[6] ?? 0}`) * 1000;
  const offset = parseOffset(parts[7]);
  if (offset === undefined) return undefined;
  return at.getTime() + ((hour * 60 + minute) * 60 + second) * 1000 + fractionMs - offset * MINUTE_MS;
}

/** Minutes ahead of UTC. */
function parseOffset(zone: string | undefined): number | undefined {
  if (zone === undefined || zone.toUpperCase() === 'Z') return 0;
  const digits = zone.slice(1).replace(':', '');
  const hours = Number(digits.slice(0, 2));
  const minutes = Number(digits.slice(2) || 0);
  if (hours > 23 || minutes > 59) return undefined;
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes);
}

export function parseBool(text: string): boolean | undefined {
  const folded = text.length > 5 ? '' : text.toLowerCase();
  if (folded === 'true') return true;
  return folded === 'false' ? false : undefined;
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Base64 in the one form that its bytes have; undefined where it is none. */
export function parseBinary(text: string): string | undefined {
  if (text.length % 4 !== 0 || !BASE64.test(text)) return undefined;
  return Buffer.from(text, 'base64').toString('base64');
}

// Which statements of a bucket policy make something public (AWS "The meaning of public"): those that allow everybody, and are not
// held to known addresses, accounts or users by a condition.

import { parseAddressRange } from './conditions/addresses.ts';
import type { Condition } from './conditions/condition.ts';
import type { CompiledPolicy, Statement } from './documents/compile-policy.ts';

/** Broader ranges are no limit (AWS, same page). */
const IPV4_BITS_MIN = 8;
const IPV6_BITS_MIN = 32;

interface Fixing {
  readonly operators: RegExp;
  isFixed(value: string): boolean;
}

/** Keys that hold a statement to some callers, with the operators that do and the values that are fixed. */
const FIXING: ReadonlyMap<string, Fixing> = new Map([
  ['aws:sourceip', { operators: /^IpAddress$/, isFixed: isNarrow }],
  ['aws:principalaccount', { operators: /^String(?:Equals|EqualsIgnoreCase|Like)$/, isFixed: isPlain }],
  ['aws:principalarn', { operators: /^(?:String(?:Equals|Like)|Arn(?:Equals|Like))$/, isFixed: isPlain }],
  ['aws:userid', { operators: /^String(?:Equals|Like)$/, isFixed: isPlain }],
]);

/** Places of the statements, from 0. */
export function publicStatements(policy: CompiledPolicy): number[] {
  return policy.statements.filter(isPublic).map(({ index }) => index);
}

function isPublic({ effect, principals, conditions }: Statement): boolean {
  if (effect !== 'Allow' || principals === undefined) return false;
  return (principals.isNot || principals.set.hasEveryone) && !conditions.some(isHeldTo);
}

function isHeldTo({ key, operator, values }: Condition): boolean {
  const fixing = FIXING.get(key);
  return fixing?.operators.test(operator) === true && values.length > 0 && values.every(fixing.isFixed);
}

function isNarrow(value: string): boolean {
  const range = parseAddressRange(value);
  return range !== undefined && range.bits >= (range.bytes.length === 4 ? IPV4_BITS_MIN : IPV6_BITS_MIN);
}

/** Without wildcards and variables. */
function isPlain(value: string): boolean {
  return !/[*?]|\$\{/.test(value);
}

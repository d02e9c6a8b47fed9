// Which statements of a bucket policy make something public (AWS "The meaning of public"): those that allow everybody, and are not
// held to known addresses, accounts or users by a condition. And what a policy says where its account may not be public.

import { ANONYMOUS_USER_ID } from './condition-keys.ts';
import { parseAddressRange } from './conditions/addresses.ts';
import type { Condition } from './conditions/condition.ts';
import { type CompiledPolicy, makePolicy, type Statement } from './documents/compile-policy.ts';
import type { NamedPolicy } from './evaluate.ts';

/** Broader ranges are no limit (AWS, same page). */
const IPV4_BITS_MIN = 8;
const IPV6_BITS_MIN = 32;
/** Narrow ranges that are together more of IPv4 than this are none either: 256 of them would be all of it. */
const IPV4_SHARE_MAX = 1 / 16;

interface Fixing {
  readonly operators: RegExp;
  isFixed(value: string): boolean;
}

/** Keys that hold a statement to some callers, with the operators that do and the values that are fixed. */
const FIXING: ReadonlyMap<string, Fixing> = new Map([
  ['aws:principalaccount', { operators: /^String(?:Equals|EqualsIgnoreCase|Like)$/, isFixed: isPlain }],
  ['aws:principalarn', { operators: /^(?:String(?:Equals|Like)|Arn(?:Equals|Like))$/, isFixed: isPlain }],
  ['aws:userid', { operators: /^String(?:Equals|Like)$/, isFixed: isSomebody }],
]);

/** Places of the statements, from 0. */
export function publicStatements(policy: CompiledPolicy): number[] {
  return findPublic(policy).map(({ index }) => index);
}

/** What is left of a policy, by the policy: it is asked for with each request. */
const left = new WeakMap<CompiledPolicy, CompiledPolicy>();

/** The policy without its public statements. */
export function withoutPublicStatements({ policy, ...rest }: NamedPolicy): NamedPolicy {
  const known = left.get(policy);
  if (known !== undefined) return { ...rest, policy: known };
  const open = new Set(findPublic(policy));
  const statements = policy.statements.filter((statement) => !open.has(statement));
  const others = open.size === 0 ? policy : makePolicy({ ...policy, statements });
  left.set(policy, others);
  return { ...rest, policy: others };
}

function findPublic({ statements }: CompiledPolicy): Statement[] {
  const open = statements.filter(allowsEverybody).filter(({ conditions }) => !conditions.some(isHeldTo));
  const shares = new Map(open.map((statement) => [statement, ipv4Share(statement)]));
  const sum = [...shares.values()].reduce<number>((total, share = 0) => total + share, 0);
  return open.filter((statement) => shares.get(statement) === undefined || sum > IPV4_SHARE_MAX);
}

function allowsEverybody({ effect, principals }: Statement): boolean {
  if (effect !== 'Allow' || principals === undefined) return false;
  return principals.isNot || principals.set.hasEveryone;
}

function isHeldTo({ key, operator, values }: Condition): boolean {
  const fixing = FIXING.get(key);
  return fixing?.operators.test(operator) === true && values.length > 0 && values.every(fixing.isFixed);
}

/** How much of IPv4 the addresses are that the statement is held to by narrow ranges; undefined: it is not. */
function ipv4Share({ conditions }: Statement): number | undefined {
  const shares = conditions.flatMap(({ key, operator, values }) => {
    if (key !== 'aws:sourceip' || operator !== 'IpAddress' || values.length === 0) return [];
    return values.every(isNarrow) ? [values.reduce((sum, value) => sum + shareOf(value), 0)] : [];
  });
  return shares.length === 0 ? undefined : Math.min(...shares);
}

function isNarrow(value: string): boolean {
  const range = parseAddressRange(value);
  return range !== undefined && range.bits >= (range.bytes.length === 4 ? IPV4_BITS_MIN : IPV6_BITS_MIN);
}

function shareOf(value: string): number {
  const range = parseAddressRange(value);
  return range?.bytes.length === 4 ? 2 ** -range.bits : 0;
}

/** The id of a caller who is known: the one that nobody known has is everybody's. */
function isSomebody(value: string): boolean {
  return isPlain(value) && value !== ANONYMOUS_USER_ID;
}

/** Without wildcards and variables. */
function isPlain(value: string): boolean {
  return !/[*?]|\$\{/.test(value);
}

// Conditions on the headers x-amz-grant-*. Each is a list of grantees that may be written in many ways: `id="A"` or `ID = A`, in
// any order. Both sides are brought into one spelling, so no Deny is passed by with another one.
import { COMPARISON_STEPS, spend } from '../match-work.ts';
import type { ContextOf, ContextValue } from '../patterns.ts';
import type { UnderstoodValue } from './operators.ts';

const PREFIX = 's3:x-amz-grant-';
const TYPE_IN_PATTERN = /\b(id|emailaddress|uri)[ \t]*=[ \t]*/gi;
const SPELLINGS: ReadonlyMap<string, string> = new Map([
  ['id', 'id'],
  ['emailaddress', 'emailAddress'],
  ['uri', 'uri'],
]);

export function isGrantKey(key: string): boolean {
  return key.startsWith(PREFIX);
}

/** A policy's value in the one spelling. What has variables keeps the order of its grantees. */
export function spellGrants(value: string, { isPattern }: { isPattern: boolean }): string {
  if (value.includes('${')) return spellTypes(value);
  const grantees = value.split(',').map((text) => {
    // An address is one person's whatever its case.
    return spellTypes(text.includes('@') ? text.toLowerCase() : text).trim();
  });
  return isPattern ? grantees.join(',') : sorted(grantees);
}

function spellTypes(text: string): string {
  return text
    .replaceAll('"', '')
    .replace(TYPE_IN_PATTERN, (_whole, type: string) => `${SPELLINGS.get(type.toLowerCase())}=`);
}

interface SentGrants {
  /** The whole list, as a policy may name it: as it was sent, and in the one spelling in either order. */
  readonly whole: readonly string[];
  readonly each: readonly string[];
}

/** Of a grantee that is brought into the one spelling, and sorted among the others. */
const GRANTEE_STEPS = 100;

/** Of the header that was asked about last: statements of one request ask about the same one, or about five in turn. */
let last: { value: ContextValue; grants: SentGrants } = { value: '', grants: readGrants('', ['']) };

function grantsOf(value: ContextValue): SentGrants {
  if (value !== last.value) {
    const text = typeof value === 'string' ? value : value.join(',');
    const grantees = text.split(',');
    spend(text.length + GRANTEE_STEPS * grantees.length);
    last = { value, grants: readGrants(text, grantees) };
  }
  return last.grants;
}

function readGrants(text: string, grantees: readonly string[]): SentGrants {
  const each = [...new Set(grantees.map(spellGrantee))];
  return { each, whole: [...new Set([text, each.join(','), sorted(each)])] };
}

function spellGrantee(text: string): string {
  const equals = text.indexOf('=');
  const type = equals < 0 ? undefined : SPELLINGS.get(text.slice(0, equals).trim().toLowerCase());
  if (type === undefined) return text.trim();
  const name = text
    .slice(equals + 1)
    .trim()
    .replaceAll('"', '');
  return `${type}=${type === 'emailAddress' ? name.toLowerCase() : name}`;
}

function sorted(grantees: readonly string[]): string {
  return [...new Set(grantees)].sort().join(',');
}

/**
 * Whether a condition holds of a header. What allows must fit the whole list, as AWS has it, and so must what a Deny spares. What is
 * denied, and what an Allow leaves out, must be none of the grantees either.
 */
export function makeGrantTest(source: {
  tests: readonly UnderstoodValue[];
  /** As spellGrants has them; beside `tests`. */
  values: readonly string[];
  isNegated: boolean;
  isAllow: boolean;
}): (value: ContextValue, contextOf: ContextOf) => boolean {
  const { tests, isNegated, isAllow } = source;
  const mustFitWhole = isAllow !== isNegated;
  const named = source.values.map(kindNamed);

  return (value, contextOf) => {
    const { whole, each } = grantsOf(value);
    const texts = mustFitWhole ? whole : [...whole, ...each];
    let isWithoutValue = false;
    let mayFit = false;
    for (const [at, { test }] of tests.entries()) {
      for (const one of texts) {
        spend(COMPARISON_STEPS);
        const match = test(one, contextOf);
        if (match === true) return !isNegated;
        if (match === 'unknown') mayFit = true;
        if (match === 'no-value') isWithoutValue = true;
      }
      mayFit ||= !mustFitWhole && each.some((grantee) => isOtherName(grantee, named[at]));
    }
    if (mayFit && !mustFitWhole) return !isNegated;
    return isNegated && !(isWithoutValue && isAllow);
  };
}

/** Which kind of name a policy's value is about. */
function kindNamed(value: string): 'id' | 'emailAddress' | 'uri' {
  if (/uri=|acs\.amazonaws\.com|AllUsers|AuthenticatedUsers|LogDelivery/.test(value)) return 'uri';
  return value.includes('@') || value.includes('emailAddress=') ? 'emailAddress' : 'id';
}

/** An account has an id and an address: whether it is the one that a policy names by the other is not known here. */
function isOtherName(grantee: string, named: ReturnType<typeof kindNamed> | undefined): boolean {
  if (grantee.startsWith('emailAddress=')) return named === 'id';
  return grantee.startsWith('id=') && named === 'emailAddress';
}

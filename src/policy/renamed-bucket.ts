// What a user loses or wins when a bucket gets another name. Policies of buckets follow the name (types/policy/rename-in-policy.ts);
// those of users, their boundaries and those of sessions do not: a statement that denies something in the bucket by its name, or
// allows everything but that, would keep nobody from it any more, and one that allows something by the new name would allow it in
// a bucket that it was not about.
import { restsBehindName } from '../types/policy/rename-in-policy.ts';
import type { Statement } from './documents/compile-policy.ts';
import type { CallerPolicies, NamedPolicy, PolicyDecision, PolicyKind } from './evaluate.ts';
import { boundWork, COMPARISON_STEPS, spend, TooMuchWork } from './match-work.ts';
import { type ContextOf, mayMatch, type Pattern, sourceWithValues } from './patterns.ts';

const ARN = 'arn:aws:s3:::';

interface Names {
  readonly from: string;
  readonly to: string;
}

/** A statement that allows, and what it allows behind the old name. */
interface Allowing {
  readonly statement: Statement;
  readonly kept: readonly Kept[];
  /** Of its actions; none where it has conditions, or allows all actions but some. */
  readonly always: readonly Kept[];
}

/** A pattern that others are held against. */
interface Kept {
  readonly text: string;
  /** Of one whose only wildcard is an asterisk at its end: what stands before. */
  readonly start: string | undefined;
}

type Refusal = Extract<PolicyDecision, { isAllowed: false }>;

const STATEMENT_STEPS = 300;
/** To hold a place of a pattern against a letter of the name. */
const PLACE_STEPS = 20;
/** To begin with a pattern, besides its length. */
const REST_STEPS = 60;
/** One of a list, the shortest. */
const MEMBER_STEPS = 4;
/** So many letters of two texts are compared in one step. */
const LETTERS_OF_STEP = 2;

/**
 * The refusal by the first statement that denies something under the old name that it does not deny under the new one, or allows
 * under the new one alone what it spares under the old one; or that the policies of one kind allow more under the new name than
 * under the old one. Conditions do not count: they may hold another time. `contextOf`: values of variables. Where there is more to compare
 * than one decision may take, it is refused.
 */
export function findLostLimit(
  policies: CallerPolicies,
  names: Names,
  contextOf: ContextOf,
): Refusal | undefined {
  try {
    return boundWork(() => findLost(policies, names, contextOf));
  } catch (error) {
    if (error instanceof TooMuchWork) return { isAllowed: false, reason: 'no-allow', lacking: 'identity' };
    throw error;
  }
}

function findLost(
  { identity, boundary, session }: CallerPolicies,
  names: Names,
  contextOf: ContextOf,
): Refusal | undefined {
  const kinds: (readonly [PolicyKind, readonly NamedPolicy[]])[] = [
    ['identity', identity],
    ['boundary', boundary === undefined ? [] : [boundary]],
    ['session', session ?? []],
  ];
  for (const [kind, policies] of kinds) {
    for (const { name, policy } of policies) {
      const lost = policy.statements.find((statement) => losesLimit(statement, names));
      if (lost?.effect === 'Allow') return { isAllowed: false, reason: 'no-allow', lacking: kind };
      const { index: statement, sid } = lost ?? {};
      const by = statement !== undefined && { kind, name, statement, sid };
      if (by) return { isAllowed: false, reason: 'explicit-deny', by };
    }
    if (winsByName(policies, names, contextOf))
      return { isAllowed: false, reason: 'no-allow', lacking: kind };
  }
  return undefined;
}

function losesLimit({ effect, resources }: Statement, { from, to }: Names): boolean {
  spend(STATEMENT_STEPS);
  if (resources === undefined) return false;
  const { isNot, patterns } = resources;
  if (effect === 'Allow' && !isNot) return false;
  const allBehind = (name: string) => patterns.flatMap(({ source }) => restsBehind(source, name));
  // What is spared from being denied under the new name must have been so under the old one. Else: what was kept out under the old
  // one must be under the new one.
  const [kept, wanted, name] =
    effect === 'Deny' && isNot
      ? [allBehind(from), allBehind(to), to]
      : [allBehind(to), allBehind(from), from];
  return (
    !wanted.every((rest) => includes(kept, rest)) || patterns.some((pattern) => isByVariable(pattern, name))
  );
}

function includes(rests: readonly string[], rest: string): boolean {
  spend(MEMBER_STEPS * rests.length);
  return rests.includes(rest);
}

function restsBehind(source: string, name: string): string[] {
  spend(REST_STEPS + source.length);
  return restsBehindName(source, name, (placeCount) => spend(PLACE_STEPS * placeCount));
}

/** Whether a variable may stand for the name, or a part of it: who asks decides what it fits. */
function isByVariable(pattern: Pattern, name: string): boolean {
  if (pattern.keys.length === 0 || restsBehind(pattern.source, name).length > 0) return false;
  const { itself, longer } = mayMatch(pattern, ARN + name);
  return itself || longer;
}

/** Whether the policies allow an action on something by the new name that they do not allow on the same by the old one. */
function winsByName(policies: readonly NamedPolicy[], { from, to }: Names, contextOf: ContextOf): boolean {
  const all: Allowing[] = policies.flatMap(({ policy }) =>
    policy.statements.flatMap((statement) =>
      statement.effect === 'Allow' ? [allowing(statement, from, contextOf)] : [],
    ),
  );
  return all.some(({ statement, kept }) => {
    spend(STATEMENT_STEPS);
    if (statement.resources === undefined || statement.resources.isNot) return false;
    const open = statement.resources.patterns
      .flatMap((pattern) => wonBehind(pattern, to, contextOf))
      .filter((rest) => !isKept(rest, kept));
    if (open.length === 0) return false;
    const { isNot, patterns } = statement.actions;
    const actions = isNot ? ['*'] : patterns.map(({ source }) => source);
    return actions.some((action) => {
      const lower = action.toLowerCase();
      const others = all.filter(({ always }) => isKept(lower, always)).map((other) => other.kept);
      return open.some((rest) => !others.some((other) => isKept(rest, other)));
    });
  });
}

function allowing(statement: Statement, name: string, contextOf: ContextOf): Allowing {
  const { actions, conditions } = statement;
  const isAlways = conditions.length === 0 && !actions.isNot;
  return {
    statement,
    kept: keptBehind(statement, name, contextOf).map(toKept),
    always: isAlways ? actions.patterns.map(({ source }) => toKept(source.toLowerCase())) : [],
  };
}

function toKept(text: string): Kept {
  spend(COMPARISON_STEPS + text.length);
  const start = text.slice(0, -1);
  return { text, start: text.endsWith('*') && !/[*?]/.test(start) ? start : undefined };
}

/** All that a bucket's name with any letters behind it fits of one bucket: the bucket and its objects. */
const WHOLE = ['', '/*'];

/** What the pattern has behind the name; all of the bucket where a variable without a value may stand for the name. */
function wonBehind(pattern: Pattern, name: string, contextOf: ContextOf): string[] {
  const source = sourceWithValues(pattern, contextOf);
  if (source === undefined) return isByVariable(pattern, name) ? WHOLE : restsBehind(pattern.source, name);
  return restsBehind(source, name).flatMap((rest) => (rest === '*' ? WHOLE : [rest]));
}

function keptBehind({ resources }: Statement, name: string, contextOf: ContextOf): string[] {
  const { isNot = false, patterns = [] } = resources ?? {};
  const isOfOthers = (pattern: Pattern) =>
    pattern.keys.length === 0 && restsBehind(pattern.source, name).length === 0;
  if (isNot) return patterns.every(isOfOthers) ? WHOLE : [];
  return patterns.flatMap((pattern) => {
    const source = sourceWithValues(pattern, contextOf);
    return source === undefined ? [] : restsBehind(source, name);
  });
}

/** Whether one of the patterns `kept` fits all that the pattern `rest` fits. */
function isKept(rest: string, kept: readonly Kept[]): boolean {
  spend(COMPARISON_STEPS);
  return kept.some(({ text, start }) => {
    spend(COMPARISON_STEPS + Math.min(text.length, rest.length) / LETTERS_OF_STEP);
    return text === rest || (start !== undefined && rest.startsWith(start));
  });
}

// One condition of a statement: an operator, a key and values, ready to be asked of requests.
// All conditions of a statement must hold; of the values of one, any may fit.
import { normalizeKey } from '../condition-keys.ts';
import { COMPARISON_STEPS, spend } from '../match-work.ts';
import type { ContextOf, ContextValue } from '../patterns.ts';
import { isGrantKey, makeGrantTest, spellGrants } from './grants.ts';
import type { NamedOperator, UnderstoodValue } from './operators.ts';
import { parseBool } from './scalars.ts';

export interface Condition {
  /** As the policy has it. */
  readonly operator: string;
  /** Normalized (condition-keys.ts). */
  readonly key: string;
  readonly values: readonly string[];
  /** The key, and those that variables in the values name. */
  readonly keys: readonly string[];
  holds(contextOf: ContextOf): boolean;
}

export interface ConditionSource {
  /** As the policy has it. */
  readonly name: string;
  readonly operator: NamedOperator;
  readonly key: string;
  readonly values: readonly string[];
  /** Policies of 2012-10-17 have variables. */
  readonly hasVariables: boolean;
  /**
   * Where a variable has no value, its condition allows nothing and spares nobody: in a statement that allows it does not
   * hold, and in one that denies its value fits nothing.
   */
  readonly effect: 'Allow' | 'Deny';
}

/** Or the first value that the operator does not understand. */
export function makeCondition(source: ConditionSource): Condition | { readonly badValue: string } {
  const { name, operator, values, hasVariables } = source;
  const key = normalizeKey(source.key);
  const { row } = operator;
  if (row === undefined) {
    const badValue = values.find((value) => parseBool(value) === undefined);
    if (badValue !== undefined) return { badValue };
    const wanted = values.map(parseBool);
    const holds = (contextOf: ContextOf) => wanted.includes(isAbsent(contextOf(key)));
    return { operator: name, key, values, keys: [key], holds };
  }
  const isOfGrants = isGrantKey(key) && row.name.startsWith('String');
  const isPattern = row.name.endsWith('Like');
  const wanted = isOfGrants ? values.map((value) => spellGrants(value, { isPattern })) : values;
  const tests: UnderstoodValue[] = [];
  for (const value of wanted) {
    const test = row.understand(value, { hasVariables });
    if (test === undefined) return { badValue: value };
    tests.push(test);
  }
  const keys = [key, ...tests.flatMap((test) => test.keys)];
  return {
    operator: name,
    key,
    values,
    keys,
    holds: holdsOf(source, { key, tests, isNegated: row.isNegated, ...(isOfGrants && { grants: wanted }) }),
  };
}

function isAbsent(value: ContextValue | undefined): boolean {
  return value === undefined || (typeof value !== 'string' && value.length === 0);
}

function holdsOf(
  { operator: { qualifier, isIfExists }, effect }: ConditionSource,
  {
    key,
    tests,
    isNegated,
    grants,
  }: {
    key: string;
    tests: readonly UnderstoodValue[];
    isNegated: boolean;
    /** Of a condition on a header of grants: the values that are wanted, in one spelling. */
    grants?: readonly string[];
  },
): Condition['holds'] {
  const isAllow = effect === 'Allow';
  const grantsFit = grants && makeGrantTest({ tests, values: grants, isNegated, isAllow });

  /** Of one value of the request. */
  function fits(text: string, contextOf: ContextOf): boolean {
    let isWithoutValue = false;
    for (const { test } of tests) {
      spend(COMPARISON_STEPS);
      const match = test(text, contextOf);
      if (match === true) return !isNegated;
      // A sender may make a value as long as it likes, or write a number in another way: a condition of a Deny holds then.
      if (match === 'unknown') return !isAllow;
      if (match === 'no-value') isWithoutValue = true;
    }
    return isNegated && !(isWithoutValue && isAllow);
  }

  function whenAbsent(): boolean {
    if (isIfExists) return true;
    if (qualifier !== undefined) return qualifier === 'ForAllValues';
    return isNegated;
  }

  return (contextOf) => {
    const value = contextOf(key);
    if (value === undefined || isAbsent(value)) return whenAbsent();
    if (grantsFit !== undefined) return grantsFit(value, contextOf);
    if (typeof value === 'string') return fits(value, contextOf);
    if (qualifier === 'ForAnyValue') return value.some((one) => fits(one, contextOf));
    if (qualifier === 'ForAllValues') return value.every((one) => fits(one, contextOf));
    // A list that no qualifier asks about is taken as any of its values, and a negation as none of them.
    return isNegated ? value.every((one) => fits(one, contextOf)) : value.some((one) => fits(one, contextOf));
  };
}

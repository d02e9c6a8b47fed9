// What a user loses or wins when a bucket gets another name. Policies of buckets follow the name (types/policy/rename-in-policy.ts);
// those of users, their boundaries and those of sessions do not: a statement that denies something in the bucket by its name, or
// allows everything but that, would keep nobody from it any more.
import { restsBehindName } from '../types/policy/rename-in-policy.ts';
import type { Statement } from './documents/compile-policy.ts';
import type { CallerPolicies, NamedPolicy, PolicyDecision, PolicyKind } from './evaluate.ts';
import { mayMatch } from './patterns.ts';

interface Names {
  readonly from: string;
  readonly to: string;
}

/**
 * The refusal by the first statement that denies something under the old name that it does not deny under the new one, or allows
 * under the new one alone what it spares under the old one. Conditions do not count: they may hold another time.
 */
export function findLostLimit(
  { identity, boundary, session }: CallerPolicies,
  names: Names,
): Extract<PolicyDecision, { isAllowed: false }> | undefined {
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
  }
  return undefined;
}

function losesLimit({ effect, resources }: Statement, { from, to }: Names): boolean {
  if (resources === undefined) return false;
  const { isNot, patterns } = resources;
  if (effect === 'Allow' && !isNot) return false;
  const restsBehind = (name: string) => patterns.flatMap(({ source }) => restsBehindName(source, name));
  // What is spared from being denied under the new name must have been so under the old one. Else: what was kept out under the old
  // one must be under the new one.
  const [kept, wanted, name] =
    effect === 'Deny' && isNot
      ? [restsBehind(from), restsBehind(to), to]
      : [restsBehind(to), restsBehind(from), from];
  return (
    !wanted.every((rest) => kept.includes(rest)) || patterns.some((pattern) => isByVariable(pattern, name))
  );
}

/** Whether a variable may stand for the name, or a part of it: who asks decides what it fits. */
function isByVariable(pattern: Parameters<typeof mayMatch>[0], name: string): boolean {
  if (pattern.keys.length === 0 || restsBehindName(pattern.source, name).length > 0) return false;
  const { itself, longer } = mayMatch(pattern, `arn:aws:s3:::${name}`);
  return itself || longer;
}

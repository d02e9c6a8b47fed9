// What a user loses or wins when a bucket gets another name. Policies of buckets follow the name (types/policy/rename-in-policy.ts);
// those of users, their boundaries and those of sessions do not: a statement that denies something in the bucket by its name
// would deny it no more.
import { restsBehindName } from '../types/policy/rename-in-policy.ts';
import type { Statement } from './documents/compile-policy.ts';
import type { CallerPolicies, DecidedBy, NamedPolicy, PolicyKind } from './evaluate.ts';
import { mayMatch } from './patterns.ts';

interface Names {
  readonly from: string;
  readonly to: string;
}

/** The first statement that denies something under the old name that it does not deny under the new one, whatever its conditions. */
export function findLostDenial(
  { identity, boundary, session }: CallerPolicies,
  names: Names,
): DecidedBy | undefined {
  const kinds: (readonly [PolicyKind, readonly NamedPolicy[]])[] = [
    ['identity', identity],
    ['boundary', boundary === undefined ? [] : [boundary]],
    ['session', session ?? []],
  ];
  for (const [kind, policies] of kinds) {
    for (const { name, policy } of policies) {
      const lost = policy.statements.find((statement) => losesDenial(statement, names));
      if (lost !== undefined) return { kind, name, statement: lost.index, sid: lost.sid };
    }
  }
  return undefined;
}

function losesDenial({ effect, resources }: Statement, { from, to }: Names): boolean {
  if (effect !== 'Deny' || resources === undefined) return false;
  const { isNot, patterns } = resources;
  const restsBehind = (name: string) => patterns.flatMap(({ source }) => restsBehindName(source, name));
  // NotResource spares: what is spared under the new name must have been spared under the old one.
  const [kept, wanted, name] = isNot
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

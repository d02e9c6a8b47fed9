// What it takes in memory to know what a caller may do, about: caches weigh identities by it. What several share counts for each.
import type { CallerPolicies } from '../../policy/evaluate.ts';
import type { StoredPrincipal } from '../../types/records/identity-records.ts';
import type { Tag } from '../../types/tags.ts';
import type { Session } from './sessions.ts';

export interface Rights {
  /** Of a user or role, as it is stored. */
  readonly stored?: StoredPrincipal | undefined;
  /** Absent: what is stored alone is kept. */
  readonly compiled?: CallerPolicies;
  readonly session?: Session | undefined;
}

/** Of a tag and its texts, which stand in the record and among the values of condition keys. */
const TAG_BYTES = 200;
/** Of a role by which a session was begun. */
const ROLE_BYTES = 200;

export function rightsBytes({ stored, compiled, session }: Rights): number {
  return storedBytes(stored) + compiledBytes(compiled) + sessionBytes(session);
}

function compiledBytes(policies: CallerPolicies | undefined): number {
  if (policies === undefined) return 0;
  const { identity, boundary, session = [] } = policies;
  return sum([...identity, ...session, ...(boundary ? [boundary] : [])], ({ policy }) => policy.memoryBytes);
}

function storedBytes(stored: StoredPrincipal | undefined): number {
  if (stored === undefined) return 0;
  const { entity, groups, policies } = stored;
  const inline = [entity, ...groups].flatMap(({ inlinePolicies }) => inlinePolicies);
  const trusted = entity.kind === 'role' ? entity.trustPolicy.length : 0;
  return trusted + sum(entity.tags, tagBytes) + sum([...inline, ...policies], textBytes);
}

function sessionBytes(session: Session | undefined): number {
  if (session === undefined) return 0;
  const { policies = [], tags = [], through = [] } = session;
  return sum(policies, textBytes) + sum(tags, tagBytes) + ROLE_BYTES * through.length;
}

function textBytes({ text }: { text: string }): number {
  return text.length;
}

function tagBytes({ key, value }: Tag): number {
  return TAG_BYTES + 2 * (key.length + value.length);
}

function sum<T>(list: readonly T[], bytesOf: (one: T) => number): number {
  return list.reduce((bytes, one) => bytes + bytesOf(one), 0);
}

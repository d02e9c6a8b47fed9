// What it takes in memory to know what a caller may do, about: caches weigh identities by it. What several share counts for each.
import type { NamedPolicy } from '../../policy/evaluate.ts';
import type { StoredPrincipal } from '../../types/records/identity-records.ts';
import type { Tag } from '../../types/tags.ts';
import type { Principal } from './principal.ts';
import type { Session } from './sessions.ts';

export interface Rights {
  /** Of a user or role, as it is stored. */
  readonly stored: StoredPrincipal | undefined;
  /** As policies judge it; absent: what is stored alone is kept. */
  readonly principal?: Pick<Principal, 'policies' | 'session'>;
}

/** Of a tag and its texts, which stand in the record and among the values of condition keys. */
const TAG_BYTES = 200;
/** Of a role by which a session was begun. */
const ROLE_BYTES = 200;

export function rightsBytes({ stored, principal }: Rights): number {
  if (principal === undefined) return storedBytes(stored);
  const { session, policies } = principal;
  const compiled = [...policies.identity, ...(policies.session ?? [])];
  if (policies.boundary !== undefined) compiled.push(policies.boundary);
  return storedBytes(stored) + sessionBytes(session) + sum(compiled, compiledBytes);
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

function compiledBytes({ policy }: NamedPolicy): number {
  return policy.memoryBytes;
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

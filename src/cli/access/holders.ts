// Who holds policies: users, groups and roles, and the actions of IAM that are the same for the three but for a name. What a
// deletion has to take away first.
import { Refusal } from '../../base/refusal.ts';
import { field } from './answers.ts';
import type { QueryClient } from './query-client.ts';

export type HolderKind = 'User' | 'Group' | 'Role';

export interface Holder {
  readonly kind: HolderKind;
  readonly name: string;
}

export interface HolderOptions {
  user?: string;
  group?: string;
  role?: string;
}

/** The one that options name. Throws {@link Refusal} unless there is one. */
export function holderOf({ user, group, role }: HolderOptions): Holder {
  const named: Holder[] = [
    ...(user === undefined ? [] : [{ kind: 'User' as const, name: user }]),
    ...(group === undefined ? [] : [{ kind: 'Group' as const, name: group }]),
    ...(role === undefined ? [] : [{ kind: 'Role' as const, name: role }]),
  ];
  const [holder] = named;
  if (holder === undefined || named.length > 1) throw new Refusal('give one of --user, --group and --role');
  return holder;
}

/** `user ann`, for sentences. */
export function describeHolder({ kind, name }: Holder): string {
  return `${kind.toLowerCase()} ${name}`;
}

/** As parameters of an action name it. */
export function nameOf({ kind, name }: Holder): Record<string, string> {
  return { [`${kind}Name`]: name };
}

export interface HeldPolicies {
  readonly attached: readonly { readonly name: string; readonly arn: string }[];
  /** Names of inline ones. */
  readonly inline: readonly string[];
}

export async function heldPolicies(query: QueryClient, holder: Holder): Promise<HeldPolicies> {
  const attached = await query.list(`ListAttached${holder.kind}Policies`, 'AttachedPolicies', nameOf(holder));
  const inline = await query.list(`List${holder.kind}Policies`, 'PolicyNames', nameOf(holder));
  return {
    attached: attached.map((policy) => ({
      name: field(policy, 'PolicyName'),
      arn: field(policy, 'PolicyArn'),
    })),
    inline: inline.map(({ text }) => text),
  };
}

/** Takes all policies from a holder. */
export async function stripPolicies(query: QueryClient, holder: Holder): Promise<void> {
  const { attached, inline } = await heldPolicies(query, holder);
  for (const { arn } of attached)
    await query.iam(`Detach${holder.kind}Policy`, { ...nameOf(holder), PolicyArn: arn });
  for (const name of inline)
    await query.iam(`Delete${holder.kind}Policy`, { ...nameOf(holder), PolicyName: name });
}

/** In one cell of a table. */
export function describePolicies({ attached, inline }: HeldPolicies): string {
  return [...attached.map(({ arn }) => arn), ...inline.map((name) => `${name} (inline)`)].join(', ');
}

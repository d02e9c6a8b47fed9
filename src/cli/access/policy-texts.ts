// The texts of policies that an explanation names, so that people see the statement and not only its place. What the keys may not
// read is left out.
import { Refusal } from '../../base/refusal.ts';
import { childOf } from '../../base/xml/parse-xml.ts';
import { documentOf, field, requireElement } from './answers.ts';
import { type Holder, type HolderKind, heldPolicies, nameOf } from './holders.ts';
import type { QueryClient } from './query-client.ts';

const HOLDER_ARN = /^arn:aws:iam::\d{12}:(user|group|role)\/(?:.*\/)?([^/]+)$/;
const KINDS: Readonly<Record<string, HolderKind>> = { user: 'User', group: 'Group', role: 'Role' };

/** By the ids that SimulatePrincipalPolicy gives to policies. */
export type PolicyTexts = ReadonlyMap<string, string>;

export function isGroup(arn: string): boolean {
  return HOLDER_ARN.exec(arn)?.[1] === 'group';
}

/** Of the policies of a user and its groups, of a group, or of a role. `isWanted`: whether the id is named. */
export async function readPolicyTexts(
  query: QueryClient,
  { arn, isWanted }: { arn: string; isWanted(id: string): boolean },
): Promise<PolicyTexts> {
  const texts = new Map<string, string>();
  try {
    for (const holder of await holdersOf(query, arn)) {
      const { attached, inline } = await heldPolicies(query, holder);
      for (const name of inline) {
        const id = `${holder.kind.toLowerCase()}_${holder.name}_${name}`;
        if (isWanted(id)) texts.set(id, await inlineText(query, { holder, name }));
      }
      for (const policy of attached)
        if (isWanted(policy.name)) texts.set(policy.name, await managedText(query, policy.arn));
    }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
  return texts;
}

async function holdersOf(query: QueryClient, arn: string): Promise<Holder[]> {
  const [, type = '', name = ''] = HOLDER_ARN.exec(arn) ?? [];
  const kind = KINDS[type];
  if (kind === undefined) return [];
  const groups = kind === 'User' ? await query.list('ListGroupsForUser', 'Groups', { UserName: name }) : [];
  return [
    { kind, name },
    ...groups.map((group): Holder => ({ kind: 'Group', name: field(group, 'GroupName') })),
  ];
}

async function inlineText(
  query: QueryClient,
  { holder, name }: { holder: Holder; name: string },
): Promise<string> {
  const found = await query.iam(`Get${holder.kind}Policy`, { ...nameOf(holder), PolicyName: name });
  return documentOf(field(found, 'PolicyDocument'));
}

async function managedText(query: QueryClient, PolicyArn: string): Promise<string> {
  const policy = requireElement(await query.iam('GetPolicy', { PolicyArn }), 'Policy');
  const VersionId = field(policy, 'DefaultVersionId');
  const found = await query.iam('GetPolicyVersion', { PolicyArn, VersionId });
  return documentOf(childOf(requireElement(found, 'PolicyVersion'), 'Document')?.text ?? '');
}

/** Lines and columns, from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** What stands from a place to before another one: a statement, as a name or as it is. undefined: it is none. */
export function statementAt(text: string, { start, end }: { start: Place; end: Place }): string | undefined {
  const lines = text.split('\n');
  const offsetOf = ({ line, column }: Place) =>
    lines.slice(0, line - 1).reduce((sum, { length }) => sum + length + 1, column - 1);
  try {
    const statement = JSON.parse(text.slice(offsetOf(start), offsetOf(end)));
    return typeof statement.Sid === 'string' ? statement.Sid : JSON.stringify(statement);
  } catch {
    return undefined;
  }
}

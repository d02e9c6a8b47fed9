// The unique ids of the users and roles that a policy names by ARN, when it is put: who is made under the same name later is somebody
// else (AWS "AWS JSON policy elements: Principal"). The policy keeps its text; the ids stand beside it.
import { nextTurn } from '../../base/async/next-turn.ts';
import type { CompiledPolicy } from '../../policy/documents/compile-policy.ts';
import type { PrincipalName } from '../../policy/principals.ts';
import type { AccountId } from '../../types/names.ts';
import { type IdentityRecord, identityKeys } from '../../types/records/identity-records.ts';
import { roleArn, userArn } from './principal.ts';

type NamedIdentity = Extract<PrincipalName, { arn: string }>;

/** Records of one look: each may have long policies. */
const RECORDS_MAX = 20;

/**
 * By ARN; undefined: the policy names none that is there. A name that nobody has yet means whoever gets it. `read`: rows of an
 * account's identities by key.
 */
export async function findPrincipalIds(
  { statements }: CompiledPolicy,
  read: (accountId: AccountId, keys: string[]) => Promise<(IdentityRecord | null)[]>,
): Promise<Record<string, string> | undefined> {
  const byAccount = new Map<string, Map<string, NamedIdentity>>();
  for (const name of statements.flatMap(({ principals }) => principals?.set.names ?? [])) {
    if (!('arn' in name)) continue;
    const ofAccount = byAccount.get(name.accountId) ?? new Map<string, NamedIdentity>();
    byAccount.set(name.accountId, ofAccount.set(name.arn, name));
  }
  const ids: Record<string, string> = {};
  for (const [accountId, names] of byAccount) {
    const left = [...names.values()];
    while (left.length > 0) {
      const some = left.splice(0, RECORDS_MAX);
      // Others have their turn before so many records are decoded.
      await nextTurn();
      const records = await read(accountId as AccountId, some.map(keyOf));
      for (const [at, name] of some.entries()) {
        const record = records[at] ?? undefined;
        if (record !== undefined && isMeant(name, record)) ids[name.arn] = record.id;
      }
    }
  }
  return Object.keys(ids).length === 0 ? undefined : ids;
}

function keyOf({ kind, arn }: NamedIdentity): string {
  const parts = arn.split('/');
  if (kind === 'session') return identityKeys.role(parts[1] ?? '');
  const name = parts.at(-1) ?? '';
  return kind === 'user' ? identityKeys.user(name) : identityKeys.role(name);
}

/** Whether the record has that very ARN: names are the same in any case and under any path, ARNs are not. */
function isMeant(
  { kind, arn, accountId }: NamedIdentity,
  record: IdentityRecord,
): record is Extract<IdentityRecord, { kind: 'user' | 'role' }> {
  if (kind === 'user') return record.kind === 'user' && userArn(accountId, record) === arn;
  if (record.kind !== 'role') return false;
  if (kind === 'role') return roleArn(accountId, record) === arn;
  return arn.startsWith(`arn:aws:sts::${accountId}:assumed-role/${record.name}/`);
}

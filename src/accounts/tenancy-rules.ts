// Who may do what in the tree of accounts: by level, by role, and by what lies below the caller (extensions 1.2). The one place
// that decides it.
import { AppError } from '../types/errors.ts';
import type { AccountId } from '../types/names.ts';
import type { PartnerRole } from '../types/tenancy.ts';
import type { ApiCaller } from './tenancy.ts';

/** The operator, who sees and does everything. */
export const OPERATOR: ApiCaller = {
  kind: 'operator',
  level: 'admin',
  role: 'Admin',
  isPlus: true,
  keyId: 'operator',
};

/** `change`: sub-accounts and members are made or changed; `delete`: they go; `operate`: what only operators do. */
export type TenancyAct = 'read' | 'change' | 'delete' | 'operate';

const ACTS: Readonly<Record<PartnerRole, readonly TenancyAct[]>> = {
  Viewer: ['read'],
  'Staff Lite': ['read', 'change'],
  Staff: ['read', 'change', 'delete'],
  Admin: ['read', 'change', 'delete'],
};

export function mayAct(caller: ApiCaller, act: TenancyAct): boolean {
  if (caller.level === 'admin') return true;
  if (!ACTS[caller.role].includes(act)) return false;
  // Governance accounts look at sub-accounts; only their Plus users act on them.
  return act === 'read' || caller.level === 'control' || caller.isPlus;
}

/** Throws AccessDenied. */
export function requireAct(caller: ApiCaller, act: TenancyAct): void {
  if (!mayAct(caller, act)) throw new AppError('AccessDenied');
}

/** Control accounts are not told which governance account they are below: no filter by it tells them either. */
export function knowsGovernance({ level }: ApiCaller): boolean {
  return level !== 'control';
}

/** The partners above a record, itself included where it is one. */
export type PartnersAbove = readonly (number | undefined)[];

/** Whether a record is in the caller's tree. What is not is as if it were not there. */
export function isVisible(caller: ApiCaller, above: PartnersAbove): boolean {
  if (caller.level === 'admin') return true;
  return caller.partnerId !== undefined && above.includes(caller.partnerId);
}

/** Whose turn it is where work takes turns (hashes, walks): a partner has one, however many users and sub-accounts it has. */
export function tenantOf({ partnerId }: ApiCaller): AccountId {
  return (partnerId === undefined ? 'operator' : `partner/${partnerId}`) as AccountId;
}

/** NoSuchEntity. `field`: of the request, that has named it. */
export function noSuch(what: string, field?: string): AppError {
  const fields = field === undefined ? {} : { [field]: 'is not known' };
  return new AppError('NoSuchEntity', { message: `There is no such ${what}.`, fields });
}

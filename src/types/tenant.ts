// Whom a request counts against where memory, places and turns are shared (docs/limits.md, "How tenants share").
import type { SharePath } from '../base/async/fair-share.ts';
import type { TurnOf } from '../base/async/fair-turns.ts';
import type { RequestOrigin } from './events.ts';
import { LIMITS } from './limits.ts';

/**
 * By account, by signer within it, and by address within that: so many times what is free around it. An account alone has
 * 8/9 of all, a signer of it alone 9/10 of that, and an address alone 9/10 of that, 72 % of all: it may be a company behind
 * one address, or a balancer that is not configured. What each leaves has room for two bodies where memory is least: one
 * is let in while a byte is free. Two accounts have 8/17 each, two signers 9/19 each of what their account has. Of those
 * who have proved nothing addresses stand in the place of signers: one alone has 4/5.
 */
export const SHARE_WEIGHTS = [
  LIMITS.accountShareWeight,
  LIMITS.signerShareWeight,
  LIMITS.addressShareWeight,
] as const;

/** Where only addresses share. */
export const ADDRESS_WEIGHTS = [LIMITS.strangerShareWeight] as const;

const UNPROVED = 'unproved';
const MAPPED_PREFIX = '::ffff:';
const MAPPED_IPV4 = /^::ffff:[\d.]+$/i;

/**
 * One who shares the server with others: the account that has signed, by one of its keys, or an address that has proved
 * nothing.
 */
export interface Tenant {
  /** The account's id; undefined while nobody has proved who they are. */
  readonly account: string | undefined;
  /** The key by which the account has signed (`ownSigner`, `presignedSigner`); absent where nobody tells them apart. */
  readonly signer?: string | undefined;
  /** The client's group of addresses (`addressGroupOf`). */
  readonly address: string;
}

/** The server's own work: what it folds and repairs counts against no account. */
export const INTERNAL_TENANT: Tenant = { account: 'internal', address: 'internal' };

/** Whoever has signed a request with the key itself. */
export const ownSigner = (key: string): string => `own ${key}`;

/**
 * Whoever has a presigned URL or a form of the key: whom its maker gave it, and strangers who found it. All of them together
 * have one signer's share, so that they leave the key's holder what his own requests need.
 */
export const presignedSigner = (key: string): string => `presigned ${key}`;

/**
 * Groups of a tenant, the widest first: the account, the signer, and the address that it comes from. All that have proved
 * nothing are one group, so that many addresses together cannot take what accounts need.
 */
export function sharePathOf({ account = UNPROVED, signer, address }: Tenant): SharePath {
  return signer === undefined ? [account, address] : [account, signer, address];
}

/** Whose turn it is for such work. */
export function turnOf({ account, signer }: Tenant, work: string): TurnOf {
  return { owner: account, signer, work };
}

/**
 * Whose command it is, where commands of accounts share a bound: of the client's request that it is made for, or, of one of IAM,
 * the account that it changes. Empty for the server's own work, which is bounded by the whole alone.
 */
export function commandPathOf(origin: RequestOrigin | undefined, command: unknown): SharePath {
  if (origin !== undefined) return [accountOf(origin)];
  const { accountId } = (command ?? {}) as { accountId?: unknown };
  return typeof accountId === 'string' ? [accountId] : [];
}

/** Whose a client's call is, where calls of accounts share a bound: all that have proved nothing count as one. */
export function accountOf({ accountId }: RequestOrigin): string {
  return accountId ?? UNPROVED;
}

/** What counts as one address: an IPv4 address, or the first 64 bits of an IPv6 one, which one client has at will. */
export function addressGroupOf(address: string): string {
  if (!address.includes(':')) return address;
  // An IPv4 client of a socket of both families.
  if (MAPPED_IPV4.test(address)) return address.slice(MAPPED_PREFIX.length);
  const [head = '', tail] = address.replace(/%.*$/, '').split('::', 2);
  const first = head === '' ? [] : head.split(':');
  const last = tail === undefined || tail === '' ? [] : tail.split(':');
  // An embedded IPv4 tail stands for two groups; it never reaches into the first four.
  const lastCount = last.length + (last.at(-1)?.includes('.') === true ? 1 : 0);
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - first.length - lastCount);
  const groups = [...first, ...new Array<string>(zeros).fill('0'), ...last].slice(0, 4);
  return `${groups.map((group) => group.toLowerCase().replace(/^0+(?=.)/, '')).join(':')}::/64`;
}

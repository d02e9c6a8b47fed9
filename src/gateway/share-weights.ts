// How large a share of what requests hold one tenant may have (lib/fair-share.ts).

/**
 * By account, and by address within it: so many times what is free. An account alone has 8/9 of all, an address alone 4/5:
 * it may be a company behind one address, or a balancer that nobody has told us of. Two accounts have 8/17 each.
 */
export const SHARE_WEIGHTS = [8, 4] as const;

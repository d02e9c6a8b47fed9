// What becomes of accounts and access keys that a gateway has cached (R46). Embedded: commands pass by in the same
// process; in a cluster: asked of the system shard (src/coordination/identity-feed.ts).
import type { AccountId } from '../types/names.ts';

/** Everything that was read of this account and its access keys may be out of date. */
export interface IdentityChange {
  accountId: AccountId;
}

/**
 * A position among the changes of identities: the number of the last one seen, from 1, and a mark that distinguishes it
 * from the same number in an abandoned history (R23).
 */
export interface IdentityPosition {
  seq: number;
  mark: string;
}

export interface IdentityFeed {
  /** While true, what was read and kept may be used: no change is missing that a request which begins now must see. */
  isCurrent(): boolean;
  /**
   * `all`: everything may have changed. A read that began before such a call may show what was before the change: it must
   * not be kept.
   */
  listen(onChange: (changes: readonly IdentityChange[] | 'all') => void): void;
}

// How many digests of objects a gateway computes at a time for the buckets of one account: each reads and hashes gigabytes, for a
// request of a few bytes.
import { AppError } from '../../../types/errors.ts';
import type { AccountId } from '../../../types/names.ts';

const DIGESTS_MAX = 2;

export interface DigestPlaces {
  /** Returns what gives the place back. Throws SlowDown: there are as many as may be. */
  begin(owner: AccountId): () => void;
}

export function createDigestPlaces(): DigestPlaces {
  /** Accounts without any are not in it. */
  const counts = new Map<AccountId, number>();
  return {
    begin(owner) {
      const count = counts.get(owner) ?? 0;
      if (count >= DIGESTS_MAX) throw new AppError('SlowDown');
      counts.set(owner, count + 1);
      return () => {
        const left = (counts.get(owner) ?? 1) - 1;
        if (left === 0) counts.delete(owner);
        else counts.set(owner, left);
      };
    },
  };
}

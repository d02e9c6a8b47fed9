// Passwords of users: whether one is good enough by the account's rule, and what is stored instead of it.

import { type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { createFairShare, type SharePath } from '../../base/async/fair-share.ts';
import { createTenantQueue } from '../../base/async/tenant-queue.ts';
import { createFailureWaits, SECRET_WAITS } from '../../base/failure-waits.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import type { AccountId } from '../../types/names.ts';
import type { PasswordPolicy } from '../../types/records/identity-records.ts';
import { shareOfThread } from '../../types/thread-share.ts';

/** RFC 7914: 32 MiB and some 80 ms for one. */
const COST = { log2N: 15, r: 8, p: 1 } as const;
const SALT_BYTES = 16;
const HASH_BYTES = 32;

const UPPERCASE = /[A-Z]/;
const LOWERCASE = /[a-z]/;
const NUMBER = /[0-9]/;
/** As AWS lists them. */
const SYMBOL = /[!@#$%^&*()_+\-=[\]{}|']/;

/** Of an account that has set no rule (AWS "Set an account password policy"). */
const DEFAULT_LENGTH_MIN = 8;
const DEFAULT_KINDS_MIN = 3;

/** Throws PasswordPolicyViolation. */
export function checkPassword(password: string, policy: PasswordPolicy | undefined): void {
  const missing = policy === undefined ? missingByDefault(password) : missingBy(policy, password);
  if (missing === undefined) return;
  const message = `Password does not conform to the account password policy: it should have ${missing}.`;
  throw new AppError('PasswordPolicyViolation', { message });
}

function missingByDefault(password: string): string | undefined {
  if (password.length < DEFAULT_LENGTH_MIN) return `a minimum length of ${DEFAULT_LENGTH_MIN}`;
  const kinds = [UPPERCASE, LOWERCASE, NUMBER, SYMBOL].filter((kind) => kind.test(password)).length;
  if (kinds >= DEFAULT_KINDS_MIN) return undefined;
  return 'three of these: uppercase letters, lowercase letters, numbers, symbols';
}

function missingBy(policy: PasswordPolicy, password: string): string | undefined {
  if (password.length < policy.minimumLength) return `a minimum length of ${policy.minimumLength}`;
  if (policy.requireUppercase && !UPPERCASE.test(password)) return 'at least one uppercase letter';
  if (policy.requireLowercase && !LOWERCASE.test(password)) return 'at least one lowercase letter';
  if (policy.requireNumbers && !NUMBER.test(password)) return 'at least one number';
  if (policy.requireSymbols && !SYMBOL.test(password)) return 'at least one symbol';
  return undefined;
}

/** Hashes and compares passwords for all accounts of a gateway. */
export interface Passwords {
  /** What is stored: `scrypt$log2N$r$p$salt$hash`. Throws SlowDown. */
  hash(accountId: AccountId, password: string): Promise<string>;
  /** Throws SlowDown. */
  isSame(accountId: AccountId, given: Comparison): Promise<boolean>;
  /**
   * The same where the caller may be guessing: wrong ones make `userId` wait. Throws AuthenticationLockout without comparing
   * while it must, and SlowDown.
   */
  verify(who: Guesser, given: Comparison): Promise<boolean>;
}

/** Who may be guessing. `address`: of one who has proved nothing yet; within the tenant addresses take turns. */
interface Guesser {
  readonly accountId: AccountId;
  readonly userId: string;
  readonly address?: string;
}

interface Comparison {
  readonly password: string;
  readonly stored: string;
}

/** One account alone may hold half of the places, so that there is always one for the next account. */
const ACCOUNT_SHARE_WEIGHT = 1;

/** One password at a time, in turns of accounts: each takes memory and a whole processor. */
export function createPasswords({
  clock,
  random,
  threads,
}: {
  clock: ClockPort;
  random: RandomPort;
  /** As in types/thread-share.ts. */
  threads?: number | undefined;
}): Passwords {
  const failures = createFailureWaits({ clock, ...SECRET_WAITS });
  const places = createFairShare({
    limit: shareOfThread(LIMITS.passwordHashesWaitingMax, { threads }),
    weights: [ACCOUNT_SHARE_WEIGHT, LIMITS.addressShareWeight],
  });
  const waiting = createTenantQueue<() => void>();
  let isBusy = false;

  function takeTurn(path: SharePath): Promise<void> {
    if (isBusy) return new Promise((resolve) => waiting.add(path, resolve));
    isBusy = true;
    return Promise.resolve();
  }

  function endTurn(): void {
    const begin = waiting.next(() => true);
    if (begin === undefined) isBusy = false;
    else begin();
  }

  function requirePlace(path: SharePath): void {
    if (!places.mayTake(path, 1)) throw new AppError('SlowDown');
  }

  async function derive(path: SharePath, derivation: Derivation): Promise<Buffer> {
    requirePlace(path);
    places.take(path, 1);
    try {
      await takeTurn(path);
      return await scryptOnce(derivation).finally(endTurn);
    } finally {
      places.giveBack(path, 1);
    }
  }

  async function compare(path: SharePath, { password, stored }: Comparison): Promise<boolean> {
    const [, log2N, r, p, salt = '', hash = ''] = stored.split('$');
    const cost = { log2N: Number(log2N), r: Number(r), p: Number(p) };
    const derived = await derive(path, { password, salt: Buffer.from(salt, 'base64url'), ...cost });
    return timingSafeEqual(derived, Buffer.from(hash, 'base64url'));
  }

  return {
    async hash(accountId, password) {
      const salt = Buffer.from(random.bytes(SALT_BYTES));
      const hash = await derive([accountId], { password, salt, ...COST });
      const { log2N, r, p } = COST;
      return ['scrypt', log2N, r, p, salt.toString('base64url'), hash.toString('base64url')].join('$');
    },
    isSame: (accountId, given) => compare([accountId], given),
    async verify({ accountId, userId, address }, given) {
      const path = address === undefined ? [accountId] : [accountId, address];
      const who = { group: accountId, name: [...path, userId].join('/') };
      if (failures.mustWait(who)) throw new AppError('AuthenticationLockout');
      // What is not compared is no guess.
      requirePlace(path);
      // Counted before it is known: many that are sent at once have no more guesses than if they came one after the other.
      failures.note(who);
      const isRight = await compare(path, given);
      if (isRight) failures.forget(who);
      return isRight;
    },
  };
}

interface Derivation {
  readonly password: string;
  readonly salt: Buffer;
  readonly log2N: number;
  readonly r: number;
  readonly p: number;
}

function scryptOnce({ password, salt, log2N, r, p }: Derivation): Promise<Buffer> {
  const options: ScryptOptions = { N: 2 ** log2N, r, p, maxmem: 2 * 128 * 2 ** log2N * r };
  return new Promise((resolve, reject) => {
    scrypt(password, salt, HASH_BYTES, options, (error, key) => (error ? reject(error) : resolve(key)));
  });
}

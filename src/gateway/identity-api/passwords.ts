// Passwords of users: whether one is good enough by the account's rule, and what is stored instead of it.
import { type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { createSequence } from '../../base/async/sequence.ts';
import type { RandomPort } from '../../ports/clock.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import type { PasswordPolicy } from '../../types/records/identity-records.ts';

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

/** What is stored: `scrypt$log2N$r$p$salt$hash`. Throws SlowDown. */
export async function hashPassword(password: string, random: RandomPort): Promise<string> {
  const salt = Buffer.from(random.bytes(SALT_BYTES));
  const hash = await derive(password, { salt, ...COST });
  const { log2N, r, p } = COST;
  return ['scrypt', log2N, r, p, salt.toString('base64url'), hash.toString('base64url')].join('$');
}

/** Throws SlowDown. */
export async function isPassword(password: string, stored: string): Promise<boolean> {
  const [, log2N, r, p, salt = '', hash = ''] = stored.split('$');
  const cost = { log2N: Number(log2N), r: Number(r), p: Number(p) };
  const derived = await derive(password, { salt: Buffer.from(salt, 'base64url'), ...cost });
  return timingSafeEqual(derived, Buffer.from(hash, 'base64url'));
}

/** One at a time: each takes memory and a whole processor. */
const inTurn = createSequence();
let waitingCount = 0;

async function derive(
  password: string,
  { salt, log2N, r, p }: { salt: Buffer; log2N: number; r: number; p: number },
): Promise<Buffer> {
  if (waitingCount >= LIMITS.passwordHashesWaitingMax) throw new AppError('SlowDown');
  waitingCount++;
  try {
    const options = { N: 2 ** log2N, r, p, maxmem: 2 * 128 * 2 ** log2N * r };
    return await inTurn(() => scryptOnce(password, salt, options));
  } finally {
    waitingCount--;
  }
}

function scryptOnce(password: string, salt: Buffer, options: ScryptOptions): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password, salt, HASH_BYTES, options, (error, key) => (error ? reject(error) : resolve(key)));
  });
}

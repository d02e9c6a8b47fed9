// Creations of accounts of which nobody knows whether they came to be: the shard was away before it answered. Who asks for the same
// again within some minutes has that one sent again, under its request id: it is made once, and its maker gets its keys. What was
// answered is not kept: asked for again, its name is taken.
import { createHash } from 'node:crypto';
import type { ClockPort } from '../ports/clock.ts';
import { AppError } from '../types/errors.ts';
import type { AccountCreation, Accounts, CreatedAccount } from './accounts.ts';

/** Shards keep outcomes for 15 minutes (R18). */
const KEPT_MS = 10 * 60_000;
/** Some kB each; the oldest goes for the next. */
const KEPT_MAX = 1000;

interface InDoubt {
  creation: AccountCreation;
  sinceMs: number;
  /** It is being sent: who asks for the same gets what comes of it. */
  sending: Promise<CreatedAccount> | undefined;
}

export class CreationsInDoubt {
  readonly #accounts: Pick<Accounts, 'send'>;
  readonly #clock: Pick<ClockPort, 'monotonicMs'>;
  /** By what was asked for, the oldest first. */
  readonly #kept = new Map<string, InDoubt>();

  constructor(accounts: Pick<Accounts, 'send'>, clock: Pick<ClockPort, 'monotonicMs'>) {
    this.#accounts = accounts;
    this.#clock = clock;
  }

  /** `asked`: who asks, and for what, as plain values. Throws as `send` does. */
  async send(asked: unknown, prepare: () => AccountCreation): Promise<CreatedAccount> {
    // There may be a password in it.
    const name = createHash('sha256').update(JSON.stringify(asked)).digest('base64');
    const nowMs = this.#clock.monotonicMs();
    const known = this.#kept.get(name);
    const isKnown = known !== undefined && nowMs - known.sinceMs <= KEPT_MS;
    if (isKnown && known.sending !== undefined) return known.sending;
    const one = isKnown ? known : { creation: prepare(), sinceMs: nowMs, sending: undefined };
    this.#keep(name, one);
    one.sending = this.#accounts.send(one.creation, { isRetry: isKnown });
    try {
      const made = await one.sending;
      this.#kept.delete(name);
      return made;
    } catch (error) {
      one.sending = undefined;
      if (error instanceof AppError && error.code === 'EntityAlreadyExists') this.#kept.delete(name);
      throw error;
    }
  }

  #keep(name: string, one: InDoubt): void {
    this.#kept.delete(name);
    this.#kept.set(name, one);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > KEPT_MAX && oldest !== undefined) this.#kept.delete(oldest);
  }
}

// Mails to customers: their welcome, and how to set a password. They are sent by SMTP where that is set up, and are listed for the
// operator in any case. The link in them is a token that sets a password once, within three days; only its hash is stored, so each
// text that is made has a new one, and the one before is worth nothing from then on.
import { createHash } from 'node:crypto';
import { utf8 } from '../base/bytes/bytes.ts';
import type { ClockPort, RandomPort } from '../ports/clock.ts';
import type { MailMessage, MailPort } from '../ports/mail.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../ports/metadata/port.ts';
import type { Logger } from '../ports/telemetry.ts';
import { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';
import { type IdentitySettingsRecord, identityKeys } from '../types/records/identity-records.ts';
import { type MailKind, type MailRecord, mayOrderMail } from '../types/records/mail-record.ts';
import type { CustomerRecord } from '../types/records/tenancy-records.ts';
import { requireDone } from '../types/require-done.ts';
import { DAY_MS } from '../types/usage.ts';
import { withIdentities } from './identity-store.ts';
import { createMailQueue, type MailTry } from './mail-queue.ts';
import { mintApiKey } from './mint-keys.ts';
import type { SecretHasher } from './partner-logins.ts';
import type { TenancyDirectory } from './tenancy-directory.ts';
import { noSuch } from './tenancy-rules.ts';
import { checkLoginPassword } from './tenancy-tree.ts';

const VALID_MS = 3 * DAY_MS;
/** Answers of a mail server from here on are final (RFC 5321 4.2.1): the same mail would be refused again. */
const REFUSED_FOR_GOOD = 500;
/** Who has ordered or taken a mail tries it again sooner than after this time: where it waits longer, its gateway is gone. */
const LEFT_AFTER_MS = 5 * 60_000;
const LOOK_EVERY_MS = 60_000;
/** Characters of what a mail server said. */
const FAILURE_MAX = 200;
const TOKEN = /^(\d{1,15})\.([A-Za-z0-9]{40})$/;

type Addressee = Pick<CustomerRecord, 'id' | 'controlId' | 'email'>;

export interface Mails {
  /**
   * Orders a mail; resolves before it is sent. Where the same one waits to be sent there is no second one. `isBounded`: nor where
   * a partner has ordered too many.
   */
  order(kind: MailKind, customer: Addressee, options: { isBounded: boolean }): Promise<void>;
  /** Before a partner's call changes anything. Throws SlowDown with status 429 where it has ordered too many. */
  requireRoom(customer: Addressee): Promise<void>;
  /**
   * Sends what waits because the gateway that was to send it has ended, until the signal aborts. Several gateways may do so: one
   * of them gets a mail.
   */
  run(signal: AbortSignal): Promise<void>;
  /** The newest first. */
  list(): Promise<MailRecord[]>;
  /** Its text with a new link, for the operator to hand on. Throws NoSuchEntity. */
  text(id: number): Promise<MailMessage>;
  /** Sends it now, again if need be. Throws NoSuchEntity; ServiceUnavailable where it was not taken, or nothing is set up. */
  send(id: number): Promise<MailRecord>;
  /** Sets the password that a link is for, once. Throws AccessDenied for a link that is not, or no longer, good; ValidationError. */
  resetPassword(given: { token: string; password: string }): Promise<void>;
}

export function createMails(deps: {
  metadata: MetadataPort;
  directory: TenancyDirectory;
  hasher: Pick<SecretHasher, 'hash'>;
  clock: ClockPort;
  random: RandomPort;
  log: Pick<Logger, 'warn'>;
  /** Undefined: none is set up. */
  post: MailPort | undefined;
  /** The page that takes a token, as `?token=`. */
  resetUrl: string | undefined;
}): Mails {
  const { metadata, directory, clock, random, log, post, resetUrl } = deps;
  const system = { shard: SYSTEM_SHARD };
  const queue = createMailQueue(clock);
  /** Ids of those that are in the queue. */
  const queued = new Set<number>();

  async function list(): Promise<MailRecord[]> {
    return requireDone(await metadata.query(system, 'list-mails', {})).mails;
  }

  async function find(id: number): Promise<MailRecord> {
    const mail = (await list()).find((one) => one.id === id);
    if (mail === undefined) throw noSuch('mail');
    return mail;
  }

  async function customerOf(id: number): Promise<CustomerRecord | undefined> {
    const [customer] = await directory.read('customer', [id]);
    return customer?.deletedAtMs === undefined ? customer : undefined;
  }

  async function textOf({ kind, customerId, to }: MailRecord): Promise<MailMessage> {
    const customer = await customerOf(customerId);
    if (customer === undefined) throw noSuch('sub-account');
    const { accountId, name } = customer;
    if (customer.email !== to) throw addressChanged();
    const token = `${customerId}.${mintApiKey(random)}`;
    const expiresAtMs = clock.wallMs() + VALID_MS;
    const passwordReset = { tokenHash: hashOf(token), expiresAtMs, to };
    await withIdentities(deps, accountId, async (store) => {
      store.putUnseen(identityKeys.settings, { ...(await store.settings()), passwordReset });
    });
    const text = [
      kind === 'welcome'
        ? `Your storage account "${name}" (number ${accountId}) is ready.`
        : `A new password was asked for your storage account "${name}" (number ${accountId}).`,
      '',
      ...linkLines(token, resetUrl),
      `It works once, until ${new Date(expiresAtMs).toISOString().slice(0, 16).replace('T', ' ')} UTC.`,
      ...(kind === 'welcome' ? [] : ['', 'If you did not ask for it, ignore this mail.']),
    ];
    const subject = kind === 'welcome' ? 'Your storage account' : 'Set a new password';
    return { to, subject, text: `${text.join('\n')}\n` };
  }

  async function note(id: number, after: { state: 'sent' | 'failed'; failure?: string }) {
    const outcome = requireDone(await metadata.execute(system, 'note-mail', { id, ...after }));
    if (outcome.kind !== 'noted') throw noSuch('mail');
    return outcome.mail;
  }

  /** For a try. Undefined: somebody else has it, or it waits no more. */
  async function take({
    id,
    triedAtMs = null,
  }: Omit<MailRecord, 'triedAtMs'> & { triedAtMs?: number | null }) {
    const command = { id, state: 'waiting' as const, ifTriedAtMs: triedAtMs };
    const outcome = requireDone(await metadata.execute(system, 'note-mail', command));
    return outcome.kind === 'noted' ? outcome.mail : undefined;
  }

  /** Behind those of its control account that are under way. Where too many are, `run` finds it later. */
  async function deliver(ordered: MailRecord, by: MailPort): Promise<void> {
    const { id, customerId, controlId } = ordered;
    if (queued.has(id)) return;
    queued.add(id);
    let waiting = ordered;
    // The directory may not have been read yet: it is for the mails of older versions.
    const lane = controlId ?? directory.find('customer', customerId)?.controlId ?? 0;
    await queue.add(lane, async (isLast) => {
      const mail = await take(waiting);
      if (mail === undefined) return 'done';
      waiting = mail;
      return attempt(mail, by, isLast);
    });
    queued.delete(id);
  }

  async function attempt(mail: MailRecord, by: MailPort, isLast: boolean): Promise<MailTry> {
    const { id } = mail;
    try {
      await by.send(await textOf(mail));
      await note(id, { state: 'sent' });
    } catch (error) {
      // What a mail server says may hold the text of the mail: it is for the operator, and not for the log.
      log.warn({ mail: id, code: (error as { code?: unknown }).code }, 'mail-not-sent');
      if (!isLast && !isFinal(error)) return 'later';
      await note(id, { state: 'failed', failure: failureOf(error) });
    }
    return 'done';
  }

  /** The oldest first. */
  async function leftMails(): Promise<MailRecord[]> {
    const untilMs = clock.wallMs() - LEFT_AFTER_MS;
    return (await list())
      .filter(
        ({ state, isToBeSent, createdAtMs, triedAtMs = createdAtMs }) =>
          state === 'waiting' && isToBeSent === true && triedAtMs <= untilMs,
      )
      .reverse();
  }

  return {
    async order(kind, { id, controlId, email }, { isBounded }) {
      const mail = { kind, customerId: id, controlId, to: email, ...(post && { isToBeSent: true as const }) };
      const command = { mail, ...(isBounded && { isBounded }) };
      const outcome = requireDone(await metadata.execute(system, 'add-mail', command));
      if (outcome.kind === 'too-many') log.warn({ customer: id }, 'mail-not-ordered');
      if (outcome.kind === 'added' && post !== undefined) void deliver(outcome.mail, post);
    },
    async requireRoom({ id, controlId, email }) {
      const asked = { customerId: id, controlId, to: email };
      if (!mayOrderMail(await list(), asked, clock.wallMs())) throw tooMany();
    },
    async run(signal) {
      while (post !== undefined && !signal.aborted) {
        // While the shard is away nothing is known to wait.
        const left = await leftMails().catch(() => []);
        // Nobody waits for mails that others have ordered, and that are tried again later.
        for (const mail of left) void deliver(mail, post);
        await clock.sleep(LOOK_EVERY_MS, signal);
      }
    },
    list,
    text: async (id) => textOf(await find(id)),
    async send(id) {
      const mail = await find(id);
      if (post === undefined)
        throw new AppError('ServiceUnavailable', { message: 'No mail server is set up (mail.smtpUrl).' });
      try {
        await post.send(await textOf(mail));
      } catch (error) {
        const { failure = '' } = await note(id, { state: 'failed', failure: failureOf(error) });
        throw new AppError('ServiceUnavailable', { message: `The mail was not sent: ${failure}` });
      }
      return note(id, { state: 'sent' });
    },
    async resetPassword({ token, password }) {
      checkLoginPassword(password);
      const [, id = ''] = TOKEN.exec(token) ?? [];
      const customer = id === '' ? undefined : await customerOf(Number(id));
      if (customer === undefined) throw wrongLink();
      const { accountId } = customer;
      await requireLink(deps, customer, token, clock.wallMs());
      // Only for a good link: hashing takes a whole processor.
      const passwordHash = await deps.hasher.hash(accountId, password);
      await withIdentities(deps, accountId, async (store) => {
        const { passwordReset, ...settings } = await store.settings();
        // Its address may have changed since, and stays as it is until the password is set.
        const present = await customerOf(customer.id);
        if (present === undefined || !isGood(passwordReset, present, token, clock.wallMs()))
          throw wrongLink();
        store.replaceRecords([{ record: present, ifRevision: present.revision }]);
        const rootLogin = { passwordHash, mustReset: false, changedAtMs: clock.wallMs() };
        store.putUnseen(identityKeys.settings, { ...settings, rootLogin });
      });
    },
  };
}

async function requireLink(
  deps: Parameters<typeof withIdentities>[0],
  customer: CustomerRecord,
  token: string,
  nowMs: number,
): Promise<void> {
  const { passwordReset } = await withIdentities(deps, customer.accountId, (store) => store.settings());
  if (!isGood(passwordReset, customer, token, nowMs)) throw wrongLink();
}

/**
 * Hashes are compared: how long it takes says nothing of the token. Who reads the mails of an address that the account had before
 * sets no password any more.
 */
function isGood(
  reset: IdentitySettingsRecord['passwordReset'],
  { email }: CustomerRecord,
  token: string,
  nowMs: number,
): boolean {
  if (reset === undefined || reset.expiresAtMs <= nowMs || (reset.to ?? email) !== email) return false;
  return reset.tokenHash === hashOf(token);
}

function hashOf(token: string): string {
  return createHash('sha256').update(utf8(token)).digest('hex');
}

function tooMany(): AppError {
  const { mailsPerHourMax, mailsPerDayMax } = LIMITS;
  return new AppError('SlowDown', {
    status: 429,
    message: `A sub-account is sent ${mailsPerHourMax} mails in an hour at most, and those of a control account ${mailsPerDayMax} in a day.`,
    headers: { 'Retry-After': '3600' },
  });
}

function addressChanged(): AppError {
  const message = 'The sub-account has another e-mail address since. Have another mail sent.';
  return new AppError('NoSuchEntity', { message });
}

function wrongLink(): AppError {
  return new AppError('AccessDenied', {
    message: 'The link is not good, was used already, or is too old. Ask for a new one.',
  });
}

function linkLines(token: string, resetUrl: string | undefined): string[] {
  if (resetUrl === undefined)
    return ['Whoever runs the service tells you where to set your password by this code:', '', token];
  return [
    'Set your password here:',
    '',
    `${resetUrl}${resetUrl.includes('?') ? '&' : '?'}token=${token}`,
    '',
  ];
}

/** Whether another try would end like this one: the sub-account is gone, or the server refuses this very mail. */
function isFinal(error: unknown): boolean {
  if (error instanceof AppError) return true;
  const { responseCode } = error as { responseCode?: unknown };
  return typeof responseCode === 'number' && responseCode >= REFUSED_FOR_GOOD;
}

/** What a mail server said, without the control characters. */
function failureOf(error: unknown): string {
  const text = error instanceof Error ? error.message : 'unknown';
  return text.replace(/\p{Cc}+/gu, ' ').slice(0, FAILURE_MAX);
}

// A mail to a customer: to whom and about what. Its text is made when it is sent or shown, with a new link each time, so that no
// secret is stored.
import { must } from '../../base/assert.ts';
import { defineRecord } from '../../base/record-codec.ts';
import { LIMITS } from '../limits.ts';

export type MailKind = 'welcome' | 'password-reset';

export interface MailRecord {
  id: number;
  kind: MailKind;
  /** The sub-account. */
  customerId: number;
  /** Its control account, among whose mails it counts; absent in those that older versions have written. */
  controlId?: number;
  to: string;
  createdAtMs: number;
  /** `waiting`: nobody sends mails, or not yet. */
  state: 'waiting' | 'sent' | 'failed';
  /** There was a mail server when it was ordered: a gateway sends it, however long it has waited. */
  isToBeSent?: true;
  /** Of the last try, also of one that goes on. */
  triedAtMs?: number;
  failure?: string;
}
export const mailCodec = defineRecord<MailRecord>({ name: 'mail', version: 1 });

/** Mails that are kept: where there are more, the oldest one goes of the control account that has most. */
export const MAILS_MAX = 1000;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The oldest mail of the control account that has most: none pushes out those of others that have fewer. */
export function oldestOfMost<M extends Pick<MailRecord, 'controlId'>>(mails: readonly M[]): M {
  const byControl = [...Map.groupBy(mails, ({ controlId = 0 }) => controlId).values()];
  const most = byControl.reduce((largest, group) => (group.length > largest.length ? group : largest));
  return must(most[0], 'a group has a mail');
}

/**
 * Whether a partner may order one more, among those that are kept. Not where it would push out one of its own of the day, for then
 * that one would count no more.
 */
export function mayOrderMail(
  mails: readonly MailRecord[],
  mail: Pick<MailRecord, 'customerId' | 'controlId' | 'to'>,
  nowMs: number,
): boolean {
  const { customerId, controlId, to } = mail;
  const pushedOut =
    mails.length < MAILS_MAX ? undefined : oldestOfMost([...mails, { ...mail, createdAtMs: nowMs }]);
  if (pushedOut?.controlId === controlId && (pushedOut?.createdAtMs ?? 0) > nowMs - DAY_MS) return false;
  const ofDay = mails.filter(({ createdAtMs }) => createdAtMs > nowMs - DAY_MS);
  if (ofDay.filter((mail) => mail.controlId === controlId).length >= LIMITS.mailsPerDayMax) return false;
  const alike = ofDay.filter((mail) => mail.customerId === customerId || mail.to === to);
  return alike.filter(({ createdAtMs }) => createdAtMs > nowMs - HOUR_MS).length < LIMITS.mailsPerHourMax;
}

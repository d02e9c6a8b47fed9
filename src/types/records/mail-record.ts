// A mail to a customer: to whom and about what. Its text is made when it is sent or shown, with a new link each time, so that no
// secret is stored.
import { defineRecord } from '../../base/record-codec.ts';

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

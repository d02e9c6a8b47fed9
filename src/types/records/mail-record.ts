// A mail to a customer: to whom and about what. Its text is made when it is sent or shown, with a new link each time, so that no
// secret is stored.
import { defineRecord } from '../../base/record-codec.ts';

export type MailKind = 'welcome' | 'password-reset';

export interface MailRecord {
  id: number;
  kind: MailKind;
  /** The sub-account. */
  customerId: number;
  to: string;
  createdAtMs: number;
  /** `waiting`: nobody sends mails, or not yet. */
  state: 'waiting' | 'sent' | 'failed';
  /** Of the last try. */
  triedAtMs?: number;
  failure?: string;
}
export const mailCodec = defineRecord<MailRecord>({ name: 'mail', version: 1 });

/** Mails that are kept: the last ones. */
export const MAILS_MAX = 1000;

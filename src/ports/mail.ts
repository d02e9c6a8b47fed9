// Where mails go.

export interface MailMessage {
  to: string;
  subject: string;
  /** Plain text. */
  text: string;
}

export interface MailPort {
  /** Resolves once a mail server has taken it. Rejects otherwise; it may then have been taken all the same. */
  send(message: MailMessage): Promise<void>;
}

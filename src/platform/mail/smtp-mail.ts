// Mails by SMTP, through nodemailer.
import { createTransport } from 'nodemailer';
import type { MailPort } from '../../ports/mail.ts';

/** Of a connection, a greeting and an answer. */
const TIMEOUT_MS = 20_000;

/** `url`: smtp://user:password@host:port, or smtps. */
export function createSmtpMail({ url, from }: { url: string; from: string }): MailPort {
  const transport = createTransport(
    {
      url,
      connectionTimeout: TIMEOUT_MS,
      greetingTimeout: TIMEOUT_MS,
      socketTimeout: TIMEOUT_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
    },
    { from },
  );
  return {
    async send(message) {
      await transport.sendMail(message);
    },
  };
}

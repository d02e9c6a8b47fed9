// Mails by SMTP, through nodemailer.
import type { Transporter } from 'nodemailer';
import type { MailPort } from '../../ports/mail.ts';

/** Of a connection, a greeting and an answer. */
const TIMEOUT_MS = 20_000;

/** `url`: smtp://user:password@host:port, or smtps. */
export function createSmtpMail({ url, from }: { url: string; from: string }): MailPort {
  let opening: Promise<Transporter> | undefined;
  // Not before the first mail: nodemailer takes 100 ms of CPU to load.
  const open = async (): Promise<Transporter> => {
    const { createTransport } = await import('nodemailer');
    return createTransport(
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
  };
  return {
    async send(message) {
      opening ??= open();
      await (await opening).sendMail(message);
    },
  };
}

// Mails to customers, for `holdfast mail`: which there are, their texts for the operator to hand on, and another try to send one.
import type { FastifyInstance } from 'fastify';
import type { MailMessage } from '../../../ports/mail.ts';
import type { MailRecord } from '../../../types/records/mail-record.ts';
import { listOf, numberOf, objectOf, oneOf, optional, textOf } from '../../http/json-schemas.ts';
import type { OperatorContext } from '../operator-context.ts';

interface OfMail {
  Params: { mail: string };
}

const TAGS = ['mails'];
const MAIL_PARAMETER = {
  type: 'object',
  properties: { mail: { type: 'string', pattern: '^[0-9]{1,15}$', description: 'Its number.' } },
  required: ['mail'],
};
const NO_MAIL = 'There is no such mail.';

function mailJson({ id, kind, customerId, to, createdAtMs, state, triedAtMs, failure }: MailRecord) {
  return {
    id,
    kind,
    subAccountId: customerId,
    to,
    state,
    createdAt: new Date(createdAtMs).toISOString(),
    ...(triedAtMs !== undefined && { triedAt: new Date(triedAtMs).toISOString() }),
    ...(failure !== undefined && { failure }),
  };
}

const MAIL = objectOf<ReturnType<typeof mailJson>>({
  id: numberOf(),
  kind: oneOf('welcome', 'password-reset'),
  subAccountId: numberOf(),
  to: textOf(),
  state: {
    ...oneOf('waiting', 'sent', 'failed'),
    description: 'waiting: no mail server is set up, or not yet.',
  },
  createdAt: textOf('ISO 8601.'),
  triedAt: optional(textOf('ISO 8601.')),
  failure: optional(textOf('What the mail server said.')),
} as never);

const MESSAGE = objectOf<MailMessage>({ to: textOf(), subject: textOf(), text: textOf('Plain text.') });

export async function mails(app: FastifyInstance, { context }: { context: OperatorContext }): Promise<void> {
  app.get(
    '/mails',
    {
      schema: {
        operationId: 'ListMails',
        summary: 'List mails to customers, the newest first',
        tags: TAGS,
        response: {
          200: {
            description: 'The last thousand.',
            ...objectOf<{ mails: unknown }>({ mails: listOf(MAIL) }),
          },
        },
      },
    },
    async () => ({ mails: (await context.mails.list()).map(mailJson) }),
  );
  app.post<OfMail>(
    '/mails/:mail/text',
    {
      schema: {
        operationId: 'WriteMail',
        summary:
          'Write a mail anew, to hand it on: its link is a new one, and the one before does not work any more',
        tags: TAGS,
        params: MAIL_PARAMETER,
        response: { 200: { description: 'The mail, with a link that works once.', ...MESSAGE } },
      },
      config: { errors: ['NoSuchEntity'], absent: NO_MAIL },
    },
    async ({ params }) => context.mails.text(Number(params.mail)),
  );
  app.post<OfMail>(
    '/mails/:mail/send',
    {
      schema: {
        operationId: 'SendMail',
        summary: 'Send a mail, again if need be',
        tags: TAGS,
        params: MAIL_PARAMETER,
        response: { 200: { description: 'The mail.', ...MAIL } },
      },
      config: { errors: ['NoSuchEntity', 'ServiceUnavailable'], absent: NO_MAIL },
    },
    async ({ params }) => mailJson(await context.mails.send(Number(params.mail))),
  );
}

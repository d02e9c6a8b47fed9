// holdfast mail: mails to customers. Where no mail server is set up, an operator hands them on.
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import { formatAnswer, formatForeign, formatTable } from './format.ts';
import { encodeSegment } from './sign-request.ts';

/** As the operator API has it. */
interface Mail {
  id: number;
  kind: string;
  subAccountId: number;
  to: string;
  state: string;
  createdAt: string;
  failure?: string;
}

export async function listMails(context: CliContext, options: ConnectOptions): Promise<void> {
  const client = await connect(context, options);
  const { mails } = (await client.call('GET', '/mails')) as { mails: Mail[] };
  context.print(formatAnswer(options, mails, () => tableOf(mails)));
}

/** Its link is a new one each time. */
export async function showMail(context: CliContext, id: string, options: ConnectOptions): Promise<void> {
  const client = await connect(context, options);
  const answer = await client.call('POST', `/mails/${encodeSegment(id)}/text`);
  const { to, subject, text } = answer as { to: string; subject: string; text: string };
  const forPeople = () => `To: ${formatForeign(to)}\nSubject: ${subject}\n\n${text.trimEnd()}`;
  context.print(formatAnswer(options, { to, subject, text }, forPeople));
}

export async function sendMail(context: CliContext, id: string, options: ConnectOptions): Promise<void> {
  const client = await connect(context, options);
  const mail = (await client.call('POST', `/mails/${encodeSegment(id)}/send`)) as Mail;
  context.print(formatAnswer(options, mail, () => tableOf([mail])));
}

function tableOf(mails: readonly Mail[]): string {
  const head = ['ID', 'KIND', 'SUB-ACCOUNT', 'STATE', 'CREATED', 'TO', 'FAILURE'];
  const rows = mails.map(({ id, kind, subAccountId, state, createdAt, to, failure }) => [
    String(id),
    kind,
    String(subAccountId),
    state,
    createdAt.slice(0, 19),
    formatForeign(to),
    formatForeign(failure ?? ''),
  ]);
  return formatTable([head, ...rows]);
}

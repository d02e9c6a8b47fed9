// holdfast account member: people of sub-accounts, by the calls of /api/v1 that the operator API has.
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import { formatAnswer, formatForeign, formatTable } from './format.ts';
import { encodeSegment } from './sign-request.ts';
import { askAll, readNumber } from './sub-account-commands.ts';

interface Member {
  id: number;
  subAccountId: number;
  username: string;
  email: string;
  firstName: string;
  lastName: string;
  memberRole: string;
  status: string;
  mfa: boolean;
}

export interface NewMemberOptions extends ConnectOptions {
  sub: string;
  email: string;
  firstName: string;
  lastName: string;
  role: string;
  password: string;
  username?: string;
  mustReset?: boolean;
}

export async function createMember(context: CliContext, options: NewMemberOptions): Promise<void> {
  const { sub, email, firstName, lastName, role, password, username, mustReset } = options;
  const client = await connect(context, options);
  const body = { email, firstName, lastName, memberRole: role, password, username };
  const subAccountId = readNumber('--sub', sub);
  const asked = { ...body, subAccountId, passwordResetRequired: mustReset };
  const { data } = (await client.call('POST', '/members', asked)) as { data: Member };
  context.print(formatAnswer(options, data, () => tableOf([data])));
}

export async function listMembers(
  context: CliContext,
  options: ConnectOptions & { sub?: string },
): Promise<void> {
  const client = await connect(context, options);
  const members = await askAll<Member>(client, '/members', { subAccountId: options.sub });
  context.print(formatAnswer(options, members, () => tableOf(members)));
}

export interface MemberChanges extends ConnectOptions {
  firstName?: string;
  lastName?: string;
  role?: string;
  password?: string;
  status?: string;
  resetMfa?: boolean;
}

export async function setMember(context: CliContext, id: string, options: MemberChanges): Promise<void> {
  const { firstName, lastName, role, password, status, resetMfa } = options;
  const client = await connect(context, options);
  const { data } = (await client.call('PUT', `/members/${encodeSegment(id)}`, {
    firstName,
    lastName,
    memberRole: role,
    password,
    active: status === undefined ? undefined : status === 'active',
    mfa: resetMfa === true ? false : undefined,
  })) as { data: Member };
  context.print(formatAnswer(options, data, () => tableOf([data])));
}

export async function deleteMember(context: CliContext, id: string, options: ConnectOptions): Promise<void> {
  const client = await connect(context, options);
  await client.call('DELETE', `/members/${encodeSegment(id)}`);
  context.print(formatAnswer(options, {}, () => `the member ${formatForeign(id)} is deleted`));
}

function tableOf(members: readonly Member[]): string {
  const head = ['ID', 'SUB-ACCOUNT', 'ROLE', 'STATUS', 'MFA', 'USER NAME', 'NAME', 'E-MAIL'];
  const rows = members.map((one) => [
    String(one.id),
    String(one.subAccountId),
    one.memberRole,
    one.status.toLowerCase(),
    one.mfa ? 'on' : 'off',
    formatForeign(one.username),
    formatForeign(`${one.firstName} ${one.lastName}`),
    formatForeign(one.email),
  ]);
  return formatTable([head, ...rows]);
}

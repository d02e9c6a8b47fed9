// holdfast account control: partners above sub-accounts, who logs in for them at /api/v1, and their API keys.
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import { formatAnswer, formatCount, formatForeign, formatTable } from './format.ts';
import { encodeSegment } from './sign-request.ts';

/** As the operator API has them. */
interface Partner {
  id: number;
  level: string;
  name: string;
  email: string;
  status: string;
  parentId?: number;
  subAccountsCount: number;
}

interface PartnerUser {
  id: number;
  email: string;
  role: string;
  isPlus: boolean;
  status: string;
  apiKeys: { id: string; name: string; lastUsedOn?: string }[];
}

export interface NewPartnerOptions extends ConnectOptions {
  name: string;
  email: string;
  level: string;
  parent?: string;
}

export async function createPartner(context: CliContext, options: NewPartnerOptions): Promise<void> {
  const { name, email, level, parent } = options;
  const client = await connect(context, options);
  const body = { name, email, level, ...(parent !== undefined && { parentId: Number(parent) }) };
  const partner = (await client.call('POST', '/partners', body)) as Partner;
  context.print(formatAnswer(options, partner, () => tableOf([partner])));
}

export async function listPartners(context: CliContext, options: ConnectOptions): Promise<void> {
  const client = await connect(context, options);
  const partners: Partner[] = [];
  for (let page = 1, total = 1; partners.length < total; page++) {
    const answer = await client.call('GET', `/partners/pages/${page}`);
    const { partners: items, total: all } = answer as { partners: Partner[]; total: number };
    partners.push(...items);
    total = items.length === 0 ? 0 : all;
  }
  context.print(formatAnswer(options, partners, () => tableOf(partners)));
}

export async function changePartner(
  context: CliContext,
  id: string,
  options: ConnectOptions & { name?: string; email?: string; status?: string },
): Promise<void> {
  const { name, email, status } = options;
  const client = await connect(context, options);
  const path = `/partners/${encodeSegment(id)}`;
  const partner = (await client.call('PATCH', path, { name, email, status })) as Partner;
  context.print(formatAnswer(options, partner, () => tableOf([partner])));
}

export interface NewPartnerUserOptions extends ConnectOptions {
  email: string;
  firstName: string;
  lastName: string;
  role: string;
  plus?: boolean;
}

export async function createPartnerUser(
  context: CliContext,
  partner: string,
  options: NewPartnerUserOptions,
): Promise<void> {
  const { email, firstName, lastName, role, plus = false } = options;
  const client = await connect(context, options);
  const path = `/partners/${encodeSegment(partner)}/users`;
  const body = { email, firstName, lastName, role, isPlus: plus };
  const user = (await client.call('POST', path, body)) as PartnerUser;
  context.print(formatAnswer(options, user, () => usersTable([user])));
}

export async function listPartnerUsers(
  context: CliContext,
  partner: string,
  options: ConnectOptions,
): Promise<void> {
  const client = await connect(context, options);
  const answer = await client.call('GET', `/partners/${encodeSegment(partner)}/users`);
  const { users } = answer as { users: PartnerUser[] };
  context.print(formatAnswer(options, users, () => usersTable(users)));
}

export async function setPartnerUser(
  context: CliContext,
  user: string,
  options: ConnectOptions & { status: string },
): Promise<void> {
  const client = await connect(context, options);
  const { status } = options;
  const path = `/partner-users/${encodeSegment(user)}`;
  const changed = (await client.call('PATCH', path, { status })) as PartnerUser;
  context.print(formatAnswer(options, changed, () => usersTable([changed])));
}

export async function createPartnerKey(
  context: CliContext,
  user: string,
  options: ConnectOptions & { name: string },
): Promise<void> {
  const { name } = options;
  const client = await connect(context, options);
  const path = `/partner-users/${encodeSegment(user)}/keys`;
  const made = (await client.call('POST', path, { name })) as { apiKey: string };
  const { apiKey } = made;
  context.print(formatAnswer(options, made, () => `API key  ${apiKey}\n\nIt is not shown again.`));
}

export async function deletePartnerKey(
  context: CliContext,
  { user, key }: { user: string; key: string },
  options: ConnectOptions,
): Promise<void> {
  const client = await connect(context, options);
  await client.call('DELETE', `/partner-users/${encodeSegment(user)}/keys/${encodeSegment(key)}`);
  context.print(formatAnswer(options, {}, () => `the API key ${formatForeign(key)} is deleted`));
}

function tableOf(partners: readonly Partner[]): string {
  const head = ['ID', 'LEVEL', 'PARENT', 'STATUS', 'SUB-ACCOUNTS', 'NAME', 'E-MAIL'];
  const rows = partners.map(({ id, level, parentId, status, subAccountsCount, name, email }) => [
    String(id),
    level,
    parentId === undefined ? '-' : String(parentId),
    status,
    formatCount(subAccountsCount),
    formatForeign(name),
    formatForeign(email),
  ]);
  return formatTable([head, ...rows]);
}

function usersTable(users: readonly PartnerUser[]): string {
  const head = ['ID', 'ROLE', 'STATUS', 'API KEYS', 'E-MAIL'];
  const rows = users.map(({ id, role, isPlus, status, apiKeys, email }) => [
    String(id),
    isPlus ? `Plus ${role}` : role,
    status,
    apiKeys.map((key) => `${key.id} (${formatForeign(key.name)})`).join(', ') || '-',
    formatForeign(email),
  ]);
  return formatTable([head, ...rows]);
}

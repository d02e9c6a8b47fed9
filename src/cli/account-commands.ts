// holdfast account create, list, show, suspend, delete, set, reset-mfa.
import { Refusal } from '../base/refusal.ts';
import type { AccountState } from '../types/records/rows.ts';
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import { formatAnswer, formatCount, formatTable } from './format.ts';
import { encodeSegment } from './sign-request.ts';

/** As the operator API has it. */
interface Account {
  id: string;
  name: string;
  email: string;
  canonicalId: string;
  state: AccountState;
  bucketCount: number;
  bucketsMax: number;
  mayBePublic: boolean;
  isUnpaid: boolean;
  createdAt: string;
  accessKey: string | null;
  /** All of them; in the answer to a creation there is the one. */
  accessKeys?: string[];
  /** In the answer to a creation only. */
  secretKey?: string;
}

export interface CreateOptions extends ConnectOptions {
  name: string;
  email: string;
  accessKey?: string;
  secretKey?: string;
  canonicalId?: string;
  state?: string;
}

export async function createAccount(context: CliContext, options: CreateOptions): Promise<void> {
  const { name, email, accessKey, secretKey, canonicalId, state } = options;
  const client = await connect(context, options);
  const body = { name, email, accessKey, secretKey, canonicalId, state };
  const account = (await client.call('POST', '/accounts', body)) as Account;
  printAccount(context, account, options);
  if (options.json !== true) context.print('\nThe secret key is not shown again.');
}

export async function listAccounts(context: CliContext, options: ConnectOptions): Promise<void> {
  const client = await connect(context, options);
  const { accounts } = (await client.call('GET', '/accounts')) as { accounts: Account[] };
  const head = ['ID', 'STATE', 'BUCKETS', 'ACCESS KEY', 'NAME', 'E-MAIL'];
  const rows = accounts.map((account) => [
    account.id,
    account.state,
    `${formatCount(account.bucketCount)} of ${formatCount(account.bucketsMax)}`,
    account.accessKeys?.join(' ') || '-',
    account.name,
    account.email,
  ]);
  context.print(formatAnswer(options, accounts, () => formatTable([head, ...rows])));
}

export async function showAccount(
  context: CliContext,
  reference: string,
  options: ConnectOptions,
): Promise<void> {
  const client = await connect(context, options);
  printAccount(context, (await client.call('GET', pathOf(reference))) as Account, options);
}

export async function suspendAccount(
  context: CliContext,
  reference: string,
  options: ConnectOptions,
): Promise<void> {
  await change(context, { reference, changes: { state: 'suspended' }, options });
}

export interface SetOptions extends ConnectOptions {
  maxBuckets?: string;
  state?: string;
  public?: string;
  unpaid?: string;
}

export async function setAccount(context: CliContext, reference: string, options: SetOptions): Promise<void> {
  const { maxBuckets, state } = options;
  if ([maxBuckets, state, options.public, options.unpaid].every((given) => given === undefined))
    throw new Refusal('give --max-buckets, --state, --public, --unpaid or several of them');
  if (maxBuckets !== undefined && !/^\d{1,9}$/.test(maxBuckets)) {
    throw new Refusal(`--max-buckets must be a whole number, not "${maxBuckets}"`);
  }
  const bucketsMax = maxBuckets === undefined ? undefined : Number(maxBuckets);
  const mayBePublic = yesOrNo('--public', options.public);
  const isUnpaid = yesOrNo('--unpaid', options.unpaid);
  await change(context, { reference, changes: { bucketsMax, state, mayBePublic, isUnpaid }, options });
}

/** Throws {@link Refusal}. */
export function yesOrNo(flag: string, text: string | undefined): boolean | undefined {
  if (text !== undefined && text !== 'yes' && text !== 'no')
    throw new Refusal(`${flag} must be yes or no, not "${text}"`);
  return text === undefined ? undefined : text === 'yes';
}

export async function deleteAccount(
  context: CliContext,
  reference: string,
  options: ConnectOptions,
): Promise<void> {
  const client = await connect(context, options);
  await client.call('DELETE', pathOf(reference));
  context.print(options.json === true ? '{}' : `Account ${reference} is deleted.`);
}

export async function resetMfa(
  context: CliContext,
  reference: string,
  options: ConnectOptions,
): Promise<void> {
  const client = await connect(context, options);
  const answer = (await client.call('DELETE', `${pathOf(reference)}/mfa`)) as { deactivatedCount: number };
  context.print(
    formatAnswer(
      options,
      answer,
      () => `${formatCount(answer.deactivatedCount)} MFA devices of its root are deactivated.`,
    ),
  );
}

async function change(
  context: CliContext,
  request: { reference: string; changes: object; options: ConnectOptions },
): Promise<void> {
  const client = await connect(context, request.options);
  const account = (await client.call('PATCH', pathOf(request.reference), request.changes)) as Account;
  printAccount(context, account, request.options);
}

function pathOf(reference: string): string {
  return `/accounts/${encodeSegment(reference)}`;
}

function printAccount(context: CliContext, account: Account, options: ConnectOptions): void {
  const rows = [
    ['id', account.id],
    ['name', account.name],
    ['e-mail', account.email],
    ['canonical id', account.canonicalId],
    ['state', account.state],
    ['buckets', `${formatCount(account.bucketCount)} of ${formatCount(account.bucketsMax)}`],
    ['may be public', account.mayBePublic ? 'yes' : 'no'],
    ['unpaid', account.isUnpaid ? 'yes, uploads are refused' : 'no'],
    ['created', account.createdAt],
    ['access key', (account.accessKeys?.join(' ') ?? account.accessKey) || '-'],
  ];
  if (account.secretKey !== undefined) rows.push(['secret key', account.secretKey]);
  context.print(formatAnswer(options, account, () => formatTable(rows)));
}

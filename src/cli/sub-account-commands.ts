// holdfast account sub: accounts of customers, and what is left of deleted ones. They go by the calls of /api/v1, which the
// operator API has, too (docs/management-api.md).
import { ownValue } from '../base/own-value.ts';
import { Refusal } from '../base/refusal.ts';
import { yesOrNo } from './account-commands.ts';
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import { formatAnswer, formatCount, formatForeign, formatTable } from './format.ts';
import type { OperatorClient } from './operator-client.ts';
import { encodeSegment } from './sign-request.ts';

/** As /api/v1 has it. */
export interface SubAccount {
  id: number;
  name: string;
  status: string;
  accountNumber: string;
  accountEmail: string;
  creationDate: string;
  controlAccountId?: number | null;
  controlAccountName?: string | null;
  trialQuotaTB: number;
  trialExpiration: string;
  purchasedStorageTB: number | null;
  storageQuotaType: string;
  mfaEnabled: boolean;
  isUnpaid: boolean;
  activeStorage: number;
  accessKey?: string;
  secretKey?: string;
  removal?: {
    removedBuckets: number;
    leftBuckets: number;
    keptBucketsCount: number;
    keptBuckets: { name: string; versionCount: number; keptUntil: string | null }[];
  };
}

interface Page<T> {
  items: T[];
  total: number;
}

const PAGE_SIZE = 1000;

/** The data of an envelope. */
async function ask<T>(client: OperatorClient, method: string, path: string, body?: object): Promise<T> {
  return ((await client.call(method, path, body)) as { data: T }).data;
}

/** All items of a list, page by page. */
export async function askAll<T>(
  client: OperatorClient,
  path: string,
  filter: Readonly<Record<string, string | undefined>>,
): Promise<T[]> {
  const items: T[] = [];
  for (let page = 1; ; page++) {
    const query = { ...filter, page: String(page), size: String(PAGE_SIZE) };
    const parts = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [`${encodeSegment(name)}=${encodeSegment(value)}`],
    );
    const found = await ask<Page<T>>(client, 'GET', `${path}?${parts.toSorted().join('&')}`);
    items.push(...found.items);
    if (found.items.length === 0 || items.length >= found.total) return items;
  }
}

export interface NewSubAccountOptions extends ConnectOptions {
  control: string;
  name: string;
  email: string;
  password?: string;
  welcome?: boolean;
  trialDays?: string;
  trialQuota?: string;
  paid?: boolean;
  storage?: string;
  hard?: boolean;
  channel?: string;
}

export async function createSubAccount(context: CliContext, options: NewSubAccountOptions): Promise<void> {
  const { control, name, email, password, welcome, paid, hard, channel } = options;
  const client = await connect(context, options);
  const made = await ask<SubAccount>(client, 'POST', '/sub-accounts', {
    controlAccountId: readNumber('--control', control),
    name,
    accountEmail: email,
    password,
    sendWelcomeEmail: welcome,
    isTrial: paid !== true,
    trialDays: readNumber('--trial-days', options.trialDays),
    trialQuotaTB: readNumber('--trial-quota', options.trialQuota),
    purchasedStorageTB: readNumber('--storage', options.storage),
    storageQuotaType: hard === true ? 'Hard quota' : undefined,
    channelAccountId: readNumber('--channel', channel),
  });
  context.print(formatAnswer(options, made, () => described(made)));
}

export async function listSubAccounts(
  context: CliContext,
  options: ConnectOptions & { control?: string; name?: string; status?: string; deleted?: boolean },
): Promise<void> {
  const { control, name, status, deleted } = options;
  const client = await connect(context, options);
  const found = await askAll<SubAccount>(client, '/sub-accounts', {
    controlAccountId: control,
    name,
    status: status === undefined ? undefined : statusOf(status),
    includeDeleted: deleted === true ? 'true' : undefined,
  });
  context.print(formatAnswer(options, found, () => tableOf(found)));
}

export async function showSubAccount(
  context: CliContext,
  id: string,
  options: ConnectOptions & { keys?: boolean },
): Promise<void> {
  const client = await connect(context, options);
  const query = `includeDeleted=true${options.keys === true ? '&includeKeys=true' : ''}`;
  const found = await ask<SubAccount>(client, 'GET', `${pathOf(id)}?${query}`);
  context.print(formatAnswer(options, found, () => described(found)));
}

export interface SubAccountChanges extends ConnectOptions {
  name?: string;
  email?: string;
  password?: string;
  paid?: boolean;
  trialDays?: string;
  trialQuota?: string;
  storage?: string;
  quota?: string;
  channel?: string;
  resetPassword?: boolean;
  unpaid?: string;
}

export async function setSubAccount(
  context: CliContext,
  id: string,
  options: SubAccountChanges,
): Promise<void> {
  const { name, email, password, paid, quota, channel, resetPassword } = options;
  await change(
    context,
    { id, options },
    {
      name,
      accountEmail: email,
      password,
      trialToPaid: paid === true ? true : undefined,
      trialDays: readNumber('--trial-days', options.trialDays),
      trialQuotaTB: readNumber('--trial-quota', options.trialQuota),
      purchasedStorageTB: readNumber('--storage', options.storage),
      storageQuotaType: quota === undefined ? undefined : quotaOf(quota),
      channelAccountId: readNumber('--channel', channel),
      sendPasswordResetToSubAccountEmail: resetPassword === true ? true : undefined,
      isUnpaid: yesOrNo('--unpaid', options.unpaid),
    },
  );
}

/** One of the changes that have a command of their own. */
export async function changeSubAccount(
  context: CliContext,
  { id, as }: { id: string; as: 'suspend' | 'restore' | 'reset-keys' | 'reset-mfa' },
  options: ConnectOptions,
): Promise<void> {
  await change(context, { id, options }, CHANGES[as]);
}

const CHANGES = {
  suspend: { active: false },
  restore: { active: true },
  'reset-keys': { resetKeys: true },
  'reset-mfa': { resetMFA: true },
} as const;

/** Its keys are refused from now on; its buckets go only by `--with-buckets`. */
export async function deleteSubAccount(
  context: CliContext,
  id: string,
  options: ConnectOptions & { withBuckets?: boolean },
): Promise<void> {
  const client = await connect(context, options);
  const { accountNumber } = await ask<SubAccount>(client, 'GET', pathOf(id));
  const account = await client.call('GET', `/accounts/${encodeSegment(accountNumber)}`);
  const { bucketCount } = account as { bucketCount: number };
  if (bucketCount > 0 && options.withBuckets !== true)
    throw new Refusal(
      `it owns buckets (${bucketCount}): --with-buckets deletes them with all that is in them`,
    );
  await client.call('DELETE', pathOf(id));
  context.print(
    formatAnswer(options, {}, () =>
      bucketCount === 0
        ? `the sub-account ${formatForeign(id)} is deleted`
        : `the sub-account ${formatForeign(id)} is deleted; its buckets are being removed: holdfast account sub show ${id}`,
    ),
  );
}

async function change(
  context: CliContext,
  { id, options }: { id: string; options: ConnectOptions },
  body: object,
): Promise<void> {
  const client = await connect(context, options);
  const changed = await ask<SubAccount>(client, 'PUT', pathOf(id), body);
  context.print(formatAnswer(options, changed, () => described(changed)));
}

function pathOf(id: string): string {
  return `/sub-accounts/${encodeSegment(id)}`;
}

/** Throws {@link Refusal}. */
export function readNumber(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,15}(\.\d{1,6})?$/.test(text)) throw new Refusal(`${option} takes a number`);
  return Number(text);
}

const STATUSES: Readonly<Record<string, string>> = {
  trial: 'ON_TRIAL',
  paid: 'PAID_ACCOUNT',
  suspended: 'SUSPENDED',
  deleted: 'DEACTIVATED',
};

function statusOf(text: string): string {
  const status = ownValue(STATUSES, text.toLowerCase());
  if (status === undefined) throw new Refusal(`--status takes one of ${Object.keys(STATUSES).join(', ')}`);
  return status;
}

/** Throws {@link Refusal}. */
export function quotaOf(text: string): 'Hard quota' | 'Soft quota' {
  const kind = text.toLowerCase();
  if (kind !== 'hard' && kind !== 'soft') throw new Refusal('--quota takes hard or soft');
  return kind === 'hard' ? 'Hard quota' : 'Soft quota';
}

function stateOf({ status }: Pick<SubAccount, 'status'>): string {
  return Object.entries(STATUSES).find(([, wire]) => wire === status)?.[0] ?? status;
}

function tableOf(found: readonly SubAccount[]): string {
  const head = ['ID', 'ACCOUNT', 'STATE', 'CONTROL', 'NAME', 'E-MAIL'];
  const rows = found.map((one) => [
    String(one.id),
    one.accountNumber,
    stateOf(one),
    String(one.controlAccountId ?? '-'),
    formatForeign(one.name),
    formatForeign(one.accountEmail),
  ]);
  return formatTable([head, ...rows]);
}

function described(one: SubAccount): string {
  const { trialExpiration, purchasedStorageTB, accessKey, secretKey, removal } = one;
  const rows = [
    ['id', String(one.id)],
    ['account', one.accountNumber],
    ['name', formatForeign(one.name)],
    ['e-mail', formatForeign(one.accountEmail)],
    ['state', stateOf(one)],
    [
      'control account',
      `${one.controlAccountId ?? '-'} ${formatForeign(one.controlAccountName ?? '')}`.trim(),
    ],
    ...(one.status === 'ON_TRIAL' ? [['trial', `${one.trialQuotaTB} TB until ${trialExpiration}`]] : []),
    ...(purchasedStorageTB === null
      ? []
      : [['storage', `${purchasedStorageTB} TB, ${one.storageQuotaType}`]]),
    ['stored', `${one.activeStorage.toFixed(6)} TB by the last closed day`],
    ...(one.isUnpaid ? [['unpaid', 'yes, uploads are refused']] : []),
    ['MFA', one.mfaEnabled ? 'on' : 'off'],
    ...(accessKey === undefined ? [] : [['access key', accessKey]]),
    ...(secretKey === undefined ? [] : [['secret key', secretKey]]),
  ];
  return [formatTable(rows), ...(removal === undefined ? [] : ['', removalText(removal)])].join('\n');
}

function removalText(removal: NonNullable<SubAccount['removal']>) {
  const { removedBuckets, leftBuckets, keptBucketsCount, keptBuckets } = removal;
  const gone = `${formatCount(removedBuckets)} ${removedBuckets === 1 ? 'is' : 'are'} gone`;
  const begun =
    leftBuckets === 0
      ? 'being removed: its users, groups, roles and policies; no bucket is left'
      : `being removed: ${formatCount(leftBuckets)} ${leftBuckets === 1 ? 'bucket' : 'buckets'}; ${gone}`;
  if (keptBucketsCount === 0) return begun;
  const head = ['BUCKET', 'PROTECTED VERSIONS', 'UNTIL'];
  const rows = keptBuckets.map(({ name, versionCount, keptUntil }) => [
    name,
    formatCount(versionCount),
    keptUntil ?? 'somebody ends a hold',
  ]);
  return `${begun}, ${formatCount(keptBucketsCount)} stay for now\n\n${formatTable([head, ...rows])}`;
}

// holdfast usage: what accounts and buckets store and ask for, day by day; and a recount of it.
import { Refusal } from '../base/refusal.ts';
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import { formatAnswer, formatBytes, formatCount, formatForeign, formatTable } from './format.ts';

/** As the operator API has them, with more. */
interface Figures {
  objects: number;
  paddedBytes: number;
  metadataBytes: number;
  orphanedBytes: number;
  deletedBytes: number;
  uploadBytes: number;
  downloadBytes: number;
  getCalls: number;
  putCalls: number;
  deleteCalls: number;
  listCalls: number;
  headCalls: number;
  otherCalls: number;
}

interface Days {
  days: (Figures & { day: string; isClosed: boolean })[];
}

interface Totals {
  day: string | null;
  accounts: (Figures & { account: string })[];
  total: number;
}

interface WrongCounter {
  account: string;
  bucket?: string;
  of: string;
  field: string;
  missing: number;
}

interface RecountStep {
  bucketCount: number;
  wrong: WrongCounter[];
  isRepaired: boolean;
  next?: string;
}

export interface UsageOptions extends ConnectOptions {
  bucket?: string;
  from?: string;
  to?: string;
  page?: string;
  size?: string;
}

export interface RecountOptions extends ConnectOptions {
  bucket?: string;
  repair?: boolean;
}

export async function showUsage(
  context: CliContext,
  account: string | undefined,
  options: UsageOptions,
): Promise<void> {
  const { bucket, from, to, page, size } = options;
  if (account === undefined && [bucket, from, to].some((given) => given !== undefined))
    throw new Refusal('name the account whose days you want: holdfast usage <account> --from 2026-11-01');
  const client = await connect(context, options);
  if (account === undefined) {
    const pages = {
      ...(page !== undefined && { page: readCount('--page', page) }),
      ...(size !== undefined && { size: readCount('--size', size) }),
    };
    const answer = (await client.call('POST', '/usage/totals', pages)) as Totals;
    context.print(formatAnswer(options, answer, () => describeTotals(answer)));
    return;
  }
  const asked = { account, ...(bucket && { bucket }), ...(from && { from }), ...(to && { to }) };
  const answer = (await client.call('POST', '/usage/find', asked)) as Days;
  context.print(formatAnswer(options, answer, () => describeDays(answer)));
}

/** Throws {@link Refusal} where something is wrong and is not mended. */
export async function recountUsage(context: CliContext, options: RecountOptions): Promise<void> {
  const client = await connect(context, options);
  const { bucket, repair = false } = options;
  const found = { bucketCount: 0, wrong: [] as WrongCounter[], isRepaired: repair };
  let from: string | undefined;
  do {
    const body = { repair, ...(bucket !== undefined && { bucket }), ...(from !== undefined && { from }) };
    const step = (await client.call('POST', '/usage/recount', body)) as RecountStep;
    found.bucketCount += step.bucketCount;
    found.wrong.push(...step.wrong);
    from = step.next;
  } while (from !== undefined);
  context.print(formatAnswer(options, found, () => describeRecount(found)));
  if (found.wrong.length > 0 && !repair)
    throw new Refusal(`${found.wrong.length} counters are wrong; --repair adds what is missing`);
}

function readCount(flag: string, text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new Refusal(`${flag} must be a number from 1 on`);
  return Number(text);
}

const HEAD = ['OBJECTS', 'ACTIVE', 'DELETED', 'RECEIVED', 'SENT', 'REQUESTS'];

function cellsOf(figures: Figures): string[] {
  const { paddedBytes, metadataBytes, orphanedBytes, getCalls, putCalls, deleteCalls } = figures;
  const { listCalls, headCalls, otherCalls } = figures;
  return [
    formatCount(figures.objects),
    formatBytes(paddedBytes + metadataBytes + orphanedBytes),
    formatBytes(figures.deletedBytes),
    formatBytes(figures.uploadBytes),
    formatBytes(figures.downloadBytes),
    formatCount(getCalls + putCalls + deleteCalls + listCalls + headCalls + otherCalls),
  ];
}

function describeDays({ days }: Days): string {
  if (days.length === 0) return 'There is no usage of these days.';
  const rows = days.map((day) => [day.isClosed ? day.day : `${day.day} so far`, ...cellsOf(day)]);
  return formatTable([['DAY (UTC)', ...HEAD], ...rows]);
}

function describeTotals({ day, accounts, total }: Totals): string {
  if (day === null) return 'No day is closed yet. holdfast usage <account> shows today.';
  const rows = accounts.map((one) => [formatForeign(one.account), ...cellsOf(one)]);
  const more =
    total > accounts.length ? [`${formatCount(total)} accounts: --page and --size show others.`] : [];
  return [`On ${day} (UTC)`, formatTable([['ACCOUNT', ...HEAD], ...rows]), ...more].join('\n');
}

function describeRecount({ bucketCount, wrong, isRepaired }: Omit<RecountStep, 'next'>): string {
  const counted = `${formatCount(bucketCount)} buckets were counted.`;
  if (wrong.length === 0) return `${counted} All counters are right.`;
  const rows = wrong.map(({ account, bucket = '', of, field, missing }) => [
    account,
    formatForeign(bucket),
    of,
    field,
    missing > 0 ? `+${missing}` : String(missing),
  ]);
  const table = formatTable([['ACCOUNT', 'BUCKET', 'OF', 'COUNTER', 'MISSING'], ...rows]);
  return `${table}\n${counted}${isRepaired ? ' What was missing is added.' : ''}`;
}

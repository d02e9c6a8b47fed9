// holdfast lifecycle: how the lifecycle of a bucket stands, and what a set of rules would do in it.
import { readFile, stat } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { Refusal } from '../base/refusal.ts';
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import {
  formatAnswer,
  formatBytes,
  formatCount,
  formatDuration,
  formatForeign,
  formatTable,
} from './format.ts';
import { encodeSegment } from './sign-request.ts';

/** As the operator API has them. */
interface Counts {
  examinedCount: number;
  keptCount: number;
  sizeBytes: number;
  byAction: Record<string, number>;
}

interface Report {
  bucket: string;
  enabledRuleCount: number;
  disabledRuleCount: number;
  objectCount: number;
  dueAt?: string;
  lagMs: number;
  nothingBefore?: string;
  pass?: { beganAt: string; stage: string; counts: Counts };
  last?: { beganAt: string; endedAt: string; counts: Counts };
}

interface Sum {
  rule: string;
  action: string;
  isKept: boolean;
  count: number;
  sizeBytes: number;
}

interface Item {
  rule: string;
  action: string;
  isKept: boolean;
  key: string;
  versionId?: string;
  uploadId?: string;
  sizeBytes: number;
}

interface Page {
  sums: Sum[];
  examinedCount: number;
  first: Item[];
  cursor?: string;
}

/** Keys that a preview names, of what would go and of what is kept. */
const FIRST = 20;
/** What the server takes at most, and more. */
const FILE_BYTES_MAX = 1 << 20;

export async function lifecycleStatus(
  context: CliContext,
  bucket: string,
  options: ConnectOptions,
): Promise<void> {
  const client = await connect(context, options);
  const report = (await client.call('GET', `/buckets/${encodeSegment(bucket)}/lifecycle`)) as Report;
  context.print(formatAnswer(options, report, () => formatReport(report)));
}

function formatReport(report: Report): string {
  const { enabledRuleCount, disabledRuleCount, objectCount, dueAt, lagMs, nothingBefore, pass, last } =
    report;
  const rows = [
    ['rules', `${formatCount(enabledRuleCount)} on, ${formatCount(disabledRuleCount)} off`],
    ['versions', formatCount(objectCount)],
  ];
  if (dueAt === undefined) rows.push(['next look', 'never: nothing is ever due']);
  else if (pass === undefined) rows.push(['next look', dueAt]);
  if (nothingBefore !== undefined) rows.push(['nothing is due before', nothingBefore]);
  if (lagMs > 0) rows.push(['due for', formatDuration(lagMs)]);
  if (pass !== undefined) {
    rows.push(['pass under way', `since ${pass.beganAt}, at ${pass.stage}`], ...describeCounts(pass.counts));
  }
  if (last !== undefined) {
    rows.push(['last pass', `${last.beganAt} to ${last.endedAt}`], ...describeCounts(last.counts));
  }
  return formatTable(rows);
}

function describeCounts({ examinedCount, keptCount, sizeBytes, byAction }: Counts): string[][] {
  return [
    ['  examined', formatCount(examinedCount)],
    ...Object.entries(byAction).map(([action, count]) => [`  ${action}`, formatCount(count)]),
    ['  kept by retention', formatCount(keptCount)],
    ['  freed', formatBytes(sizeBytes)],
  ];
}

export interface PreviewOptions extends ConnectOptions {
  file?: string;
  at?: string;
}

/** `-`: standard input. Throws {@link Refusal}. */
async function readRules(file: string): Promise<string> {
  if (file === '-') return text(process.stdin);
  const found = await stat(file).catch((error: Error) => {
    throw new Refusal(`cannot read ${file}: ${error.message}`);
  });
  if (!found.isFile() || found.size > FILE_BYTES_MAX)
    throw new Refusal(
      `${file} has no lifecycle rules: they are a file of ${FILE_BYTES_MAX >> 20} MiB at most`,
    );
  return readFile(file, 'utf8');
}

/** What is due by the rules in a file, or by the present ones, added up page by page. */
export async function previewLifecycle(
  context: CliContext,
  bucket: string,
  options: PreviewOptions,
): Promise<void> {
  const { file, at } = options;
  const document = file === undefined ? undefined : await readRules(file);
  const client = await connect(context, options);
  const path = `/buckets/${encodeSegment(bucket)}/lifecycle/preview`;
  const asked = { ...(document !== undefined && { document }), ...(at !== undefined && { at }) };
  const sums = new Map<string, Sum>();
  const first: Item[] = [];
  let examinedCount = 0;
  for (let cursor: string | undefined, isLast = false; !isLast; isLast = cursor === undefined) {
    const sinceMs = context.nowMs();
    const body = { ...asked, ...(cursor !== undefined && { cursor }) };
    const page = (await client.call('POST', path, body)) as Page;
    examinedCount += page.examinedCount;
    for (const item of page.first) {
      if (first.filter(({ isKept }) => isKept === item.isKept).length < FIRST) first.push(item);
    }
    for (const sum of page.sums) addUp(sums, sum);
    cursor = page.cursor;
    // Clients have at least half of the time.
    if (cursor !== undefined) await context.sleep(context.nowMs() - sinceMs);
  }
  const answer = { sums: [...sums.values()], examinedCount, first };
  context.print(formatAnswer(options, answer, () => formatPreview(answer)));
}

function addUp(sums: Map<string, Sum>, sum: Sum): void {
  const name = JSON.stringify([sum.rule, sum.action, sum.isKept]);
  const before = sums.get(name);
  if (before === undefined) {
    sums.set(name, { ...sum });
    return;
  }
  before.count += sum.count;
  before.sizeBytes += sum.sizeBytes;
}

function formatPreview({ sums, examinedCount, first }: Omit<Page, 'cursor'>): string {
  if (sums.length === 0) return `Nothing is due, of ${formatCount(examinedCount)} that were examined.`;
  const rows = sums.map(({ rule, action, isKept, count, sizeBytes }) => {
    return [formatForeign(rule), describeAction(action, isKept), formatCount(count), formatBytes(sizeBytes)];
  });
  const items = first.map(({ action, isKept, key, versionId, uploadId, sizeBytes }) => {
    const id = versionId ?? uploadId ?? '';
    return [describeAction(action, isKept), formatBytes(sizeBytes), formatForeign(key), id];
  });
  const table = formatTable([['rule', 'action', 'count', 'size'], ...rows]);
  return `${table}\n\nExamined: ${formatCount(examinedCount)}. The first of them:\n${formatTable(items)}`;
}

function describeAction(action: string, isKept: boolean): string {
  return isKept ? `${action}, kept by retention` : action;
}

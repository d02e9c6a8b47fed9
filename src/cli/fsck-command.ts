// holdfast fsck: asks the server for a full comparison, shows its progress, and prints the findings line by line.
import { Refusal } from '../base/refusal.ts';
import { FINDINGS, type Finding, type FindingKind, PENDING, type Pending } from '../types/findings.ts';
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import { formatBytes, formatCount, formatDuration, formatPlace } from './format.ts';
import type { OperatorClient } from './operator-client.ts';

/** The first looks come sooner: little is compared at once. */
const POLL_MIN_MS = 100;
const POLL_MAX_MS = 2000;
const PRINT_EVERY_MS = 5000;

/** Exit codes, as fsck programs have them. */
export const CLEAN = 0;
export const FOUND = 1;
export const COULD_NOT_RUN = 2;

/** As the operator API has it. */
interface Report {
  id: number;
  state: 'running' | 'done' | 'cancelled' | 'failed';
  readData: boolean;
  tookMs: number;
  progress: {
    stage: string;
    rowCount: number;
    chunkCount: number;
    bodyCount: number;
    readBytes: number;
  };
  counts: Partial<Record<FindingKind, number>>;
  findings: Finding[];
  pending: Pending[];
  problem?: string;
}

export interface FsckCommandOptions extends ConnectOptions {
  readData?: boolean;
  fullSpeed?: boolean;
  /** Ends it early, in the server as well. */
  signal?: AbortSignal;
}

/** The exit code. Throws a Refusal with COULD_NOT_RUN when the server cannot be asked or cannot say. */
export async function runFsck(context: CliContext, options: FsckCommandOptions): Promise<number> {
  try {
    const client = await connect(context, options);
    const report = await follow(client, context, options);
    if (report.state !== 'done') throw new Refusal(`not compared: ${report.problem ?? report.state}`);
    const text = options.json === true ? JSON.stringify(report, undefined, 2) : formatReport(report);
    context.print(text);
    return Object.keys(report.counts).length === 0 ? CLEAN : FOUND;
  } catch (error) {
    throw error instanceof Refusal ? new Refusal(error.message, COULD_NOT_RUN) : error;
  }
}

/** Until it has ended. The report has all findings that the server keeps. */
async function follow(
  client: OperatorClient,
  context: CliContext,
  { readData = false, fullSpeed = false, json = false, signal }: FsckCommandOptions,
): Promise<Report> {
  const { id } = (await client.call('POST', '/fsck', { readData, fullSpeed })) as { id: number };
  const findings: Finding[] = [];
  let printedAtMs = context.nowMs();
  for (;;) {
    const report = (await client.call('GET', `/fsck/${id}/${findings.length}`)) as Report;
    findings.push(...report.findings);
    if (report.state !== 'running' && report.findings.length === 0) return { ...report, findings };
    if (report.findings.length > 0) continue;
    if (!json && context.nowMs() - printedAtMs >= PRINT_EVERY_MS) {
      printedAtMs = context.nowMs();
      context.print(describeProgress(report));
    }
    if (signal?.aborted === true) await client.call('DELETE', `/fsck/${id}`);
    await context.sleep(Math.min(POLL_MIN_MS + report.tookMs / 10, POLL_MAX_MS));
  }
}

function describeProgress({ progress, counts }: Report): string {
  const found = sum(counts);
  return `comparing ${progress.stage}: ${seen(progress)}${found > 0 ? `, ${formatCount(found)} found` : ''}`;
}

function seen({ rowCount, chunkCount, bodyCount, readBytes }: Report['progress']): string {
  const parts = [
    `${formatCount(rowCount)} rows`,
    `${formatCount(bodyCount)} small bodies`,
    `${formatCount(chunkCount)} chunks`,
  ];
  if (readBytes > 0) parts.push(`${formatBytes(readBytes)} read`);
  return parts.join(', ');
}

function formatReport(report: Report): string {
  const { counts, findings, pending, progress, tookMs } = report;
  const found = sum(counts);
  const lines = findings.map(formatFinding);
  if (found > findings.length) lines.push(`... and ${formatCount(found - findings.length)} more`);
  for (const [kind, count] of Object.entries(counts) as [FindingKind, number][]) {
    lines.push(`${formatCount(count)} ${kind}: ${FINDINGS[kind]}`);
  }
  for (const { kind, count, oldestAtMs } of pending) {
    const since = new Date(oldestAtMs).toISOString();
    lines.push(`on its way: ${formatCount(count)} ${kind} (${PENDING[kind]}), the oldest of ${since}`);
  }
  const verdict = found === 0 ? 'all agrees' : `${formatCount(found)} found`;
  lines.push(`${verdict}: ${seen(progress)} in ${formatDuration(tookMs)}`);
  return lines.join('\n');
}

/** One line: the kind, then where. */
export function formatFinding({ kind, ...place }: Finding): string {
  return `${kind} ${formatPlace(place)}`;
}

function sum(counts: Report['counts']): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

// holdfast jobs: what goes on by itself, and what has ended lately.
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import { formatAnswer, formatCount, formatDuration, formatForeign, formatTable } from './format.ts';
import type { OperatorClient } from './operator-client.ts';

/** As the operator API has it. */
export interface Job {
  id: string;
  shard: number;
  kind: string;
  bucket: string;
  state: string;
  detail: string;
  doneCount: number;
  totalCount?: number;
  errorCount: number;
  ageMs: number;
  idleMs: number;
}

export interface JobReport {
  /** Those that began last first. */
  jobs: Job[];
  leftOutCount: number;
  missingShards: number[];
}

export async function readJobs(client: OperatorClient): Promise<JobReport> {
  return (await client.call('GET', '/jobs')) as JobReport;
}

export async function showJobs(context: CliContext, options: ConnectOptions): Promise<void> {
  const report = await readJobs(await connect(context, options));
  context.print(formatAnswer(options, report, () => formatJobs(report)));
}

function formatJobs({ jobs, leftOutCount, missingShards }: JobReport): string {
  const lines: string[] = [];
  if (jobs.length === 0) lines.push('There are no jobs.');
  else {
    const rows = jobs.map((job) => [
      job.kind,
      job.bucket,
      job.state,
      progressOf(job),
      job.errorCount === 0 ? '' : `${formatCount(job.errorCount)} errors`,
      `${formatDuration(job.ageMs)} ago`,
      formatForeign(job.detail),
    ]);
    lines.push(formatTable([['job', 'bucket', 'state', 'progress', '', 'began', ''], ...rows]));
  }
  if (leftOutCount > 0) lines.push(`${formatCount(leftOutCount)} older ones are not shown.`);
  if (missingShards.length > 0) lines.push(`Shards that do not answer: ${missingShards.join(', ')}.`);
  return lines.join('\n');
}

function progressOf({ doneCount, totalCount }: Job): string {
  if (totalCount === undefined) return formatCount(doneCount);
  const percent = totalCount === 0 ? 100 : Math.floor((100 * doneCount) / totalCount);
  return `${formatCount(doneCount)} of ${formatCount(totalCount)} (${percent} %)`;
}

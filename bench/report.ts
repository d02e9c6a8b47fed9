// Results as people read them: a Markdown table, JSON beside it, and a bar chart of ratios or shares as SVG.

import { BarChart } from 'echarts/charts';
import { GridComponent, LegendComponent, TitleComponent } from 'echarts/components';
import { init, use } from 'echarts/core';
import { SVGRenderer } from 'echarts/renderers';
import type { Environment } from './environment.ts';
import type { LoadResult } from './load/spec.ts';
import type { MachineBounds } from './machine.ts';
import type { SuiteRow } from './suite.ts';

use([BarChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer]);

export interface ReportRow {
  row: SuiteRow;
  /** One per round. */
  own: LoadResult[];
  other: LoadResult[];
  /** The machine's bound in the row's unit; absent where none fits. */
  bound?: number;
  rssMaxMiB?: number;
}

/** The figure of a result in the row's unit. */
export function figure(row: SuiteRow, result: LoadResult): number {
  if (row.unit === 'MiB/s') return result.bytes / 1024 / 1024 / result.seconds;
  return (row.unit === 'keys/s' ? result.keys : result.operationCount) / result.seconds;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1
    ? (sorted[middle] ?? 0)
    : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

const number = (value: number) => (value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(1));

/** CPU time of one unit of the row in µs, which says more than rates do while other work shares the machine. */
function cpuCost(
  row: SuiteRow,
  results: readonly LoadResult[],
  seconds: (result: LoadResult) => number,
): string {
  const costs = results.map((result) => seconds(result) / (figure(row, result) * result.seconds));
  const cost = median(costs);
  return Number.isNaN(cost) ? '' : number(cost * 1e6);
}

function serverCpuSeconds({ serverCpuSeconds }: LoadResult): number {
  if (serverCpuSeconds === undefined) return Number.NaN;
  return Object.values(serverCpuSeconds).reduce((sum, seconds) => sum + seconds, 0);
}

/** Of a cluster: the part of each role. */
function cpuByRole(row: SuiteRow, results: readonly LoadResult[]): string {
  const roles = Object.keys(results[0]?.serverCpuSeconds ?? {});
  if (roles.length < 2) return '';
  const costs = roles.map(
    (role) => `${role} ${cpuCost(row, results, (result) => result.serverCpuSeconds?.[role] ?? Number.NaN)}`,
  );
  return ` (${costs.join(', ')})`;
}

/** The thread that has used most, which bounds a machine of many processors. */
function busiestThread({ threadCpuSeconds = {} }: LoadResult): { name: string; seconds: number } {
  const [name, seconds] = Object.entries(threadCpuSeconds).sort((a, b) => b[1] - a[1])[0] ?? ['', Number.NaN];
  return { name, seconds };
}

/** Its cost, its name and its share of the server's CPU time. */
function describeBusiest(row: SuiteRow, results: readonly LoadResult[]): string {
  const cost = cpuCost(row, results, (result) => busiestThread(result).seconds);
  if (cost === '') return '';
  const share = median(results.map((result) => busiestThread(result).seconds / serverCpuSeconds(result)));
  const [last] = results.slice(-1);
  // Without its role and number.
  const name = last === undefined ? '' : busiestThread(last).name.split(' ').slice(1, -1).join(' ');
  return `${cost} (${name}, ${Math.round(100 * share)} %)`;
}

/** What each thread has used of the CPU time, µs for one unit, the busiest first; for people. */
export function threadLines(row: SuiteRow, result: LoadResult): string {
  const units = figure(row, result) * result.seconds;
  const threads = Object.entries(result.threadCpuSeconds ?? {})
    .filter(([, seconds]) => seconds / units > 1e-7)
    .sort((a, b) => b[1] - a[1])
    .map(([name, seconds]) => `${name.split(' ').slice(1, -1).join(' ')} ${number((1e6 * seconds) / units)}`);
  return threads.join(', ');
}

export function toMarkdown(rows: readonly ReportRow[]): string {
  const compared = rows.some(({ other }) => other.length > 0);
  const heads = [
    'workload',
    'figure',
    'unit',
    'p50 ms',
    'p99 ms',
    'max ms',
    'errors',
    'client CPU µs',
    'server CPU µs',
    'busiest thread, µs',
    'bound',
    'share of it',
    'peak RSS MiB',
  ];
  if (compared) heads.push('other', 'ratio');
  const lines = rows.map((entry) => {
    const { row, own, other, bound } = entry;
    const value = median(own.map((result) => figure(row, result)));
    const latency = (pick: (result: LoadResult) => number) => number(median(own.map(pick)));
    const cells = [
      row.name,
      number(value),
      row.unit,
      latency((result) => result.latencyMs.p50),
      latency((result) => result.latencyMs.p99),
      latency((result) => result.latencyMs.max),
      String(own.reduce((sum, result) => sum + result.errorCount, 0)),
      cpuCost(row, own, (result) => result.clientCpuSeconds),
      cpuCost(row, own, serverCpuSeconds) + cpuByRole(row, own),
      describeBusiest(row, own),
      bound === undefined ? '' : number(bound),
      bound === undefined ? '' : `${Math.round((100 * value) / bound)} %`,
      entry.rssMaxMiB === undefined ? '' : number(entry.rssMaxMiB),
    ];
    if (compared) {
      // Pair by pair, because the machine drifts between rounds.
      const ratios = own.map((result, round) => {
        const rival = other[round];
        return rival === undefined ? Number.NaN : figure(row, result) / figure(row, rival);
      });
      cells.push(number(median(other.map((result) => figure(row, result)))), median(ratios).toFixed(2));
    }
    return cells;
  });
  return toTable(heads, lines);
}

export function toTable(heads: readonly string[], lines: readonly (readonly string[])[]): string {
  const rows = [heads, ...lines].map((cells) => `| ${cells.join(' | ')} |`);
  return rows.toSpliced(1, 0, `|${heads.map(() => '---').join('|')}|`).join('\n');
}

/** The page that goes with a table: where and how it was measured, and what the machine itself can do. */
export function toPage(parts: {
  table: string;
  environment: Environment;
  bounds: MachineBounds | undefined;
}): string {
  const { table, environment, bounds } = parts;
  const { machine, node, commit, command, date } = environment;
  const lines = [`${date}, ${machine}, Node ${node}, commit ${commit}:`, '', `    ${command}`, ''];
  if (bounds !== undefined) {
    const { md5MiBps, aesGcmMiBps, kvSmallPerSecond, kvLargeMiBps } = bounds;
    lines.push(
      `The machine itself: MD5 ${number(md5MiBps)} MiB/s and AES-256-GCM ${number(aesGcmMiBps)} MiB/s on one core; ` +
        `synced RocksDB writes ${number(kvSmallPerSecond)}/s of 4 KiB (32 in flight), ${number(kvLargeMiBps)} MiB/s of 1 MiB (8 in flight).`,
      '',
    );
  }
  return [...lines, table, ''].join('\n');
}

/** A bar per workload: ratio to the other endpoint where there is one, else share of the machine's bound. */
export function toSvg(rows: readonly ReportRow[]): string {
  const compared = rows.some(({ other }) => other.length > 0);
  const shown = rows.filter(({ bound, other }) => (compared ? other.length > 0 : bound !== undefined));
  const value = ({ row, own, other, bound }: ReportRow) => {
    const figures = (results: readonly LoadResult[]) => median(results.map((result) => figure(row, result)));
    return Number((figures(own) / (compared ? figures(other) : (bound ?? 1))).toFixed(3));
  };
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: 900, height: 80 + 34 * shown.length });
  chart.setOption({
    animation: false,
    title: { text: compared ? 'Ratio to the other endpoint' : "Share of the machine's bound" },
    grid: { left: 190, right: 60, top: 50, bottom: 30 },
    xAxis: { type: 'value' },
    yAxis: { type: 'category', inverse: true, data: shown.map(({ row }) => row.name) },
    series: [{ type: 'bar', data: shown.map(value), label: { show: true, position: 'right' } }],
  });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return svg;
}

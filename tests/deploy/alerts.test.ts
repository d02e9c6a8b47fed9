// The alerts for Prometheus: each names metrics, labels and values that there are, and the bounds of `cluster status`.

import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { LAG_SHOWN_MIN, PENDING_LONG_MS } from '../../src/admin/status/alarms.ts';
import { must } from '../../src/base/assert.ts';
import { METRICS } from '../../src/platform/telemetry/prom-telemetry.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { readDeploy } from '../support/servers/deploy-files.ts';

interface Alert {
  alert: string;
  expr: string;
  for?: string;
  labels: { severity: string };
  annotations: { summary: string };
}

const { groups } = parse(readDeploy('prometheus/alerts.yaml')) as {
  groups: { name: string; rules: Alert[] }[];
};
const alerts = groups.flatMap(({ rules }) => rules);
const alertOf = (name: string) =>
  must(
    alerts.find(({ alert }) => alert === name),
    name,
  );

/** Words of the language itself, and the series that Prometheus makes of each process. */
const WORDS = ['sum', 'max', 'and', 'or'];
const SERIES = ['up'];

interface Selector {
  name: string;
  /** Label and the values that are asked for. */
  labels: { label: string; values: string[] }[];
}

/** What an expression asks for. Throws for what is none of these. */
function selectorsOf(expr: string): Selector[] {
  const selectors: Selector[] = [];
  const rest = expr.replace(/([a-z_]\w*)(?:\{([^}]*)\})?/g, (_, name: string, inner: string | undefined) => {
    if (WORDS.includes(name) && inner === undefined) return ' ';
    const labels = (inner?.split(',') ?? []).map((one) => {
      const [, label = '', values] = /^\s*(\w+)(?:=|!=|=~|!~)"([^"]*)"\s*$/.exec(one) ?? [];
      return { label, values: must(values, `a matcher: ${one}`).split('|') };
    });
    selectors.push({ name, labels });
    return ' ';
  });
  expect(rest.replace(/[\s()]|[<>]=?|==|!=|\b\d+\b/g, ''), expr).toBe('');
  return selectors;
}

function problemsOf({ name, labels }: Selector): string[] {
  if (SERIES.includes(name)) return [];
  const row = Object.entries(METRICS).find(([known]) => known === name)?.[1];
  if (row === undefined) return [`${name} is no metric`];
  const known: readonly string[] = 'labels' in row ? row.labels : [];
  return labels.flatMap(({ label, values }) => {
    if (!known.includes(label)) return [`${name} has no label ${label}`];
    // Its help lists them all.
    const words = row.help.split(/[^\w-]+/);
    const unknown = values.filter((value) => !/^\d+$/.test(value) && !words.includes(value));
    return unknown.map((value) => `${name} has no ${label} ${value}`);
  });
}

test('a missing metric, label or value is found', () => {
  const problems = (expr: string) => selectorsOf(expr).flatMap(problemsOf);
  expect(problems('sum(holdfast_shards{role="primary"}) < max(holdfast_nothing)')).toEqual([
    'holdfast_nothing is no metric',
  ]);
  expect(problems('holdfast_replicas{role="live"} > 0')).toEqual(['holdfast_replicas has no label role']);
  expect(problems('holdfast_replicas{state=~"live|lively"} > 0')).toEqual([
    'holdfast_replicas has no state lively',
  ]);
  expect(problems('rate(holdfast_objects) > 0')).toContain('rate is no metric');
  expect(() => selectorsOf('holdfast_objects % 2')).toThrow();
});

describe.each(alerts.map((alert) => [alert.alert, alert] as const))('%s', (name, alert) => {
  test('uses existing metrics, and reports what it found', () => {
    expect(name).toMatch(/^Holdfast[A-Z][A-Za-z]+$/);
    expect(selectorsOf(alert.expr).flatMap(problemsOf)).toEqual([]);
    expect(selectorsOf(alert.expr)).not.toEqual([]);
    expect(alert.for ?? '1m').toMatch(/^\d+[mh]$/);
    expect(['page', 'ticket']).toContain(alert.labels.severity);
    // A summary may name labels that the result has: those of an aggregate are gone.
    const isAggregate = /\b(sum|max)\(/.test(alert.expr);
    const labels = selectorsOf(alert.expr).flatMap(({ name: of }) => {
      const row: object = METRICS[of as keyof typeof METRICS] ?? {};
      return 'labels' in row ? (row.labels as string[]) : [];
    });
    const named = [...alert.annotations.summary.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label);
    for (const label of named) expect(isAggregate ? [] : [...labels, 'instance']).toContain(label);
  });
});

test('names are unique, and bounds are those of cluster status and of the limits', () => {
  expect(new Set(alerts.map(({ alert }) => alert)).size).toBe(alerts.length);
  expect(alertOf('HoldfastReplicaBehind').expr).toContain(`lag_entries_max > ${LAG_SHOWN_MIN} `);
  expect(alertOf('HoldfastPlacementPending').for).toBe(`${PENDING_LONG_MS / 3_600_000}h`);
  const kept = [LIMITS.storedOutcomesBytesMax, LIMITS.tokenlessOutcomesBytesMax].map(
    (max) => `> ${0.75 * max}`,
  );
  expect(alertOf('HoldfastOutcomesUnderTokens').expr).toContain(kept[0]);
  expect(alertOf('HoldfastOutcomesWithoutTokens').expr).toContain(kept[1]);
});

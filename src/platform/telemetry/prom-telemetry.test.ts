import { expect, test } from 'vitest';
import { createPromTelemetry, METRICS } from './prom-telemetry.ts';

function telemetryWithLog() {
  const lines: { metric: string }[] = [];
  const nothing = () => {};
  const log = {
    debug: nothing,
    info: nothing,
    warn: nothing,
    error: (fields: object) => void lines.push(fields as never),
  };
  return { telemetry: createPromTelemetry({ log }), lines };
}

test('counts, observes and gauges, and brings gauges up to date before a scrape', async () => {
  const { telemetry, lines } = telemetryWithLog();
  const labels = { operation: 'PutObject', outcome: 'ok' };
  telemetry.count('holdfast_s3_requests_total', labels);
  telemetry.count('holdfast_s3_requests_total', labels, 2);
  telemetry.observe('holdfast_s3_request_duration_seconds', 0.02, labels);
  telemetry.onScrape(async () => telemetry.gauge('holdfast_objects', 7));
  const { contentType, text } = await telemetry.scrape();
  expect(contentType).toMatch(/^text\/plain/);
  expect(text).toContain('holdfast_s3_requests_total{operation="PutObject",outcome="ok"} 3');
  expect(text).toContain(
    'holdfast_s3_request_duration_seconds_bucket{le="0.025",operation="PutObject",outcome="ok"} 1',
  );
  expect(text).toContain('holdfast_objects 7');
  expect(text).toContain('holdfast_nodejs_eventloop_lag_seconds');
  expect(lines).toEqual([]);
});

test('a gauge without a value is absent; a new value of a family replaces the old one completely', async () => {
  const { telemetry, lines } = telemetryWithLog();
  const linesOf = async (name: string) => {
    const { text } = await telemetry.scrape();
    return text.split('\n').filter((line) => line.startsWith(name));
  };
  const free = 'holdfast_disk_free_bytes';
  expect(await linesOf('holdfast_objects')).toEqual([]);
  telemetry.gauge('holdfast_objects', 0);
  expect(await linesOf('holdfast_objects')).toEqual(['holdfast_objects 0']);
  telemetry.gaugeAll('holdfast_objects', []);
  expect(await linesOf('holdfast_objects')).toEqual([]);
  telemetry.gaugeAll('holdfast_objects', [{ value: 4 }]);
  expect(await linesOf('holdfast_objects')).toEqual(['holdfast_objects 4']);
  telemetry.gauge(free, 1, { disk: 'a' });
  telemetry.gaugeAll(free, [
    { value: 2, labels: { disk: 'b' } },
    { value: 3, labels: { disk: 'c' } },
  ]);
  expect(await linesOf(free)).toEqual([`${free}{disk="b"} 2`, `${free}{disk="c"} 3`]);
  telemetry.gaugeAll(free, []);
  expect(await linesOf(free)).toEqual([]);
  expect(lines).toEqual([]);
});

test('a metric outside the table is reported once and does no harm', () => {
  const { telemetry, lines } = telemetryWithLog();
  for (let round = 0; round < 2; round++) {
    telemetry.count('holdfast_unheard_of');
    telemetry.gauge('holdfast_s3_requests_total', 1);
    telemetry.count('holdfast_worker_failures_total', { bucket: 'b' });
  }
  expect(lines.map((line) => line.metric)).toEqual([
    'holdfast_unheard_of',
    'holdfast_s3_requests_total',
    'holdfast_worker_failures_total',
  ]);
});

test('names have the prefix, units and "total" as Prometheus recommends', () => {
  for (const [name, row] of Object.entries(METRICS)) {
    expect(name).toMatch(/^holdfast_[a-z0-9_]+$/);
    expect(name.endsWith('_total'), name).toBe(row.kind === 'counter');
  }
});

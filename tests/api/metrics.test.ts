// /metrics: what a monitoring system reads.
import { afterAll, beforeAll, expect } from 'vitest';
import { METRICS } from '../../src/platform/telemetry/prom-telemetry.ts';
import { ownServerTest as test } from '../support/servers/own-server-test.ts';
import { send } from '../support/servers/raw-s3.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

async function scrape(): Promise<string> {
  const answer = await fetch(`${server.endpoint}/metrics`);
  expect([answer.status, answer.headers.get('content-type')]).toEqual([
    200,
    expect.stringMatching(/^text\/plain/),
  ]);
  return answer.text();
}

/** The value of the line that begins with `series`. */
function figureOf(text: string, series: string): number | undefined {
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

test('requests, bytes, commits and stored data are counted', async () => {
  const body = Buffer.alloc(100_000, 'm');
  expect((await send(server, { method: 'PUT', path: '/metrics-1' })).status).toBe(200);
  expect((await send(server, { method: 'PUT', path: '/metrics-1/key', body })).status).toBe(200);
  expect((await send(server, { method: 'GET', path: '/metrics-1/key' })).body.length).toBe(100_000);
  expect((await send(server, { method: 'GET', path: '/metrics-1/none' })).status).toBe(404);
  const text = await scrape();
  expect(figureOf(text, 'holdfast_s3_requests_total{operation="PutObject",outcome="success"}')).toBe(1);
  expect(figureOf(text, 'holdfast_s3_requests_total{operation="GetObject",outcome="client-error"}')).toBe(1);
  expect(
    figureOf(text, 'holdfast_s3_request_duration_seconds_count{operation="GetObject",outcome="success"}'),
  ).toBe(1);
  expect(figureOf(text, 'holdfast_s3_received_bytes_total{operation="PutObject"}')).toBe(100_000);
  expect(figureOf(text, 'holdfast_s3_sent_bytes_total{operation="GetObject"}')).toBeGreaterThanOrEqual(
    100_000,
  );
  expect(figureOf(text, 'holdfast_requests_in_flight')).toBe(1);
  expect(figureOf(text, 'holdfast_kv_commit_group_size_count{store="metadata"}')).toBeGreaterThan(2);
  expect(figureOf(text, 'holdfast_kv_commit_duration_seconds_count{store="chunks"}')).toBeGreaterThan(0);
  expect(figureOf(text, 'holdfast_objects')).toBe(1);
  expect(figureOf(text, 'holdfast_object_bytes')).toBe(100_000);
  expect(figureOf(text, 'holdfast_buckets')).toBe(1);
  expect(figureOf(text, 'holdfast_chunks')).toBe(1);
  expect(figureOf(text, 'holdfast_disk_free_bytes')).toBeGreaterThan(0);
  expect(figureOf(text, 'holdfast_body_buffer_bytes')).toBe(0);
  expect(figureOf(text, 'holdfast_body_buffer_bytes_max')).toBe(128 * 1024 * 1024);
});

test('names are those of the table, labels contain no bucket, key or account', async () => {
  const text = await scrape();
  const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name);
  const ours = names.filter((name) => !/^holdfast_(process|nodejs)_/.test(name));
  expect(ours.sort()).toEqual(Object.keys(METRICS).sort());
  expect(text).not.toMatch(/metrics-1|key"|HF[A-Z0-9]{18}/);
  expect(server.logs().filter(({ event }) => event === 'metric-refused')).toEqual([]);
});

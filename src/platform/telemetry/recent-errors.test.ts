// The last errors as the operator sees them.
import { expect, test } from 'vitest';
import { rememberErrors } from './recent-errors.ts';

const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

test('a repeated error is stored once, counted, and displaces no other', () => {
  let nowMs = 0;
  const log = rememberErrors(SILENT, { wallMs: () => nowMs });
  log.error({ shard: 1 }, 'worker-failed');
  for (nowMs = 1000; nowMs <= 30_000; nowMs += 1000) log.error({ key: 'k' }, 'data-of-a-version-is-lost');
  expect(log.recent()).toEqual([
    {
      at: '1970-01-01T00:00:30.000Z',
      event: 'data-of-a-version-is-lost',
      message: '{"key":"k"}',
      count: 30,
    },
    { at: '1970-01-01T00:00:00.000Z', event: 'worker-failed', message: '{"shard":1}', count: 1 },
  ]);
});

test('the last 20 are stored, the newest first', () => {
  const log = rememberErrors(SILENT, { wallMs: () => 0 });
  for (let shard = 0; shard < 25; shard++) log.error({ shard }, 'worker-failed');
  const kept = log.recent().map(({ message }) => message);
  expect([kept.length, kept[0], kept.at(-1)]).toEqual([20, '{"shard":24}', '{"shard":5}']);
});

// Which bodies may be born yet: those under way, and those whose gateway went before anybody knew.
import { expect, test } from 'vitest';
import { mayBeBorn } from './chunk-clients.ts';
import type { HistoryRecord } from './operations.ts';

const PUT = { kind: 'put', key: 'hen', value: 'a' } as const;

function record(over: Partial<HistoryRecord>): HistoryRecord {
  return {
    ...{ requestId: 'one', shard: 0, client: 0, operation: PUT, outcome: { kind: 'written' } },
    ...{ invokedAt: 1, answeredAt: 2, invokedAtMs: 1000, answeredAtMs: 3000 },
    ...over,
  } as HistoryRecord;
}

test('a body may be born until its client is answered', () => {
  expect(mayBeBorn([record({})], { atMs: 2000, nowMs: 2500 })).toBe(true);
  expect(mayBeBorn([record({})], { atMs: 2000, nowMs: 3000 })).toBe(false);
});

test('one that began later has lost nothing, and a read stores nothing', () => {
  expect(mayBeBorn([record({})], { atMs: 999, nowMs: 2500 })).toBe(false);
  const read = record({ operation: { kind: 'read', key: 'hen' } });
  expect(mayBeBorn([read], { atMs: 2000, nowMs: 2500 })).toBe(false);
});

test('one of which nobody knows may be committed for a while yet', () => {
  const unknown = record({ outcome: undefined });
  expect(mayBeBorn([unknown], { atMs: 2000, nowMs: 10_000 })).toBe(true);
  expect(mayBeBorn([unknown], { atMs: 2000, nowMs: 120_000 })).toBe(false);
  const underWay = record({ outcome: undefined, answeredAtMs: Number.POSITIVE_INFINITY });
  expect(mayBeBorn([underWay], { atMs: 2000, nowMs: 120_000 })).toBe(true);
});

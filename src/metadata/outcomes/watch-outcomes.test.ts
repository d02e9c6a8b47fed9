import { expect, test, vi } from 'vitest';
import { openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import { runUntilIdle } from '../../../tests/support/metadata/run-worker.ts';
import { TOKEN_REQUESTS, tokenOf } from '../../../tests/support/servers/token-requests.ts';
import { counterKey } from '../engine/counters.ts';
import { COUNTER } from '../schema/counters.ts';
import { createOutcomeWatch } from './watch-outcomes.ts';

/** Two shards, of which the second keeps this much already. */
async function setUp(stored: { tokens: number; tokenless: number }) {
  const world = await openMetadata({ shardCount: 2 });
  await world.createBucket();
  for (const [name, count] of [
    [COUNTER.keptBytes, stored.tokens],
    [COUNTER.tokenlessBytes, stored.tokenless],
  ] as const) {
    const value = Buffer.alloc(8);
    value.writeDoubleBE(count);
    await world.kv.commit([{ column: 'rows', key: counterKey(1, name), value }]);
  }
  const gauges = new Map<string, number>();
  const telemetry = {
    count() {},
    observe() {},
    gaugeAll() {},
    gauge: (name: string, value: number, labels: Readonly<Record<string, string>> = {}) =>
      void gauges.set([name, ...Object.values(labels)].join(' '), value),
  };
  let led = [0, 1];
  const watch = createOutcomeWatch({ metadata: world.shards, shards: () => led, telemetry });
  return {
    world,
    lead(shards: number[]) {
      led = shards;
    },
    /** What is shown after a look. */
    async look() {
      await runUntilIdle(watch);
      return Object.fromEntries(gauges);
    },
  };
}

const shown = (figures: { tokens: [sum: number, max: number]; tokenless: [sum: number, max: number] }) => ({
  'holdfast_outcome_bytes tokens': figures.tokens[0],
  'holdfast_outcome_bytes_max tokens': figures.tokens[1],
  'holdfast_outcome_bytes tokenless': figures.tokenless[0],
  'holdfast_outcome_bytes_max tokenless': figures.tokenless[1],
});

test('shows the stored bytes of shards led here: the sum, and of the fullest', async () => {
  const { world, lead, look } = await setUp({ tokens: 5000, tokenless: 7000 });
  expect(await look()).toEqual(shown({ tokens: [5000, 5000], tokenless: [7000, 7000] }));
  const { setUp: prepare, send } = TOKEN_REQUESTS['begin-move'];
  await prepare(world, 'a');
  await send(world, 'a', tokenOf('a'));
  await send(world, 'a');
  const { tokenBytes, tokenlessBytes } = await world.query('count-kept', {});
  expect(tokenBytes).toBeGreaterThan(tokenlessBytes);
  expect(tokenlessBytes).toBeGreaterThan(0);
  expect(await look()).toEqual(
    shown({ tokens: [5000 + tokenBytes, 5000], tokenless: [7000 + tokenlessBytes, 7000] }),
  );
  lead([0]);
  const own = shown({ tokens: [tokenBytes, tokenBytes], tokenless: [tokenlessBytes, tokenlessBytes] });
  expect(await look()).toEqual(own);
  lead([]);
  expect(await look()).toEqual(shown({ tokens: [0, 0], tokenless: [0, 0] }));
});

test('a shard that does not answer is left out', async () => {
  const { world, look } = await setUp({ tokens: 5000, tokenless: 7000 });
  const query = vi.spyOn(world.shards, 'query');
  query.mockResolvedValueOnce({ kind: 'unavailable' } as never);
  expect(await look()).toEqual(shown({ tokens: [5000, 5000], tokenless: [7000, 7000] }));
});

// The gateway that stands in for the product's: for how long it tries, and what it says then.
import { beforeEach, expect, test } from 'vitest';
import type { ShardCallPort, ShardReply } from '../../src/ports/shard-calls.ts';
import { Chance } from './chance.ts';
import { SimulatedHost, SimulatedProcess } from './clock.ts';
import { Counts } from './counts.ts';
import { SimulatedGateway } from './gateway.ts';
import { Scheduler } from './scheduler.ts';

const NODES = ['a', 'b', 'c'];
const PRIMARY = 'c';
const NETWORK_MS = 1;
/** Of a client that has hardly any. */
const PATIENCE_MS = 100;
const SEEDS = Array.from({ length: 40 }, (_, seed) => seed);

let scheduler: Scheduler;
let asked: string[];
let givenUp: string[];

beforeEach(() => {
  asked = [];
  givenUp = [];
});

/** How one request ends, of a gateway whose calls are answered by `reply`. */
async function ask(seed: number, reply: (to: string) => ShardReply | undefined) {
  scheduler = new Scheduler();
  const host = new SimulatedHost('gateway', { scheduler, chance: new Chance(seed) });
  const process = new SimulatedProcess('gateway', { host, chance: new Chance(seed) });
  const call = async (to: string): Promise<ShardReply> => {
    asked.push(to);
    await process.clock.sleep(NETWORK_MS);
    const said = reply(to);
    if (said === undefined) throw new Error('the connection broke');
    return said;
  };
  const gateway = new SimulatedGateway(process, {
    calls: { call } as ShardCallPort,
    nodeIds: NODES,
    chance: new Chance(seed),
    counts: new Counts(),
    observer: { onReply: () => undefined, onGivenUp: (id) => givenUp.push(id) },
  });
  const envelope = { shard: 0 };
  const request = { kind: 'query' as const, envelope, name: 'read', body: {} };
  let answer: { kind: string } | undefined;
  const begin = () =>
    gateway.run({ requestId: '1', call: request, patienceMs: PATIENCE_MS }).then((value) => {
      answer = value;
    });
  scheduler.after(0, { name: 'asks', run: () => void begin() });
  await scheduler.run(() => answer !== undefined, 60_000);
  return answer;
}

test.each(SEEDS)(
  'tickets that have grown old cost a client of little patience nothing (%i)',
  async (seed) => {
    const known = new Set<string>();
    const answer = await ask(seed, (to) => {
      if (!known.has(to)) {
        known.add(to);
        return { kind: 'too-old' };
      }
      return to === PRIMARY
        ? { kind: 'done', value: 1, timeMs: 0 }
        : { kind: 'not-primary', primary: PRIMARY };
    });
    expect(answer).toMatchObject({ kind: 'done' });
  },
);

test('patience ends when nobody leads', async () => {
  const answer = await ask(1, () => ({ kind: 'not-primary', primary: undefined }));
  expect(answer).toEqual({ kind: 'unknown' });
  expect(givenUp).toEqual(['1']);
  expect(scheduler.nowMs).toBeLessThan(1000);
});

test('calls that may still be evaluated are waited for, however little patience is left (R48)', async () => {
  const answer = await ask(1, () => undefined);
  expect(answer).toEqual({ kind: 'unknown' });
  expect(scheduler.nowMs).toBeGreaterThan(5000);
  expect(asked.length).toBeGreaterThan(0);
});

import { beforeEach, describe, expect, test } from 'vitest';
import { createManualClock, type ManualClock } from '../../tests/support/run/simulated.ts';
import { LIMITS } from '../types/limits.ts';
import { createRevocationWait, type RevocationWait } from './revocation-wait.ts';

const SECOND = 1000;
const { gatewayTrackedMs, revocationWaitMaxMs } = LIMITS;

let clock: ManualClock;
let epoch: number | undefined;
let wait: RevocationWait;
beforeEach(() => {
  clock = createManualClock(0);
  epoch = 1;
  wait = createRevocationWait({ clock, epoch: () => epoch });
});

async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 100) {
    clock.advance(Math.min(100, left));
    await new Promise(setImmediate);
  }
}

function ask(gateway: string, seq?: number): void {
  wait.hasAsked(gateway);
  if (seq !== undefined) wait.hasApplied(gateway, seq);
}

/** Starts a wait that reports when it has ended. */
function settle(seq: number): { tookMs: number | undefined } {
  const startedMs = clock.monotonicMs();
  const state = { tookMs: undefined as number | undefined };
  void wait.untilApplied(seq).then(() => {
    state.tookMs = clock.monotonicMs() - startedMs;
  });
  return state;
}

/** Stays open for long enough to know all gateways. */
async function beOpen(...gateways: string[]): Promise<void> {
  await pass(gatewayTrackedMs);
  for (const gateway of gateways) ask(gateway, 1);
}

test('ends at once when no gateway uses a cache', async () => {
  await beOpen();
  const settled = settle(2);
  await pass(0);
  await new Promise(setImmediate);
  expect(settled.tookMs).toBe(0);
});

test('lasts until every gateway has asked with this position or a later one', async () => {
  await beOpen('a', 'b');
  const settled = settle(2);
  await pass(300);
  ask('a', 2);
  await pass(300);
  ask('b', 1);
  await pass(400);
  expect(settled.tookMs).toBeUndefined();
  ask('b', 3);
  await pass(100);
  expect(settled.tookMs).toBe(1 * SECOND + 100);
});

test('lasts five seconds at most for a gateway that asks no more', async () => {
  await beOpen('a', 'b');
  const settled = settle(2);
  ask('a', 2);
  await pass(revocationWaitMaxMs - 100);
  expect(settled.tookMs).toBeUndefined();
  await pass(100);
  expect(settled.tookMs).toBe(revocationWaitMaxMs);
});

test('lasts until a gateway that was silent before must have stopped by itself', async () => {
  await beOpen('a');
  await pass(gatewayTrackedMs - 2 * SECOND);
  const settled = settle(2);
  await pass(2 * SECOND - 100);
  expect(settled.tookMs).toBeUndefined();
  await pass(100);
  expect(settled.tookMs).toBe(2 * SECOND);
  expect(await Promise.race([wait.untilApplied(3).then(() => 'at once'), pass(100)])).toBe('at once');
});

test('lasts while a question is unanswered: its answer may be without the change', async () => {
  await beOpen();
  wait.hasAsked('a');
  const settled = settle(2);
  await pass(SECOND);
  expect(settled.tookMs).toBeUndefined();
  ask('a', 2);
  await pass(100);
  expect(settled.tookMs).toBe(SECOND + 100);
});

test('does not include a gateway that comes later', async () => {
  await beOpen('a');
  const settled = settle(2);
  ask('new');
  ask('a', 2);
  await pass(100);
  expect(settled.tookMs).toBe(100);
});

test('ignores an older position, whatever comes in between', async () => {
  await beOpen('a');
  ask('a', 2);
  ask('a', 1);
  expect(await Promise.race([wait.untilApplied(2).then(() => 'at once'), pass(100)])).toBe('at once');
});

test('is separate for each of several changes', async () => {
  await beOpen('a');
  const [first, second] = [settle(2), settle(3)];
  await pass(SECOND);
  ask('a', 2);
  await pass(SECOND);
  ask('a', 3);
  await pass(100);
  expect([first.tookMs, second.tookMs]).toEqual([SECOND + 100, 2 * SECOND + 100]);
});

test('continues for a repeated command (R18), and does not begin again', async () => {
  await beOpen('a');
  const first = settle(2);
  await pass(3 * SECOND);
  const again = settle(2);
  await pass(2 * SECOND);
  expect([first.tookMs, again.tookMs]).toEqual([revocationWaitMaxMs, 2 * SECOND]);
});

describe('of a primary that knows no gateways yet', () => {
  test('lasts the five seconds, whatever gateways ask', async () => {
    await pass(gatewayTrackedMs - 100);
    ask('a', 2);
    const settled = settle(2);
    await pass(revocationWaitMaxMs - 100);
    expect(settled.tookMs).toBeUndefined();
    await pass(100);
    expect(settled.tookMs).toBe(revocationWaitMaxMs);
  });

  test('lasts as long after it opens again', async () => {
    await beOpen('a');
    epoch = undefined;
    await pass(100);
    epoch = 3;
    ask('a', 2);
    const settled = settle(2);
    await pass(revocationWaitMaxMs - 100);
    expect(settled.tookMs).toBeUndefined();
    await pass(100);
    expect(settled.tookMs).toBe(revocationWaitMaxMs);
    await pass(gatewayTrackedMs);
    ask('a', 2);
    expect(await Promise.race([wait.untilApplied(2).then(() => 'at once'), pass(100)])).toBe('at once');
  });

  test('continues to its end when the primary steps down', async () => {
    await beOpen('a');
    const settled = settle(2);
    await pass(SECOND);
    epoch = undefined;
    ask('b');
    await pass(revocationWaitMaxMs - SECOND - 100);
    expect(settled.tookMs).toBeUndefined();
    await pass(100);
    expect(settled.tookMs).toBe(revocationWaitMaxMs);
  });

  test('lasts the five seconds after more gateways came than it can remember', async () => {
    await beOpen();
    for (let gateway = 0; gateway <= LIMITS.gatewaysTrackedMax; gateway++) ask(`g${gateway}`, 2);
    const settled = settle(2);
    await pass(revocationWaitMaxMs - 100);
    expect(settled.tookMs).toBeUndefined();
    await pass(100);
    expect(settled.tookMs).toBe(revocationWaitMaxMs);
  });
});

test('knows which master keys gateways have, and marks when one has come or is not settled', async () => {
  expect(wait.holders()).toMatchObject({ holders: [], knownInMs: gatewayTrackedMs });
  await pass(gatewayTrackedMs);
  const tell = (gateway: string, settledKeyId?: string) => {
    wait.hasAsked(gateway, { keyIds: ['k'], ...(settledKeyId !== undefined && { settledKeyId }) });
    return wait.holders().mark;
  };
  const first = tell('a', 'k');
  expect(wait.holders()).toEqual({
    holders: [{ gateway: 'a', keyIds: ['k'], settledKeyId: 'k' }],
    mark: first,
  });
  expect(tell('a', 'k')).toBe(first);
  const marks = [first, tell('b', 'k'), tell('a'), tell('a', 'k'), tell('a', 'other')];
  expect(new Set(marks).size).toBe(marks.length);
  // Forgotten, and back.
  await pass(gatewayTrackedMs + 1);
  expect(wait.holders().holders).toEqual([]);
  expect(marks).not.toContain(tell('a', 'other'));
  epoch = 2;
  expect(wait.holders()).toMatchObject({ holders: [], knownInMs: gatewayTrackedMs });
});

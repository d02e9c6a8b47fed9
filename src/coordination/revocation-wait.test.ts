import { beforeEach, describe, expect, test } from 'vitest';
import { createManualClock, type ManualClock } from '../../tests/support/simulated.ts';
import { LIMITS } from '../types/limits.ts';
import { createRevocationWait, type RevocationWait } from './revocation-wait.ts';

const SECOND = 1000;
const { gatewayHeardMs, revocationWaitMaxMs } = LIMITS;

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
  wait.hears(gateway);
  if (seq !== undefined) wait.hasDigested(gateway, seq);
}

/** A wait that says when it is over. */
function settle(seq: number): { tookMs: number | undefined } {
  const startedMs = clock.monotonicMs();
  const state = { tookMs: undefined as number | undefined };
  void wait.settle(seq).then(() => {
    state.tookMs = clock.monotonicMs() - startedMs;
  });
  return state;
}

/** Open for long enough to know everybody. */
async function beOpen(...gateways: string[]): Promise<void> {
  await pass(gatewayHeardMs);
  for (const gateway of gateways) ask(gateway, 1);
}

test('nobody serves from a cache: at once', async () => {
  await beOpen();
  const settled = settle(2);
  await pass(0);
  await new Promise(setImmediate);
  expect(settled.tookMs).toBe(0);
});

test('until every gateway has asked with it, or with something later', async () => {
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

test('one that asks no more is waited for at most five seconds', async () => {
  await beOpen('a', 'b');
  const settled = settle(2);
  ask('a', 2);
  await pass(revocationWaitMaxMs - 100);
  expect(settled.tookMs).toBeUndefined();
  await pass(100);
  expect(settled.tookMs).toBe(revocationWaitMaxMs);
});

test('one that was silent before is waited for until it has stopped by itself', async () => {
  await beOpen('a');
  await pass(gatewayHeardMs - 2 * SECOND);
  const settled = settle(2);
  await pass(2 * SECOND - 100);
  expect(settled.tookMs).toBeUndefined();
  await pass(100);
  expect(settled.tookMs).toBe(2 * SECOND);
  expect(await Promise.race([wait.settle(3).then(() => 'at once'), pass(100)])).toBe('at once');
});

test('a question that is not answered yet counts: its answer may be without the change', async () => {
  await beOpen();
  wait.hears('a');
  const settled = settle(2);
  await pass(SECOND);
  expect(settled.tookMs).toBeUndefined();
  ask('a', 2);
  await pass(100);
  expect(settled.tookMs).toBe(SECOND + 100);
});

test('one that comes later is not waited for', async () => {
  await beOpen('a');
  const settled = settle(2);
  ask('new');
  ask('a', 2);
  await pass(100);
  expect(settled.tookMs).toBe(100);
});

test('an older place does not count, whatever comes in between', async () => {
  await beOpen('a');
  ask('a', 2);
  ask('a', 1);
  expect(await Promise.race([wait.settle(2).then(() => 'at once'), pass(100)])).toBe('at once');
});

test('several at a time, each for its own', async () => {
  await beOpen('a');
  const [first, second] = [settle(2), settle(3)];
  await pass(SECOND);
  ask('a', 2);
  await pass(SECOND);
  ask('a', 3);
  await pass(100);
  expect([first.tookMs, second.tookMs]).toEqual([SECOND + 100, 2 * SECOND + 100]);
});

test('asked for again (R18), a command goes on waiting and does not begin anew', async () => {
  await beOpen('a');
  const first = settle(2);
  await pass(3 * SECOND);
  const again = settle(2);
  await pass(2 * SECOND);
  expect([first.tookMs, again.tookMs]).toEqual([revocationWaitMaxMs, 2 * SECOND]);
});

describe('a primary that knows nobody yet', () => {
  test('waits the five seconds, whoever asks', async () => {
    await pass(gatewayHeardMs - 100);
    ask('a', 2);
    const settled = settle(2);
    await pass(revocationWaitMaxMs - 100);
    expect(settled.tookMs).toBeUndefined();
    await pass(100);
    expect(settled.tookMs).toBe(revocationWaitMaxMs);
  });

  test('so does one that opens again', async () => {
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
    await pass(gatewayHeardMs);
    ask('a', 2);
    expect(await Promise.race([wait.settle(2).then(() => 'at once'), pass(100)])).toBe('at once');
  });

  test('who steps down while it waits goes on to the end', async () => {
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

  test('more gateways than it can remember: it knows nobody again', async () => {
    await beOpen();
    for (let gateway = 0; gateway <= LIMITS.gatewaysHeardMax; gateway++) ask(`g${gateway}`, 2);
    const settled = settle(2);
    await pass(revocationWaitMaxMs - 100);
    expect(settled.tookMs).toBeUndefined();
    await pass(100);
    expect(settled.tookMs).toBe(revocationWaitMaxMs);
  });
});

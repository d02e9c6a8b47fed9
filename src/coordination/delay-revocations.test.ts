import { beforeEach, expect, test } from 'vitest';
import { createManualClock, type ManualClock } from '../../tests/support/run/simulated.ts';
import type { ShardCall, ShardCallHandler, ShardReply } from '../ports/shard-calls.ts';
import { LIMITS } from '../types/limits.ts';
import type { AccountId } from '../types/names.ts';
import { delayRevocations } from './delay-revocations.ts';
import { createRevocationWait } from './revocation-wait.ts';

const ANN = '000000000011' as AccountId;

let clock: ManualClock;
let handler: ShardCallHandler;
/** What the node answers. */
let answer: (call: ShardCall) => Promise<ShardReply>;

beforeEach(() => {
  clock = createManualClock(0);
  const wait = createRevocationWait({ clock, epoch: () => 1 });
  const node: ShardCallHandler = {
    ticket: () => ({ processId: 'p', monotonicMs: 5, wallMs: 0 }),
    handle: (call) => answer(call),
  };
  handler = delayRevocations(node, wait);
  clock.advance(LIMITS.gatewayTrackedMs);
});

const done = (value: object): ShardReply => ({ kind: 'done', value, timeMs: 0 });
const at = (seq: number) => ({ seq, mark: 'm' });

function call(kind: 'execute' | 'query', name: string, body: object, shard = 0): Promise<ShardReply> {
  const ticket = handler.ticket();
  return handler.handle({ kind, envelope: { shard }, name: name as never, body, ticket, budgetMs: 1 });
}

async function ask(gateway: string, seq: number | undefined, kind = 'changes'): Promise<void> {
  answer = async () => done({ kind, upTo: at(9), changes: [] });
  await call('query', 'identity-changes', { gateway, ...(seq !== undefined && { since: at(seq) }) });
}

/** Ms until the command is answered, while `meanwhile` runs. */
async function timeOf(value: object, meanwhile: () => Promise<void> = async () => {}, shard = 0) {
  answer = async () => done(value);
  const startedMs = clock.monotonicMs();
  let endedMs: number | undefined;
  const changes = { accountId: ANN, changes: {} };
  void call('execute', 'set-account', changes, shard).then(() => {
    endedMs = clock.monotonicMs();
  });
  await new Promise(setImmediate);
  await meanwhile();
  for (let step = 0; step < 60; step++) {
    await new Promise(setImmediate);
    clock.advance(100);
  }
  return (endedMs ?? Number.NaN) - startedMs;
}

test('commands that revoke nothing, or of another shard, pass at once', async () => {
  await ask('g', 1);
  expect(await timeOf({ kind: 'changed' })).toBe(0);
  await ask('g', 1);
  expect(await timeOf({ kind: 'changed', revokedSeq: 2 }, undefined, 1)).toBe(0);
  expect(handler.ticket()).toEqual({ processId: 'p', monotonicMs: 5, wallMs: 0 });
});

test('a revocation waits until each gateway asks with a later position', async () => {
  await ask('g', 1);
  expect(await timeOf({ revokedSeq: 2 })).toBe(LIMITS.revocationWaitMaxMs);
  await ask('g', 2);
  expect(await timeOf({ revokedSeq: 3 }, () => ask('g', 3))).toBe(0);
  await ask('g', 3);
  expect(await timeOf({ revokedSeq: 3 })).toBe(0);
});

test('a position in another history does not count', async () => {
  await ask('g', 7, 'reset');
  expect(await timeOf({ revokedSeq: 2 })).toBe(LIMITS.revocationWaitMaxMs);
});

test('a question without an answer yet is waited for', async () => {
  const held = Promise.withResolvers<ShardReply>();
  answer = () => held.promise;
  void call('query', 'identity-changes', { gateway: 'g' });
  const tookMs = await timeOf({ revokedSeq: 2 }, async () => held.resolve(done({ kind: 'reset' })));
  expect(tookMs).toBe(LIMITS.revocationWaitMaxMs);
});

test('a command that failed on the node is answered at once', async () => {
  await ask('g', 1);
  for (const kind of ['busy', 'unknown', 'too-old'] as const) {
    answer = async () => ({ kind });
    expect(await call('execute', 'set-account', {})).toEqual({ kind });
  }
  answer = async () => ({ kind: 'not-primary', primary: 'n' });
  expect(await call('query', 'identity-changes', { gateway: 'g' })).toMatchObject({ primary: 'n' });
});

test('the answer is checked like a read: a node that is no longer primary does not give it', async () => {
  await ask('g', 1);
  let hasLost = false;
  const asked: string[] = [];
  answer = async ({ name }) => {
    asked.push(name);
    return hasLost && name !== 'delete-account'
      ? { kind: 'not-primary', primary: 'n' }
      : done({ revokedSeq: 2 });
  };
  const reply = call('execute', 'delete-account', { accountId: ANN });
  await new Promise(setImmediate);
  hasLost = true;
  clock.advance(LIMITS.revocationWaitMaxMs);
  expect(await reply).toEqual({ kind: 'unknown' });
  expect(asked).toEqual(['delete-account', 'get-history']);
});

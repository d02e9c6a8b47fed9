// How soon a gateway finds a shard's new primary when the old one hangs instead of refusing.
import { expect, test } from 'vitest';
import { createManualClock, createSeededRandom } from '../../tests/support/run/simulated.ts';
import type { ShardCall, ShardReply } from '../ports/shard-calls.ts';
import type { ShardRecord } from '../ports/shard-registry.ts';
import { LIMITS } from '../types/limits.ts';
import { createMetadataRouter } from './route-metadata.ts';

const STEP_MS = 10;
const [OLD, OTHER] = ['a'.repeat(32), 'b'.repeat(32)];
const refOf = (nodeId: string) => ({ nodeId, replicaId: nodeId });
const RECORD: ShardRecord = {
  incarnation: 1,
  epoch: 1,
  primary: refOf(OLD),
  voters: [OLD, OTHER].map(refOf),
  prevVoters: null,
  learners: [],
  nonce: '',
};

/** A router that takes `OLD` for the primary; `answer`: what a node answers, undefined: nothing. */
function openRouter(
  answer: (node: string, nowMs: number, kind: ShardCall['kind']) => ShardReply | undefined,
) {
  const clock = createManualClock(0);
  const asked: { node: string; kind: string; atMs: number; isRetry: boolean; budgetMs: number }[] = [];
  const calls = {
    call(node: string, { kind, envelope, budgetMs }: ShardCall): Promise<ShardReply> {
      asked.push({ node, atMs: clock.monotonicMs(), isRetry: envelope.isRetry === true, budgetMs, kind });
      const reply = answer(node, clock.monotonicMs(), kind);
      return reply === undefined ? new Promise(() => {}) : Promise.resolve(reply);
    },
  };
  const router = createMetadataRouter({ shardCount: 2, calls, clock, random: createSeededRandom(1) });
  for (const shard of [0, 1])
    router.onRegistered(shard, { record: RECORD, revision: 1, registryRevision: 1 });
  /** The duration of one query. */
  const timeOf = async (shard: number): Promise<number> => {
    const begunMs = clock.monotonicMs();
    let tookMs: number | undefined;
    void router.query({ shard }, 'get-bucket', { bucketId: 'x' } as never).then(() => {
      tookMs = clock.monotonicMs() - begunMs;
    });
    while (tookMs === undefined && clock.monotonicMs() < begunMs + 60_000) {
      await new Promise(setImmediate);
      clock.advance(STEP_MS);
    }
    return tookMs ?? Number.POSITIVE_INFINITY;
  };
  /** The outcome of one command, and its time. */
  const execute = async (more: { waitMaxMs?: number } = {}): Promise<{ kind: string; atMs: number }> => {
    let end: { kind: string; atMs: number } | undefined;
    void router.execute({ shard: 0, ...more }, 'create-bucket', {} as never).then(({ kind }) => {
      end = { kind, atMs: clock.monotonicMs() };
    });
    while (end === undefined) {
      await new Promise(setImmediate);
      clock.advance(STEP_MS);
    }
    return end;
  };
  return { asked, clock, router, timeOf, execute };
}

const done: ShardReply = { kind: 'done', value: null, timeMs: 0 };
const NEW_LEADS_AT_MS = 4000;

/** The old node is silent; the other names it as the primary, until it leads itself. */
const takenOver = (node: string, nowMs: number): ShardReply | undefined => {
  if (node === OLD) return undefined;
  return nowMs < NEW_LEADS_AT_MS ? { kind: 'not-primary', primary: OLD } : done;
};

test('a silent node is not asked again because another one names it as the primary', async () => {
  const { asked, timeOf } = openRouter(takenOver);
  expect(await timeOf(0)).toBeLessThan(NEW_LEADS_AT_MS + 500);
  expect(asked.filter(({ node }) => node === OLD)).toHaveLength(1);
});

test('requests for other shards know what one request found out about a node', async () => {
  const { asked, timeOf } = openRouter(takenOver);
  await timeOf(0);
  expect(await timeOf(1)).toBeLessThan(500);
  expect(asked.filter(({ node }) => node === OLD)).toHaveLength(1);
});

test('a primary whose answer was lost is asked again after a while', async () => {
  const { asked, timeOf } = openRouter((node, nowMs) => {
    if (node === OTHER) return { kind: 'not-primary', primary: OLD };
    return nowMs === 0 ? undefined : done;
  });
  expect(await timeOf(0)).toBeLessThan(10_000);
  expect(asked.filter(({ node }) => node === OLD)).toHaveLength(2);
});

test('a node that holds one answer back and gives others is asked for those as before', async () => {
  const { timeOf, execute } = openRouter((node, nowMs, kind) => {
    if (node === OTHER) return { kind: 'not-primary', primary: OLD };
    return kind === 'execute' && nowMs < NEW_LEADS_AT_MS ? undefined : done;
  });
  let isAnswered = false;
  const heldBack = execute().finally(() => {
    isAnswered = true;
  });
  while (!isAnswered) expect(await timeOf(1)).toBeLessThan(200);
  expect(await heldBack).toMatchObject({ kind: 'done' });
});

test('a call that a node has is not sent to it again for seconds, though it answers others and is named as the primary', async () => {
  const { asked, timeOf, execute } = openRouter((node, _nowMs, kind) => {
    if (node === OTHER) return { kind: 'not-primary', primary: OLD };
    return kind === 'execute' ? undefined : done;
  });
  let isAnswered = false;
  const heldBack = execute().finally(() => {
    isAnswered = true;
  });
  while (!isAnswered) await timeOf(1);
  expect(await heldBack).toMatchObject({ kind: 'unknown' });
  const sentMs = asked.filter(({ kind, node }) => kind === 'execute' && node === OLD).map(({ atMs }) => atMs);
  expect(sentMs).toHaveLength(2);
});

test.each([1500, 2000, 5000])('a caller that waits for %i ms has its answer by then', async (waitMaxMs) => {
  const { asked, execute } = openRouter(() => undefined);
  const { kind, atMs } = await execute({ waitMaxMs });
  expect(kind).toBe('unknown');
  expect(atMs).toBeLessThanOrEqual(waitMaxMs + STEP_MS);
  expect(asked.length).toBeGreaterThan(0);
  // Nothing is evaluated behind its back (R48).
  for (const { atMs: sentMs, budgetMs } of asked) expect(sentMs + budgetMs).toBeLessThanOrEqual(waitMaxMs);
});

test('a caller with little time left finds the node that leads now', async () => {
  const { execute } = openRouter((node) =>
    node === OLD ? { kind: 'not-primary', primary: undefined } : done,
  );
  expect((await execute({ waitMaxMs: LIMITS.requestWaitLeastMs })).kind).toBe('done');
});

test('busy is returned at once, but not while an earlier try may still be evaluated', async () => {
  const isFree = openRouter(() => ({ kind: 'busy' }));
  expect(await isFree.execute()).toMatchObject({ kind: 'busy', atMs: 0 });
  const inDoubt = openRouter((node) => (node === OLD ? undefined : { kind: 'busy' }));
  const { kind, atMs } = await inDoubt.execute();
  expect(kind).toBe('unknown');
  expect(atMs).toBeGreaterThanOrEqual(LIMITS.metadataAnswerMaxMs);
  const inTime = openRouter((node, nowMs) => {
    if (node === OLD) return undefined;
    return nowMs < NEW_LEADS_AT_MS ? { kind: 'busy' } : done;
  });
  expect(await inTime.execute()).toMatchObject({ kind: 'done' });
});

test.each<[string, (nowMs: number) => ShardReply | undefined]>([
  ['whose nodes are silent', () => undefined],
  ['that nobody leads', () => ({ kind: 'not-primary', primary: undefined })],
  ['whose nodes do not know the outcome', () => ({ kind: 'unknown' })],
  ['whose tickets are too old', () => ({ kind: 'too-old' })],
  ['that falls silent by and by', (nowMs) => (nowMs < 6000 ? { kind: 'unknown' } : undefined)],
])('a shard %s is given up within 10 s, when no node may evaluate the call any more', async (_, answer) => {
  const read = openRouter((_node, nowMs) => answer(nowMs));
  expect(await read.timeOf(0)).toBeLessThan(10_000);
  const write = openRouter((_node, nowMs) => answer(nowMs));
  const { kind, atMs } = await write.execute();
  expect(kind).toBe('unknown');
  expect(atMs).toBeLessThan(10_000);
  expect(write.asked.length).toBeGreaterThan(1);
  // By a node's clock that is 5 % slow, and ours that is 5 % fast (R48).
  const lastMs = Math.max(...write.asked.map((call) => call.atMs + call.budgetMs * 1.1));
  expect(lastMs).toBeLessThanOrEqual(atMs);
});

test('an outcome that is not stored is not returned while another try may still be evaluated', async () => {
  const unkept: ShardReply = { kind: 'done', value: 'unkept', timeMs: 0, isUnkept: true };
  const alone = openRouter(() => unkept);
  expect(await alone.execute()).toMatchObject({ kind: 'done', atMs: 0 });
  expect(alone.asked.map(({ isRetry }) => isRetry)).toEqual([false]);
  // The old node holds back the first try; it may contradict the first answer of the other.
  let count = 0;
  const { asked, execute } = openRouter((node) => {
    if (node === OLD) return undefined;
    return ++count === 1 ? unkept : done;
  });
  await execute();
  expect(count).toBe(2);
  expect(asked.map(({ isRetry }) => isRetry)).toEqual([false, true, true]);
});

test('nodes that name each other as the primary are not asked without a pause', async () => {
  const { asked, timeOf } = openRouter((node, nowMs) =>
    nowMs < 2000
      ? { kind: 'not-primary', primary: node === OLD ? OTHER : OLD }
      : { kind: 'done', value: undefined, timeMs: nowMs },
  );
  expect(await timeOf(0)).toBeLessThan(2500);
  const times = Map.groupBy(asked, ({ atMs }) => atMs);
  for (const [atMs, together] of times) expect(together.length, `at ${atMs} ms`).toBeLessThanOrEqual(3);
  expect(asked.length).toBeLessThan(100);
});

test.each([
  ['that nobody leads', { kind: 'not-primary', primary: undefined } as const, 0],
  ['whose nodes are silent', undefined, 1500],
])('when its process ends nothing of a shard %s is asked again', async (_, answer, withinMs) => {
  const { asked, clock, router, execute } = openRouter(() => answer);
  const answered = execute();
  while (clock.monotonicMs() < 1000) await new Promise(setImmediate);
  const [beganMs, count] = [clock.monotonicMs(), asked.length];
  router.stop();
  const { kind, atMs } = await answered;
  expect(kind).toBe('unknown');
  expect(atMs - beganMs).toBeLessThanOrEqual(withinMs + 2 * STEP_MS);
  expect(asked).toHaveLength(count);
  expect((await execute()).kind).toBe('unknown');
  expect(asked).toHaveLength(count);
});

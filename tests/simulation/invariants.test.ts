// Each invariant, broken by hand: what the watchers of stores, nodes and answers must accuse (section 6 of protocol.md).
import { beforeEach, describe, expect, test } from 'vitest';
import { fromUtf8, utf8 } from '../../src/base/bytes/bytes.ts';
import type { KvPort, KvPut } from '../../src/ports/kv.ts';
import type { ShardCall, ShardReply } from '../../src/ports/shard-calls.ts';
import { Chance } from './chance.ts';
import { SimulatedHost, SimulatedProcess } from './clock.ts';
import { SimulatedDisk } from './disk.ts';
import { Invariants, type WatchedNode } from './invariants.ts';
import type { NodeKind, RowFact, SimulatedNode } from './node.ts';
import { registerDriver } from './register-driver.ts';
import { ReplicaWatch } from './replica-watch.ts';
import { Scheduler, SimulationFailure } from './scheduler.ts';

type Content = { epoch: number; timeMs: number; requestId?: string; sets: Record<string, string | null> };

const row = (key: string, value: string | null): KvPut => ({
  column: 'rows',
  key: utf8(key),
  value: value === null ? null : utf8(value),
});
const logRow = (seq: number, content: Content | null) =>
  row(`log ${seq}`, content && JSON.stringify(content));
const applied = (seq: number) => row('applied', String(seq));
const entry = (sets: Content['sets'], more: Partial<Content> = {}): Content => ({
  epoch: 1,
  timeMs: 100,
  ...more,
  sets,
});

/** Rows as plain text: `log N`, `applied`, `base`, `replica`, and the state. */
function readRow({ key, value }: KvPut): RowFact {
  const [word, number] = fromUtf8(key).split(' ');
  const text = value === null ? '0' : fromUtf8(value);
  if (word === 'applied' || word === 'base') return { kind: word, shard: 0, seq: Number(text) };
  if (word === 'replica') return { kind: 'replica', shard: 0, state: text as 'live' };
  if (word !== 'log') return { kind: 'state', shard: 0 };
  const seq = Number(number);
  if (value === null) return { kind: 'entry', shard: 0, seq, entry: undefined };
  const { epoch, timeMs, requestId, sets } = JSON.parse(text) as Content;
  const rows = Object.entries(sets).map(([name, set]) => row(name, set));
  return { kind: 'entry', shard: 0, seq, entry: { seq, epoch, timeMs, requestId, rows, digest: text } };
}

const kind: NodeKind = {
  name: 'by hand',
  columns: ['rows'],
  branches: [],
  spared: [],
  readRow,
  isReadAtStart: () => false,
  start: () => Promise.reject(new Error('not started')),
};

interface TestNode extends WatchedNode {
  kv: KvPort;
  disk: SimulatedDisk;
  says(openEpoch: number | undefined): void;
}

let scheduler: Scheduler;
let invariants: Invariants;
let nodes: TestNode[];
let trueWallMs: number | undefined;
const counted: string[] = [];

function createNode(nodeId: string): TestNode {
  const host = new SimulatedHost(nodeId, { scheduler, chance: new Chance(1) });
  const disk = new SimulatedDisk(['rows'], new Chance(2));
  const watch = new ReplicaWatch({
    node: nodeId,
    kind,
    disk,
    history: (shard) => invariants.history(shard),
    now: () => ({ atMs: scheduler.nowMs, trueWallMs }),
    count: (branch) => counted.push(branch),
  });
  let openEpoch: number | undefined;
  const node: SimulatedNode = {
    calls: {} as never,
    openEpoch: () => openEpoch,
    stop: async () => undefined,
  };
  const says = (next: number | undefined) => {
    openEpoch = next;
  };
  const process = new SimulatedProcess(nodeId, { host, chance: new Chance(3) });
  return { nodeId, watch, node, wasTimeLost: false, disk, kv: disk.open(process), says };
}

async function commit(node: TestNode, ...rows: KvPut[]): Promise<void> {
  let isDone = false;
  node.kv.commit(rows).then(() => {
    isDone = true;
  });
  await scheduler.run(() => isDone, scheduler.nowMs + 1000);
}

/** Appends and applies, as a replica that is right does. */
async function apply(node: TestNode, seq: number, content: Content): Promise<void> {
  await commit(node, logRow(seq, content));
  await commit(node, ...Object.entries(content.sets).map(([name, set]) => row(name, set)), applied(seq));
}

beforeEach(() => {
  scheduler = new Scheduler();
  trueWallMs = undefined;
  counted.length = 0;
  const watched: WatchedNode[] = [];
  invariants = new Invariants({
    driver: registerDriver,
    nodes: watched,
    shardCount: 1,
    onOpened: (nodeId) => counted.push(`${nodeId} opened`),
    fail: (failure) => scheduler.fail(failure),
  });
  scheduler.afterEachStep(() => invariants.check());
  nodes = ['a', 'b'].map(createNode);
  watched.push(...nodes);
});

const both = () => nodes as [TestNode, TestNode];
const step = () => scheduler.run(() => false, scheduler.nowMs + 1);
function open(node: TestNode, epoch: number): Promise<unknown> {
  node.says(epoch);
  scheduler.after(0, { name: 'opens', run: () => undefined });
  return step();
}

describe('stores', () => {
  test('equal replicas pass, and different ones are found (I1)', async () => {
    const [a, b] = both();
    await apply(a, 1, entry({ x: '1' }));
    await apply(b, 1, entry({ x: '1' }));
    await apply(a, 2, entry({ x: '2' }));
    await expect(apply(b, 2, entry({ x: '3' }))).rejects.toThrow('I1: shard 0: b applies entry 2');
  });

  test('an entry is cut before it is applied, never after (I1)', async () => {
    const [a] = both();
    await apply(a, 1, entry({ x: '1' }));
    await commit(a, logRow(2, entry({ x: '2' })));
    await commit(a, logRow(2, entry({ x: '3' }, { epoch: 2 })));
    expect(counted).toEqual(['log cut']);
    await expect(commit(a, logRow(1, null))).rejects.toThrow('I1: cuts entry 1, having applied 1');
  });

  test('trimmed entries are not cut', async () => {
    const [a] = both();
    await apply(a, 1, entry({ x: '1' }));
    await commit(a, row('base', '1'));
    await commit(a, logRow(1, null));
    expect(counted).toEqual([]);
  });

  test('applied never goes back, and nothing is applied that no log had (I1)', async () => {
    const [a, b] = both();
    await apply(a, 1, entry({ x: '1' }));
    await expect(commit(b, row('x', '2'), applied(2))).rejects.toThrow('I1: applies 2, which nobody');
    // A failed run goes on no more.
    scheduler = new Scheduler();
    const c = createNode('c');
    await apply(c, 1, entry({ x: '1' }));
    await expect(commit(c, applied(0))).rejects.toThrow('I1: applied goes from 1 back to 0');
  });

  test('the state is what the entries make of it, and nothing else writes it (I5)', async () => {
    const broken: [KvPut[], string][] = [
      [[row('x', '1'), applied(1)], 'I5: applies an entry without its row "rows/y"'],
      [[row('x', '1'), row('y', '9'), applied(1)], 'I5: writes row "rows/y" otherwise'],
      [[row('x', '1'), row('y', '1'), row('z', '1'), applied(1)], 'I5: writes row "rows/z", which no'],
      [[row('x', '1')], 'I5: writes row "rows/x", which no'],
    ];
    for (const [rows, message] of broken) {
      scheduler = new Scheduler();
      const node = createNode('d');
      await commit(node, logRow(1, entry({ x: '1', y: '1' })));
      await expect(commit(node, ...rows)).rejects.toThrow(message);
    }
  });

  test('a store that is opened again is compared as a whole (I5)', async () => {
    const [a, b] = both();
    await apply(a, 1, entry({ x: '1', y: '1' }));
    await apply(a, 2, entry({ x: null }));
    expect(() => a.watch.checkState(0)).not.toThrow();
    expect(a.watch.appliedSeq(0)).toBe(2);
    // Of a snapshot that lacks what was there before it.
    await commit(b, row('replica', 'installing'), row('base', '2'), applied(2));
    await expect(commit(b, row('replica', 'live'))).rejects.toThrow(
      'I5: shard 0: at entry 2 b lacks row "rows/y"',
    );
  });

  test('a snapshot is checked when it is complete', async () => {
    const [a, b] = both();
    await apply(a, 1, entry({ x: '1', y: '1' }));
    await commit(b, row('replica', 'installing'), row('base', '1'), applied(1));
    await commit(b, row('y', '1'));
    await commit(b, row('x', '1'));
    expect(b.watch.isLive(0)).toBe(false);
    await commit(b, row('replica', 'live'));
    expect(b.watch.isLive(0)).toBe(true);
    expect(counted).toEqual(['replica installing', 'replica live']);
  });

  test('one effect for a request (I6), and time that never runs back or ahead (I8)', async () => {
    const [a] = both();
    trueWallMs = 1000;
    await apply(a, 1, entry({ x: '1' }, { requestId: 'r', timeMs: 900 }));
    await expect(apply(a, 2, entry({ x: '2' }, { requestId: 'r', timeMs: 900 }))).rejects.toThrow('I6: ');
    scheduler = new Scheduler();
    const late = createNode('late');
    await apply(late, 1, entry({ x: '1' }, { requestId: 'r', timeMs: 900 }));
    await commit(late, logRow(3, entry({}, { timeMs: 800 })));
    expect(() => invariants.history(0).apply('late', entryAt(3, 800), { atMs: 0, trueWallMs })).toThrow(
      'I8: ',
    );
    expect(() => invariants.history(0).apply('late', entryAt(3, 60_000), { atMs: 0, trueWallMs })).toThrow(
      'I8: shard 0: time of entry 3 of epoch 1 (3) is 59000 ms ahead',
    );
    expect(() =>
      invariants.history(0).apply('late', entryAt(3, 60_000), { atMs: 0, trueWallMs: undefined }),
    ).not.toThrow();
  });
});

function entryAt(seq: number, timeMs: number) {
  return { seq, epoch: 1, timeMs, requestId: undefined, rows: [], digest: String(seq) };
}

describe('nodes and answers', () => {
  const call = (requestId: string | undefined, name = 'write'): ShardCall => ({
    kind: requestId === undefined ? 'query' : 'execute',
    envelope: { shard: 0, ...(requestId !== undefined && { requestId }) },
    name: name as never,
    body: {},
    ticket: { processId: 'p', monotonicMs: 0, wallMs: 0 },
    budgetMs: 1,
  });
  const done: ShardReply = { kind: 'done', value: { kind: 'written' }, timeMs: 1 };

  test('one primary in an epoch (I3)', async () => {
    const [a, b] = both();
    await open(a, 1);
    await open(b, 2);
    expect(counted).toEqual(['a opened', 'b opened']);
    await expect(open(a, 2)).rejects.toThrow('I3: shard 0: a and b are primary in epoch 2');
  });

  test('a primary that opens has everything acknowledged (I2)', async () => {
    const [a, b] = both();
    await open(a, 1);
    await apply(a, 1, entry({ x: '1' }, { requestId: 'r1' }));
    await commit(b, logRow(1, entry({ x: '1' }, { requestId: 'r1' })));
    await apply(a, 2, entry({ x: '2' }, { requestId: 'r2' }));
    invariants.onAnswer('a', call('r1'), done);
    await open(b, 2);
    invariants.onAnswer('a', call('r2'), done);
    await expect(open(b, 3)).rejects.toThrow('I2: shard 0: b opens epoch 3 with nothing at 2');
  });

  test('nor does a replica open that is not live (I2)', async () => {
    const [a] = both();
    await commit(a, row('replica', 'quarantined'));
    await expect(open(a, 1)).rejects.toThrow('I2: shard 0: a opens epoch 1 and is quarantined');
  });

  test('an old epoch answers no read and no refusal, but committed commands (I3)', async () => {
    const [a, b] = both();
    await open(a, 1);
    await apply(a, 1, entry({ x: '1' }, { requestId: 'r' }));
    await apply(b, 1, entry({ x: '1' }, { requestId: 'r' }));
    await open(b, 2);
    invariants.onAnswer('a', call(undefined), done);
    invariants.onAnswer('b', call(undefined), done);
    expect(() => invariants.onAnswer('a', call('r'), done)).not.toThrow();
    expect(() => invariants.onAnswer('a', call(undefined, 'read'), done)).toThrow(
      'I3: shard 0: a answers read',
    );
    expect(() => invariants.onAnswer('a', call('refused'), done)).toThrow(
      'in epoch 1, after an answer of epoch 2',
    );
    expect(() => invariants.onAnswer('c', call(undefined), done)).toThrow('never was primary');
    expect(() => invariants.onAnswer('c', call(undefined), { kind: 'busy' })).not.toThrow();
  });

  test('an answer is committed (I4), and always the same (I6)', async () => {
    const [a] = both();
    const operation = { kind: 'put', key: 'x', value: '1' } as const;
    const told = (requestId: string, value: object) => () =>
      invariants.onOutcome(requestId, { shard: 0, operation }, value);
    expect(told('r', { kind: 'written' })).toThrow('I4: ');
    expect(told('r', { kind: 'exists' })).not.toThrow();
    await apply(a, 1, entry({ x: '1' }, { requestId: 'r' }));
    expect(told('r', { kind: 'written' })).not.toThrow();
    expect(told('r', { kind: 'written' })).not.toThrow();
    expect(told('r', { kind: 'exists' })).toThrow('I6: ');
  });

  test('after a 503 nothing is evaluated, unless no clock could tell (I6)', async () => {
    const machine = invariants.observed('a');
    const evaluate = (requestId: string) => {
      const command = { kind: 'put', key: 'x', value: '1', simulatedRequestId: requestId } as never;
      const view = { row: () => undefined, has: () => true, range: () => [] };
      const random = (size: number) => new Uint8Array(size);
      const counted = { counter: () => 0, vector: () => [], left: new Set<string>() };
      const context = { nowMs: 0, acceptedMs: 0, shard: 0, shardCount: 1, ...counted, random };
      machine.commands.write?.decide(command, view, context);
      return step();
    };
    await evaluate('r');
    invariants.onGivenUp('r');
    await evaluate('other');
    both()[0].wasTimeLost = true;
    await evaluate('r');
    both()[0].wasTimeLost = false;
    await expect(evaluate('r')).rejects.toThrow(SimulationFailure);
  });
});

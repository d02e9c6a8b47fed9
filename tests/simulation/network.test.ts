// The simulated network: what arrives, what does not, and how a call ends.
import { beforeEach, describe, expect, test } from 'vitest';
import type { ReplicaMessage } from '../../src/ports/replication.ts';
import type { ShardCall, ShardReply } from '../../src/ports/shard-calls.ts';
import { CallNetwork } from './calls.ts';
import { Chance } from './chance.ts';
import { SimulatedHost, SimulatedProcess } from './clock.ts';
import { Counts } from './counts.ts';
import { Network } from './network.ts';
import { Scheduler } from './scheduler.ts';

let scheduler: Scheduler;
let network: Network;
let calls: CallNetwork;
const heard: { at: string; from: string; seq: number; atMs: number }[] = [];
const replied: string[] = [];

function start(name: string): SimulatedProcess {
  const host = new SimulatedHost(name, { scheduler, chance: new Chance(name.length) });
  const process = new SimulatedProcess(name, { host, chance: new Chance(1) });
  network.join(name, process);
  return process;
}
function listen(name: string): SimulatedProcess {
  const process = start(name);
  network.peer(name, process).listen((from, message) => {
    const { seq } = (message as ReplicaMessage & { kind: 'pre-fence' }).last;
    heard.push({ at: name, from, seq, atMs: scheduler.nowMs });
  });
  return process;
}
const message = (seq: number): ReplicaMessage => ({
  kind: 'pre-fence',
  shard: 0,
  incarnation: 1,
  epoch: 1,
  from: 'a',
  to: 'b',
  last: { seq, epoch: 1 },
});
const runFor = (ms: number) => scheduler.run(() => false, scheduler.nowMs + ms);
const seqs = () => heard.map(({ seq }) => seq);

beforeEach(() => {
  scheduler = new Scheduler();
  network = new Network(scheduler, { chance: new Chance(5), counts: new Counts() });
  const observer = {
    onCall: () => undefined,
    onReply: (_nodeId: string, _call: ShardCall, { kind }: ShardReply) => replied.push(kind),
  };
  calls = new CallNetwork(network, { chance: new Chance(6), observer });
  heard.length = 0;
  replied.length = 0;
});

describe('between replicas', () => {
  test('messages arrive as copies, in order unless they are overtaken', async () => {
    network.weather.change({ reorderedShare: 0 });
    const a = network.peer('a', start('a'));
    listen('b');
    const sent = message(0);
    a.send('b', sent);
    (sent as ReplicaMessage & { kind: 'pre-fence' }).last.seq = 99;
    for (let seq = 1; seq < 50; seq++) a.send('b', message(seq));
    await runFor(100);
    expect(seqs()).toEqual(Array.from({ length: 50 }, (_, seq) => seq));
    network.weather.change({ reorderedShare: 0.5 });
    heard.length = 0;
    for (let seq = 0; seq < 50; seq++) a.send('b', message(seq));
    await runFor(100);
    expect(seqs()).not.toEqual([...seqs()].sort((one, other) => one - other));
    expect(heard).toHaveLength(50);
  });

  test('a watcher sees arriving messages, and may replace them before delivery', async () => {
    const a = network.peer('a', start('a'));
    const b = listen('b');
    const seen: unknown[] = [];
    const end = network.watch((from, to, watched) => {
      const { last } = watched as ReplicaMessage & { kind: 'pre-fence' };
      seen.push([from, to, last.seq, seqs().includes(last.seq)]);
      if (last.seq === 2) b.stop();
      return last.seq === 1 ? message(100) : undefined;
    });
    for (const seq of [1, 2]) a.send('b', message(seq));
    await runFor(100);
    expect(seen.toSorted()).toEqual([
      ['a', 'b', 1, false],
      ['a', 'b', 2, false],
    ]);
    // Stopped while it saw the message: the receiver finds that when it goes on.
    expect(seqs()).toEqual([100]);
    b.continue();
    end();
    a.send('b', message(1));
    await runFor(100);
    expect(seqs()).toEqual([100, 2, 1]);
  });

  test('some are lost, some doubled, some late', async () => {
    const a = network.peer('a', start('a'));
    listen('b');
    const sendAll = async (weather: Parameters<typeof network.weather.change>[0]) => {
      heard.length = 0;
      const fair = network.weather.change(weather);
      const sentAtMs = scheduler.nowMs;
      for (let seq = 0; seq < 200; seq++) a.send('b', message(seq));
      fair();
      await runFor(60_000);
      return heard.map(({ atMs }) => atMs - sentAtMs);
    };
    const left = (await sendAll({ lostShare: 0.3 })).length;
    expect(left).toBeGreaterThan(100);
    expect(left).toBeLessThan(180);
    expect((await sendAll({ doubledShare: 0.3 })).length).toBeGreaterThan(220);
    const late = (await sendAll({ oldShare: 0.3 })).filter((tookMs) => tookMs > 30_000).length;
    expect(late).toBeGreaterThan(20);
    expect((await sendAll({})).length).toBe(200);
  });

  test('a cut holds in its direction until the last one is healed, also for messages under way', async () => {
    const a = network.peer('a', start('a'));
    const b = network.peer('b', listen('b'));
    listen('a');
    network.weather.change({ delayMinMs: 10, delayMaxMs: 10 });
    a.send('b', message(1));
    const heals = [network.cut('a', 'b'), network.cut('a', 'b')];
    a.send('b', message(2));
    b.send('a', message(3));
    await runFor(50);
    expect(seqs()).toEqual([3]);
    heals[0]?.();
    heals[0]?.();
    a.send('b', message(4));
    await runFor(50);
    heals[1]?.();
    a.send('b', message(5));
    await runFor(50);
    expect(seqs()).toEqual([3, 5]);
  });

  test('an absent process receives nothing; a later one receives late messages; a dead one sends nothing', async () => {
    network.weather.change({ delayMinMs: 10, delayMaxMs: 10 });
    const process = start('a');
    const a = network.peer('a', process);
    a.send('b', message(1));
    await runFor(50);
    a.send('b', message(2));
    const b = listen('b');
    await runFor(50);
    b.kill();
    a.send('b', message(3));
    process.kill();
    a.send('b', message(4));
    listen('b');
    await runFor(50);
    expect(seqs()).toEqual([2, 3]);
  });
});

describe('calls', () => {
  const asked = (name: string): Omit<ShardCall, 'ticket'> => ({
    kind: 'query',
    envelope: { shard: 0 },
    name: name as never,
    body: {},
    budgetMs: 1000,
  });
  const reply: ShardReply = { kind: 'done', value: 'answer', timeMs: 5 };
  const tickets: unknown[] = [];

  function serve(answer: () => Promise<ShardReply>): SimulatedProcess {
    const process = start('node');
    const processId = `p${scheduler.stepCount}`;
    calls.serve(process, {
      ticket: () => ({ processId, monotonicMs: process.clock.monotonicMs(), wallMs: process.clock.wallMs() }),
      handle(call) {
        tickets.push(call.ticket.processId);
        return answer();
      },
    });
    return process;
  }

  /** What became of it within a minute. */
  async function outcomeOf(call: Promise<ShardReply>): Promise<unknown> {
    let outcome: unknown = 'pending';
    call.then(
      (value) => {
        outcome = value;
      },
      (error: Error) => {
        outcome = error.message;
      },
    );
    await scheduler.run(() => outcome !== 'pending', scheduler.nowMs + 60_000);
    return outcome;
  }

  beforeEach(() => {
    tickets.length = 0;
  });

  test('carry a ticket of the called process', async () => {
    const port = calls.port('gateway', start('gateway'));
    const { signal } = new AbortController();
    const node = serve(async () => reply);
    expect(await outcomeOf(port.call('node', asked('one'), signal))).toEqual(reply);
    expect(await outcomeOf(port.call('node', asked('two'), signal))).toEqual(reply);
    node.kill();
    await runFor(10);
    serve(async () => reply);
    expect(await outcomeOf(port.call('node', asked('three'), signal))).toEqual(reply);
    expect(new Set(tickets).size).toBe(2);
    expect(replied).toEqual(['done', 'done', 'done']);
  });

  test('reject when the callee ends, when nobody listens, when they are cancelled', async () => {
    const port = calls.port('gateway', start('gateway'));
    const { signal } = new AbortController();
    expect(await outcomeOf(port.call('node', asked('one'), signal))).toBe('nobody listens');
    const node = serve(() => new Promise(() => undefined));
    const broken = port.call('node', asked('two'), signal);
    scheduler.after(500, { name: 'the node ends', run: () => node.kill() });
    expect(await outcomeOf(broken)).toBe('the connection broke');
    serve(() => new Promise(() => undefined));
    const giveUp = new AbortController();
    const given = port.call('node', asked('three'), giveUp.signal);
    scheduler.after(500, { name: 'give up', run: () => giveUp.abort() });
    expect(await outcomeOf(given)).toBe('the call was given up');
  });

  test('a lost reply breaks the connection, and the callee has done its work', async () => {
    const port = calls.port('gateway', start('gateway'));
    const { signal } = new AbortController();
    let isReady = false;
    serve(async () => {
      if (isReady) network.cut('node', 'gateway');
      return reply;
    });
    expect(await outcomeOf(port.call('node', asked('one'), signal))).toEqual(reply);
    isReady = true;
    expect(await outcomeOf(port.call('node', asked('two'), signal))).toBe('the connection broke');
    expect(replied).toEqual(['done', 'done']);
  });
});

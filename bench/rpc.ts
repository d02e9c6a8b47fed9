// What the transports between nodes carry over loopback, without shards behind them: `npx node bench/rpc.ts [--seconds N]`.
// Caller and callee are two processes, as in a cluster. Prints one line per measurement, with machine and commit.
import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import type { RpcSecurity } from '../src/platform/rpc/credentials.ts';
import type { AppendMessage } from '../src/ports/replication.ts';
import {
  makeCertificates,
  nodeId,
  openCredentials,
  secretSecurity,
  startRpcNode,
} from '../tests/support/coordination/rpc-nodes.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const CALLER = nodeId(1);
const CALLEE = nodeId(2);
const { values: flags } = parseArgs({
  options: { seconds: { type: 'string', default: '3' }, callee: { type: 'string' } },
});
const durationMs = Number(flags.seconds) * 1000;

/** The other process: echoes calls, acknowledges appends. Ends with its parent. */
async function runCallee(security: RpcSecurity): Promise<void> {
  const addresses = new Map<string, string>();
  const node = await startRpcNode({
    nodeId: CALLEE,
    credentials: await openCredentials(security),
    addresses,
    handler: {
      ticket: () => ({ processId: 'callee', monotonicMs: performance.now(), wallMs: Date.now() }),
      handle: async ({ body }) => ({ kind: 'done', value: body, timeMs: 1 }),
    },
  });
  node.peers.listen((from, message) => {
    if (message.kind !== 'append') return;
    const { shard, incarnation, epoch, echoMs } = message;
    const head = { shard, incarnation, epoch, from: message.to, to: message.from };
    const matchSeq = message.prev.seq + message.entries.length;
    node.peers.send(from, { kind: 'ack', ...head, matchSeq, echoMs, wallMs: 1, counts: true });
  });
  process.on('message', (address: string) => void addresses.set(CALLER, address));
  process.on('disconnect', () => process.exit());
  process.send?.(addresses.get(CALLEE));
}

interface Rate {
  perSecond: number;
  /** CPU of all threads of this process, us for each operation. */
  cpuUs: number;
}

/** Runs `work` in `inFlight` loops until the time is over. */
async function measure(inFlight: number, work: () => Promise<unknown>): Promise<Rate> {
  const startedAt = performance.now();
  const cpu = process.cpuUsage();
  let count = 0;
  const run = async () => {
    while (performance.now() - startedAt < durationMs) {
      await work();
      count++;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, run));
  const used = process.cpuUsage(cpu);
  return {
    perSecond: (count * 1000) / (performance.now() - startedAt),
    cpuUs: (used.user + used.system) / count,
  };
}

function report(name: string, { perSecond, cpuUs }: Rate, sizeBytes: number): void {
  const throughput = `${((perSecond * sizeBytes) / MiB).toFixed(0)} MiB/s`;
  console.log(`${name}: ${perSecond.toFixed(0)}/s, ${throughput}, ${cpuUs.toFixed(0)} us CPU here`);
}

function append(seq: number, entry: Uint8Array): AppendMessage {
  const head = { shard: 7, incarnation: 1, epoch: 3, from: 'a'.repeat(32), to: 'b'.repeat(32) };
  const prev = { seq, epoch: 3 };
  return { kind: 'append', ...head, prev, entries: [entry], commitSeq: seq, echoMs: 1, matchedSeq: seq };
}

async function measureAll(name: string, security: RpcSecurity): Promise<void> {
  const args = ['--callee', JSON.stringify(security)];
  const callee = fork(import.meta.filename, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const [address] = (await once(callee, 'message')) as [string];
  const addresses = new Map([[CALLEE, address]]);
  const credentials = await openCredentials(security);
  const node = await startRpcNode({ nodeId: CALLER, credentials, addresses });
  callee.send(addresses.get(CALLER) ?? '');

  const { signal } = new AbortController();
  const call = {
    kind: 'execute',
    envelope: { shard: 3, requestId: 'r'.repeat(32) },
    name: 'commit-version',
  } as const;
  for (const [sizeName, size] of [
    ['200 B', 200],
    ['4 KiB', 4 * KiB],
    ['64 KiB', 64 * KiB],
  ] as const) {
    const body = { bucketId: 'b'.repeat(32), key: 'some/key', body: Buffer.alloc(size, 1) };
    for (const inFlight of [1, 16, 64]) {
      const rate = await measure(inFlight, () =>
        node.calls.call(CALLEE, { ...call, body, budgetMs: 500 }, signal),
      );
      report(`${name}: call with ${sizeName} and back, ${inFlight} in flight`, rate, 2 * size);
    }
  }

  // In order both ways, so the first to wait is the first to be acknowledged.
  const waiting: (() => void)[] = [];
  node.peers.listen(() => waiting.shift()?.());
  let seq = 0;
  const sendOne = (entry: Uint8Array) => {
    node.peers.send(CALLEE, append(seq++, entry));
    return new Promise<void>((resolve) => waiting.push(resolve));
  };
  for (const [sizeName, size] of [
    ['200 B', 200],
    ['4 KiB', 4 * KiB],
    ['1 MiB', MiB],
  ] as const) {
    const entry = Buffer.alloc(size, 1);
    for (const inFlight of [16, 64]) {
      // One of the largest is all that the queue lets wait.
      if (size * inFlight > 32 * MiB) continue;
      report(
        `${name}: append of ${sizeName} and its ack, ${inFlight} in flight`,
        await measure(inFlight, () => sendOne(entry)),
        size,
      );
    }
  }
  await node.close();
  credentials.close();
  callee.disconnect();
}

if (flags.callee !== undefined) await runCallee(JSON.parse(flags.callee) as RpcSecurity);
else {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  console.log(
    `${cpus()[0]?.model}, ${availableParallelism()} cores, Node ${process.version}, commit ${commit}`,
  );
  await measureAll('secret', secretSecurity);
  const certificates = await makeCertificates();
  await measureAll('certificates', certificates.security);
  await certificates.remove();
}

// What every PeerPort promises (src/ports/replication.ts), run over memory and over gRPC, by secret and by certificates.
import { afterEach, describe, expect, test } from 'vitest';
import { createMemoryPeers } from '../../src/platform/memory/memory-peers.ts';
import type { AppendMessage, PeerPort, ReplicaMessage } from '../../src/ports/replication.ts';
import { LIMITS } from '../../src/types/limits.ts';
import {
  type AddressBook,
  makeCertificates,
  nodeId,
  openCredentials,
  secretSecurity,
  startRpcNode,
} from '../support/coordination/rpc-nodes.ts';

const closers: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

interface Peer {
  port: PeerPort;
  /** Frames that it has received. */
  frameCount(): number;
  close(): Promise<void>;
}

interface Nodes {
  start(node: string): Promise<Peer>;
}

async function memoryNodes(): Promise<Nodes> {
  const peers = createMemoryPeers();
  return {
    async start(node) {
      const port = peers.join(node);
      return { port, frameCount: peers.frameCount, close: async () => port.leave() };
    },
  };
}

async function rpcNodes(security: 'secret' | 'tls'): Promise<Nodes> {
  const addresses: AddressBook = new Map();
  const certificates = security === 'tls' ? await makeCertificates() : undefined;
  if (certificates !== undefined) closers.push(certificates.remove);
  const credentials = await openCredentials(certificates?.security ?? secretSecurity);
  closers.push(() => credentials.close());
  return {
    async start(node) {
      const started = await startRpcNode({ nodeId: node, credentials, addresses });
      let isClosed = false;
      const close = async () => {
        if (!isClosed) await started.close();
        isClosed = true;
      };
      closers.push(close);
      const frameCount = () => started.counts.of('holdfast_rpc_received_frames_total messages');
      return { port: started.peers, frameCount, close };
    },
  };
}

function append(seq: number, entries: Uint8Array[] = []): AppendMessage {
  return {
    kind: 'append',
    shard: 7,
    incarnation: 1,
    epoch: 3,
    from: 'a'.repeat(32),
    to: 'b'.repeat(32),
    prev: { seq, epoch: 3 },
    entries,
    commitSeq: seq,
    echoMs: 1.5,
    matchedSeq: seq,
  };
}

/** Collects what a peer hears; `until` resolves as soon as what it has heard satisfies the claim. */
function listenTo(port: PeerPort) {
  const heard: { from: string; message: ReplicaMessage }[] = [];
  const waiting: { isEnough(): boolean; resolve(): void }[] = [];
  port.listen((from, message) => {
    heard.push({ from, message });
    for (const { isEnough, resolve } of waiting) if (isEnough()) resolve();
  });
  return {
    heard,
    until: (isEnough: () => boolean) =>
      new Promise<void>((resolve) => (isEnough() ? resolve() : waiting.push({ isEnough, resolve }))),
  };
}

/** Sends until it is heard: the first messages after a break may be lost. */
async function sendUntilHeard(
  from: PeerPort,
  to: string,
  listener: ReturnType<typeof listenTo>,
): Promise<void> {
  const before = listener.heard.length;
  while (listener.heard.length === before) {
    from.send(to, append(0));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const seqs = (heard: readonly { message: ReplicaMessage }[]) =>
  heard.map(({ message }) => (message.kind === 'append' ? message.prev.seq : undefined));

describe.each([
  ['over memory', memoryNodes],
  ['over gRPC with the secret', () => rpcNodes('secret')],
  ['over gRPC with certificates', () => rpcNodes('tls')],
])('%s', (_name, openNodes) => {
  test('delivers messages in order, with their sender, unchanged', async () => {
    const nodes = await openNodes();
    const [a, b] = [await nodes.start(nodeId(1)), await nodes.start(nodeId(2))];
    const [atA, atB] = [listenTo(a.port), listenTo(b.port)];
    const entry = Buffer.from([0, 255, 1]);
    for (let seq = 0; seq < 1000; seq++) a.port.send(nodeId(2), append(seq, [entry]));
    b.port.send(nodeId(1), append(5));
    await Promise.all([atA.until(() => atA.heard.length === 1), atB.until(() => atB.heard.length === 1000)]);
    expect(seqs(atB.heard)).toEqual(Array.from({ length: 1000 }, (_, seq) => seq));
    expect(atB.heard[999]).toEqual({ from: nodeId(1), message: append(999, [entry]) });
    expect(atA.heard).toEqual([{ from: nodeId(2), message: append(5) }]);
  });

  test('never shares memory between sender and receiver', async () => {
    const nodes = await openNodes();
    const [a, b] = [await nodes.start(nodeId(1)), await nodes.start(nodeId(2))];
    const atB = listenTo(b.port);
    const message = append(1, [Buffer.from('first')]);
    a.port.send(nodeId(2), message);
    message.entries[0]?.fill(0);
    message.prev.seq = 9;
    await atB.until(() => atB.heard.length === 1);
    expect(atB.heard[0]?.message).toEqual(append(1, [Buffer.from('first')]));
  });

  test('carries the messages of one turn of all shards in one frame (R20)', async () => {
    const nodes = await openNodes();
    const [a, b] = [await nodes.start(nodeId(1)), await nodes.start(nodeId(2))];
    const atB = listenTo(b.port);
    await sendUntilHeard(a.port, nodeId(2), atB);
    // Whatever was still under way of those.
    await new Promise((resolve) => setTimeout(resolve, 50));
    const [framesBefore, before] = [b.frameCount(), atB.heard.length];
    for (let shard = 0; shard < 64; shard++) a.port.send(nodeId(2), { ...append(1), shard });
    await atB.until(() => atB.heard.length === before + 64);
    expect(b.frameCount() - framesBefore).toBe(1);
  });

  test('drops messages beyond the bound, keeps the order of the rest, and continues', async () => {
    const nodes = await openNodes();
    const [a, b] = [await nodes.start(nodeId(1)), await nodes.start(nodeId(2))];
    const atB = listenTo(b.port);
    const entry = Buffer.alloc(4 * 1024 * 1024);
    const fitting = Math.floor(LIMITS.peerQueueBytesMax / (entry.length + 200));
    for (let seq = 0; seq < fitting + 10; seq++) a.port.send(nodeId(2), append(seq, [entry]));
    await atB.until(() => atB.heard.length === fitting);
    a.port.send(nodeId(2), append(1000));
    await atB.until(() => seqs(atB.heard).at(-1) === 1000);
    expect(seqs(atB.heard)).toEqual([...Array.from({ length: fitting }, (_, seq) => seq), 1000]);
  });

  test('carries a message of 48 MiB, the largest entry, and none beyond the limit', async () => {
    const nodes = await openNodes();
    const [a, b] = [await nodes.start(nodeId(1)), await nodes.start(nodeId(2))];
    const atB = listenTo(b.port);
    const entry = Buffer.alloc(LIMITS.entryBytesMax, 7);
    a.port.send(nodeId(2), append(1, [Buffer.alloc(LIMITS.rpcMessageBytesMax)]));
    a.port.send(nodeId(2), append(2, [entry]));
    await atB.until(() => atB.heard.length === 1);
    const [{ message } = { message: undefined }] = atB.heard;
    expect(message?.kind === 'append' && message.prev.seq).toBe(2);
    expect(message?.kind === 'append' && entry.equals(message.entries[0] ?? entry.subarray(1))).toBe(true);
  });

  test('a node that returns is reached again, at its new address', async () => {
    const nodes = await openNodes();
    const [a, b] = [await nodes.start(nodeId(1)), await nodes.start(nodeId(2))];
    await sendUntilHeard(a.port, nodeId(2), listenTo(b.port));
    await b.close();
    a.port.send(nodeId(2), append(1));
    const again = await nodes.start(nodeId(2));
    const atB = listenTo(again.port);
    await sendUntilHeard(a.port, nodeId(2), atB);
    expect(new Set(seqs(atB.heard))).toEqual(new Set([0]));
  });

  test('sending to an absent or unknown node does nothing', async () => {
    const nodes = await openNodes();
    const a = await nodes.start(nodeId(1));
    for (let seq = 1; seq <= 100; seq++) a.port.send(nodeId(9), append(seq));
    const atB = listenTo((await nodes.start(nodeId(2))).port);
    await sendUntilHeard(a.port, nodeId(2), atB);
    expect(new Set(seqs(atB.heard))).toEqual(new Set([0]));
  });
});

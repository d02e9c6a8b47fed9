// Nodes of one cluster in this process that speak gRPC over loopback, for the contracts of the ports between them.
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hostPortText } from '../../../src/base/text/host-port.ts';
import { type CallClient, createCallClient } from '../../../src/platform/rpc/call-client.ts';
import { createCallServer } from '../../../src/platform/rpc/call-server.ts';
import {
  openRpcCredentials,
  type RpcCredentials,
  type RpcSecurity,
} from '../../../src/platform/rpc/credentials.ts';
import { createPeerClient } from '../../../src/platform/rpc/peer-client.ts';
import { createPeerServer } from '../../../src/platform/rpc/peer-server.ts';
import { startRpcServer } from '../../../src/platform/rpc/rpc-server.ts';
import { systemClock, systemRandom } from '../../../src/platform/system-clock.ts';
import { makeNodeCertificate } from '../../../src/platform/tls/cluster-certificates.ts';
import type { ClockPort } from '../../../src/ports/clock.ts';
import type { PeerPort } from '../../../src/ports/replication.ts';
import type { ShardCallHandler } from '../../../src/ports/shard-calls.ts';

export const CLUSTER_ID = 'c'.repeat(32);
export const CLUSTER_SECRET = 'the secret of a cluster of several nodes';

/** Of 32 hex digits, as nodes have them. */
export const nodeId = (digit: number) => String(digit).repeat(32);

/** Counts what adapters count, by name and first label. */
export function createCounts() {
  const counts = new Map<string, number>();
  const count = (name: string, labels?: Readonly<Record<string, string>>, by = 1) => {
    const key = [name, ...Object.values(labels ?? {})].join(' ');
    counts.set(key, (counts.get(key) ?? 0) + by);
  };
  return {
    count,
    observe: () => undefined,
    gauge: () => undefined,
    gaugeAll: () => undefined,
    of: (key: string) => counts.get(key) ?? 0,
  };
}

export function createEvents() {
  const events: { event: string; fields: Record<string, unknown> }[] = [];
  const note = (fields: object, event: string) => void events.push({ event, fields: { ...fields } });
  return { events, log: { debug: note, info: note, warn: note, error: note } };
}

/** Where nodes listen, as membership hints would tell. */
export type AddressBook = Map<string, string>;

export interface RpcNodeOptions {
  nodeId: string;
  credentials: RpcCredentials;
  addresses: AddressBook;
  clusterId?: string;
  clock?: ClockPort;
  handler?: ShardCallHandler;
  /** Default 127.0.0.1. */
  host?: string;
}

export interface RpcNode {
  readonly peers: PeerPort;
  readonly calls: CallClient;
  readonly counts: ReturnType<typeof createCounts>;
  readonly events: ReturnType<typeof createEvents>['events'];
  close(): Promise<void>;
}

const noHandler: ShardCallHandler = {
  ticket: () => ({ processId: 'none', monotonicMs: 0, wallMs: 0 }),
  handle: async () => ({ kind: 'unknown' }),
};

/** A node that listens and calls; it stands in the address book until it closes. */
export async function startRpcNode(options: RpcNodeOptions): Promise<RpcNode> {
  const { credentials, addresses, clock = systemClock, clusterId = CLUSTER_ID } = options;
  const { host = '127.0.0.1' } = options;
  const self = { clusterId, nodeId: options.nodeId };
  const counts = createCounts();
  const { events, log } = createEvents();
  const addressOf = (node: string) => addresses.get(node);
  const deps = { self, credentials, clock, random: systemRandom, log, telemetry: counts, addressOf };
  const peerServer = createPeerServer(deps);
  const peerClient = createPeerClient(deps);
  const calls = createCallClient(deps);
  const server = await startRpcServer({
    ...deps,
    listen: { host, port: 0 },
    calls: createCallServer({ ...deps, handler: options.handler ?? noHandler }),
    peers: peerServer,
  });
  addresses.set(self.nodeId, hostPortText({ host, port: server.port }));
  return {
    peers: { send: peerClient.send, listen: peerServer.listen },
    calls,
    counts,
    events,
    async close() {
      peerClient.close();
      calls.close();
      await server.close();
    },
  };
}

/** A connection to `address` whose ends have proved the secret; HTTP/2 comes next. */
export async function openProved(address: string, credentials: RpcCredentials): Promise<Socket> {
  const socket = connect(Number(address.split(':')[1]), '127.0.0.1');
  await once(socket, 'connect');
  const channel = { address, random: systemRandom, onRefused: () => undefined };
  const connector = credentials.forChannel(channel)._createSecureConnector({ path: address }, {});
  return (await connector.connect(socket)).socket;
}

export const secretSecurity: RpcSecurity = { mode: 'secret', secret: CLUSTER_SECRET };

/** Certificates of one new authority, for `127.0.0.1`; `remove` deletes the folder. */
export async function makeCertificates(
  name = 'node',
  hosts: readonly string[] = ['127.0.0.1'],
): Promise<{ security: Extract<RpcSecurity, { mode: 'tls' }>; folder: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-certs-'));
  const files = await makeNodeCertificate({ folder, name, hosts, nowMs: Date.now() });
  return { security: { mode: 'tls', ...files }, folder, remove: () => rm(folder, { recursive: true }) };
}

export const openCredentials = (security: RpcSecurity) =>
  openRpcCredentials(security, { clock: systemClock, log: createEvents().log });

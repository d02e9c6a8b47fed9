// The first steps of every process of a cluster: it connects to the coordinator, reads the cluster's identity, proves that
// it belongs to it, and announces itself. Wiring only.
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { Refusal } from '../base/refusal.ts';
import { hostPortText } from '../base/text/host-port.ts';
import type { Config } from '../config/schema.ts';
import { readSecretFileSync } from '../platform/disk/secret-file.ts';
import { createEtcdCoordinator, type EtcdCoordinator } from '../platform/etcd/etcd-coordinator.ts';
import { describeEtcdFailure } from '../platform/etcd/etcd-failure.ts';
import type { EtcdAddress } from '../platform/etcd/etcd-store.ts';
import { openRpcCredentials, type RpcCredentials, type RpcSecurity } from '../platform/rpc/credentials.ts';
import type { StreamDeps } from '../platform/rpc/open-stream.ts';
import { readVersion } from '../platform/version.ts';
import type { ClusterIdentity } from '../ports/cluster-identity.ts';
import type { Member, MemberRole } from '../ports/members.ts';
import type { NodeId } from '../ports/replication.ts';
import type { Logger } from '../ports/telemetry.ts';
import { keepCluster, type NodeFile } from './node-folder.ts';
import type { ProcessContext } from './process-context.ts';

/** The format that this program writes to the disks of a cluster. */
export const CLUSTER_FORMAT = 1;
const ASK_AGAIN_MS = 1000;

export interface JoinedCluster {
  readonly identity: ClusterIdentity;
  readonly coordinator: EtcdCoordinator;
  readonly credentials: RpcCredentials;
  /** For connections to other nodes. */
  readonly streams: StreamDeps;
  /** Aborts when the process ends. */
  readonly stopping: AbortSignal;
  /** The last list of members; empty before the first. */
  members(): readonly Member[];
  addressOf(node: NodeId): string | undefined;
  onMembers(listener: (members: readonly Member[]) => void): void;
  /** What fails together with this process. */
  readonly zone: string;
  /** Puts this process into the list of members, in place of its earlier entry, until it leaves or ends. */
  announce(address: string, disks?: Member['disks'], unserved?: Member['unserved']): void;
  leave(): Promise<void>;
}

/**
 * `thread`: of the threads of a gateway process, from 1. Waits for the coordinator. Throws {@link Refusal} when there is
 * no cluster, one of a newer format, or another one than `node` belongs to.
 */
export async function joinCluster(
  processContext: ProcessContext,
  { thread, ...self }: { nodeId: NodeId; role: MemberRole; thread?: number | undefined },
  node?: NodeFile & { folder: string },
): Promise<JoinedCluster> {
  const { config, log, clock, random, closing } = processContext;
  if (self.role !== 'gateway') refuseAnyAddress(config);
  const stopping = new AbortController();
  closing.defer(() => stopping.abort());
  const credentials = await openRpcCredentials(securityOf(config), { clock, log });
  closing.defer(() => credentials.close());
  const coordinator = connect(processContext, `${self.role} ${self.nodeId}`);
  closing.defer(() => coordinator.close());
  processContext.telemetry.onScrape(async () =>
    processContext.telemetry.gauge('holdfast_etcd_silent_seconds', coordinator.silentMs() / 1000),
  );
  const identity = await readIdentity(processContext, coordinator, node?.cluster);
  if (node !== undefined) await keepCluster(node, identity);
  let members: readonly Member[] = [];
  const listeners: ((members: readonly Member[]) => void)[] = [];
  coordinator.members.watch((list) => {
    members = list;
    for (const listener of listeners) listener(list);
  }, stopping.signal);
  const zone = config.node.zone ?? self.nodeId;
  let announced = new AbortController();
  let leaving: Promise<void> = Promise.resolve();
  const leave = () => {
    announced.abort();
    return leaving;
  };
  closing.defer(leave);
  return {
    identity,
    coordinator,
    credentials,
    zone,
    leave,
    stopping: stopping.signal,
    streams: { self: { clusterId: identity.clusterId, nodeId: self.nodeId }, credentials, clock, random },
    members: () => members,
    addressOf: (node) => members.find(({ nodeId }) => nodeId === node)?.address,
    onMembers(listener) {
      listeners.push(listener);
      if (members.length > 0) listener(members);
    },
    announce(address, disks = [], unserved = []) {
      const instance = self.role === 'gateway' && { instance: instanceOf(address, thread) };
      const own = { address, zone, disks, ...instance, ...(unserved.length > 0 && { unserved }) };
      const { clusterId } = identity;
      const member: Member = { ...self, clusterId, ...own, version: readVersion() };
      const before = leave();
      announced = new AbortController();
      const { signal } = announced;
      leaving = before.then(() => coordinator.members.announce(member, signal));
    },
  };
}

/** A gateway has a new id after each start. Its threads share an address: each is missed, and takes over, by itself. */
function instanceOf(address: string, thread = 1): string {
  return `${hostname()} ${address}${thread > 1 ? ` thread ${thread}` : ''}`;
}

/** "Every address" is not an address that others could use. */
function refuseAnyAddress({ node }: Config): void {
  const { host } = node.listen;
  if (node.advertise === undefined && (host === '0.0.0.0' || host === '::')) {
    throw new Refusal(
      `other nodes cannot reach ${host}: give --node-listen the address at which they reach this one, or --node-advertise`,
    );
  }
}

/** A client of the coordinator only: for commands. */
export function connect(
  { config, clock, log }: Pick<ProcessContext, 'config' | 'clock'> & { log: Logger },
  holder: string,
): EtcdCoordinator {
  if (config.join.length === 0) {
    throw new Refusal('--join must name the etcd servers of the cluster, as http://127.0.0.1:2379');
  }
  const security = etcdSecurityOf(config);
  const scheme = security.tls === undefined ? 'http' : 'https';
  const endpoints = config.join.map((name) => (name.includes('://') ? name : `${scheme}://${name}`));
  return createEtcdCoordinator({ endpoints, ...security }, { clock, log, holder });
}

/** The address at which others reach this node: `own`, unless one is configured. */
export function advertisedAddress({ node }: Config, own: string): string {
  return node.advertise === undefined ? own : hostPortText(node.advertise);
}

/** The coordinator does not answer. */
export class NoAnswer extends Refusal {}

/** For commands: what the coordinator answers, or {@link NoAnswer}. */
export async function answer<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw new NoAnswer(describeEtcdFailure(error));
  }
}

/** How to connect to etcd: its certificates and users are not those of the cluster. */
function etcdSecurityOf({ etcd }: Config): Pick<EtcdAddress, 'tls' | 'user'> {
  const { ca, cert, key, user, password } = etcd;
  if ((cert === undefined) !== (key === undefined))
    throw new Refusal('etcd.cert and etcd.key belong together');
  if (cert !== undefined && ca === undefined) throw new Refusal('etcd.cert needs etcd.ca');
  if ((user === undefined) !== (password === undefined))
    throw new Refusal('etcd.user and etcd.password belong together');
  const own = cert !== undefined && key !== undefined && { cert: readPemFile(cert), key: readKeyFile(key) };
  return {
    ...(ca !== undefined && { tls: { ca: readPemFile(ca), ...own } }),
    ...(user !== undefined && password !== undefined && { user: { name: user, password } }),
  };
}

function readPemFile(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Refusal(`cannot read ${path}: ${(error as Error).message}`);
  }
}

/** Like the other files, but refused when others can read it. */
function readKeyFile(path: string): Buffer {
  try {
    return Buffer.from(readSecretFileSync(path));
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw new Refusal(`cannot read ${path}: ${(error as Error).message}`);
  }
}

export function securityOf({ cluster }: Config): RpcSecurity {
  const { ca, cert, key, secret } = cluster;
  if (ca !== undefined && cert !== undefined && key !== undefined) return { mode: 'tls', ca, cert, key };
  if (ca !== undefined || cert !== undefined || key !== undefined) {
    throw new Refusal('cluster.ca, cluster.cert and cluster.key belong together');
  }
  if (secret !== undefined) return { mode: 'secret', secret };
  throw new Refusal('a node needs certificates (cluster.ca, .cert, .key) or, on one machine, cluster.secret');
}

async function readIdentity(
  { log, clock }: ProcessContext,
  coordinator: EtcdCoordinator,
  known: ClusterIdentity | undefined,
): Promise<ClusterIdentity> {
  for (;;) {
    try {
      const identity = await coordinator.identity.read();
      if (identity === undefined && known !== undefined)
        throw new Refusal(
          `etcd knows of no cluster, and this folder belongs to ${known.clusterId}: if etcd was lost or restored, ` +
            'run `holdfast cluster rebuild-coordination` before any node starts',
        );
      if (identity === undefined)
        throw new Refusal('there is no cluster yet: make it by `holdfast cluster init`');
      if (identity.formatVersion > CLUSTER_FORMAT) {
        throw new Refusal(
          `the cluster is of format ${identity.formatVersion}, this program knows ${CLUSTER_FORMAT}`,
        );
      }
      return identity;
    } catch (error) {
      if (error instanceof Refusal) throw error;
      log.warn({ reason: describeEtcdFailure(error) }, 'coordinator-away');
      await clock.sleep(ASK_AGAIN_MS);
    }
  }
}

// The role metadata at rest (R23): opens no replica, and serves its rows, so that the registry can be rebuilt from nodes on
// many machines. It needs nothing of etcd, and is listed there. Wiring only.

import { advertisedAddress, connect, securityOf } from '../../src/admin/join-cluster.ts';
import { openMetadataKv, readNodeRecords, witnessPath } from '../../src/admin/metadata-folder.ts';
import { openNodeFolder, readDatabaseId } from '../../src/admin/node-folder.ts';
import type { ProcessContext, RunningRole } from '../../src/admin/process-context.ts';
import { Refusal } from '../../src/base/refusal.ts';
import { hostPortText } from '../../src/base/text/host-port.ts';
import { answerRecords, createNodeAtRest } from '../../src/coordination/answer-records.ts';
import { openWitnessFile } from '../../src/platform/disk/witness-file.ts';
import { createCallServer } from '../../src/platform/rpc/call-server.ts';
import { openRpcCredentials } from '../../src/platform/rpc/credentials.ts';
import { createPeerServer } from '../../src/platform/rpc/peer-server.ts';
import { startRpcServer } from '../../src/platform/rpc/rpc-server.ts';
import { readVersion } from '../../src/platform/version.ts';

export async function startAtRest(processContext: ProcessContext): Promise<RunningRole> {
  const { config, clock, random, log, telemetry, closing } = processContext;
  const { folder, nodeId, cluster } = await openNodeFolder(processContext, 'metadata');
  if (cluster === undefined) throw new Refusal(`${folder} is of a node that has never joined a cluster`);
  const credentials = await openRpcCredentials(securityOf(config), { clock, log });
  closing.defer(() => credentials.close());
  const kv = await openMetadataKv(folder);
  closing.defer(() => kv.close());
  const replicaId = await readDatabaseId(kv);
  if (replicaId === undefined) throw new Refusal(`the database of ${folder} is empty`);
  const witness = await openWitnessFile(witnessPath(folder), clock);
  closing.defer(() => witness.close());
  const sources = { folder, nodeId, replicaId, kv, witness, cluster, isAtRest: true };
  const handler = answerRecords(createNodeAtRest({ clock, random }), {
    read: () => readNodeRecords(sources),
    log,
  });
  const server = await startRpcServer({
    ...processContext,
    self: { clusterId: cluster.clusterId, nodeId },
    listen: config.node.listen,
    advertise: config.node.advertise && hostPortText(config.node.advertise),
    credentials,
    calls: createCallServer({ handler, log, telemetry }),
    peers: createPeerServer({ log, telemetry }),
  });
  closing.defer(() => server.close());
  const address = advertisedAddress(config, hostPortText({ ...config.node.listen, port: server.port }));
  const coordinator = connect(processContext, `metadata ${nodeId}`);
  closing.defer(() => coordinator.close());
  const stopping = new AbortController();
  const disks = [{ diskId: replicaId, capacityBytes: 0 }];
  const { clusterId } = cluster;
  const zone = config.node.zone ?? nodeId;
  const member = { nodeId, role: 'metadata', clusterId, address, zone, disks } as const;
  const left = coordinator.members.announce({ ...member, version: readVersion() }, stopping.signal);
  closing.defer(() => {
    stopping.abort();
    return left;
  });
  log.warn({ nodeId, clusterId: cluster.clusterId }, 'started-at-rest');
  return { address, nodeId, clusterId: cluster.clusterId, failed: kv.failed, isReady: () => false };
}

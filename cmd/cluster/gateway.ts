// The role gateway: S3 and the operator API over metadata nodes and storage nodes. It keeps nothing. Wiring only.
import { join, resolve } from 'node:path';
import { createAccounts } from '../../src/accounts/accounts.ts';
import { type JoinedCluster, joinCluster } from '../../src/admin/join-cluster.ts';
import { openChunks } from '../../src/admin/open-chunks.ts';
import type { ProcessContext, RunningRole } from '../../src/admin/process-context.ts';
import { readRootCredentials, warnOfRootKey } from '../../src/admin/root-credentials.ts';
import { measureWriting } from '../../src/admin/status/metrics.ts';
import { createReports } from '../../src/admin/status/server-report.ts';
import { toHex } from '../../src/base/bytes/bytes.ts';
import { Refusal } from '../../src/base/refusal.ts';
import { hostPortText } from '../../src/base/text/host-port.ts';
import type { Config } from '../../src/config/schema.ts';
import { holdJob } from '../../src/coordination/hold-job.ts';
import { createIdentityFeed } from '../../src/coordination/identity-feed.ts';
import { createMetadataRouter, type MetadataRouter } from '../../src/coordination/route-metadata.ts';
import { createTimeJumps } from '../../src/coordination/time-jumps.ts';
import { createFsck } from '../../src/fsck/fsck.ts';
import { createGateway, type Gateway } from '../../src/gateway/http/server.ts';
import { capacityOfDisks } from '../../src/gateway/s3/sosapi/capacity.ts';
import {
  type ClusterKeyRotation,
  createClusterKeyRotation,
} from '../../src/metadata/master-keys/rotate-cluster-keys.ts';
import { leaseQuotas } from '../../src/metadata/quotas/lease-quotas.ts';
import { doneValue } from '../../src/metadata/workers/shard-worker.ts';
import { createShardTimes } from '../../src/objects/shard-times.ts';
import { makeFolder } from '../../src/platform/disk/make-folder.ts';
import { type OpenedClusterKeyring, openClusterKeyring } from '../../src/platform/keyring/cluster-keyring.ts';
import { MASTER_KEYS_FILE } from '../../src/platform/keyring/file-keyring.ts';
import { createCallClient } from '../../src/platform/rpc/call-client.ts';
import { readVersion } from '../../src/platform/version.ts';
import type { Fence } from '../../src/ports/chunks.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../../src/ports/metadata/port.ts';
import { AppError } from '../../src/types/errors.ts';
import { endpointOf } from '../endpoint.ts';
import {
  exchangeCertificate,
  gatewaySettings,
  guessesNames,
  openListenerTls,
  startListening,
} from '../listening.ts';
import { createBuffers, largeChunksOf, openObjects } from '../open-objects.ts';
import { accountApis } from '../operator-parts.ts';

/** Of the id of a gateway, which is of this process: it has nothing that would outlive it. */
const ID_BYTES = 16;
/** Between two tries to reach a system shard that does not answer. */
const ASK_AGAIN_MS = 500;
/** After a failed step of a rotation. */
const LOOK_AGAIN_MS = 5000;

/** One gateway of a process, as a thread of it has it (gateway-threads.ts). */
export interface GatewayOfMany {
  /** How many there are: each has its share of what is bounded for a process, and listens on the port of all. */
  readonly threads: number;
  /** Which of them it is, from 1. */
  readonly number: number;
  /** Of all of them. */
  readMetrics(): ReturnType<ProcessContext['telemetry']['scrape']>;
}

/** A gateway that runs. */
export interface RunningGateway extends RunningRole {
  readonly port: number;
  /** False while it refuses requests for want of room. */
  hasRoom(): boolean;
}

/** `ofMany`: absent where the process has this one alone. */
export async function startGateway(
  processContext: ProcessContext,
  ofMany?: GatewayOfMany,
): Promise<RunningGateway> {
  const { config, log, telemetry, clock, random, closing } = processContext;
  const nodeId = toHex(random.bytes(ID_BYTES));
  const joined = await joinCluster(processContext, { nodeId, role: 'gateway', thread: ofMany?.number });
  const state = { isReady: false, oldestRequestMs: (): number | undefined => undefined };
  const { keysFolder, keyring } = await openKeyring(processContext, nodeId, () => state.oldestRequestMs());
  const root = await readRootCredentials({ folder: keysFolder, given: config.root });
  const times = createShardTimes(clock);
  const { router, fenceOf } = openMetadata(processContext, joined);
  const learned = times.learnFrom(router);
  const asking = { gateway: nodeId, masterKeys: keyring };
  const identityFeed = createIdentityFeed({ metadata: learned, clock, log, ...asking });
  const metadata = leaseQuotas(identityFeed.metadata, { clock, log, telemetry });
  void identityFeed.follow(joined.stopping);
  const shares = sharesOf(config, ofMany);
  const buffers = createBuffers(config, shares);
  const { chunks, placement } = await openMeasuredChunks(processContext, joined, buffers.give);
  const objects = openObjects(processContext, { chunks, keyring, fenceOf }, { buffers, times, ...shares });
  const accounts = createAccounts({ metadata, keyring, random });
  const keys = { metadata, keyring, keysFolder };
  await untilUsable(processContext, joined, keys, () => accounts.ensureRoot(root));
  const tls = await openTls(processContext);
  const fsck = createFsck({ metadata, chunks, clock, log, keyIds: () => keyring.keyIds() });
  closing.defer(() => fsck.stop());
  const rotation = openRotation(processContext, joined, { metadata, keyring });
  const pendingReclaimBytes = async () => (await chunks.usage()).pendingReclaimBytes;
  const timeJumps = createTimeJumps(metadata);
  const parts = { metadata, chunks, pendingReclaimBytes, timeJumps, rotation, accounts };
  const reports = createReports(processContext, parts);
  let endpoint = '';
  // One that is cut off from the shards would keep its clients waiting; those of another are served. And where no disk is
  // placed yet, a body in chunks has nowhere to go.
  const canServe = () => identityFeed.isCurrent() && placement.current().disks.length > 0;
  const isReady = () => state.isReady && canServe() && keyring.missing().length === 0;
  const readStatus = () => reports.readStatus(endpoint);
  const operated = { ...parts, clock, random, log, fsck, readStatus, wakeRotation() {} };
  const services = { metadata, objects, keyring, identityFeed, clock, random, log, telemetry };
  const gateway: Gateway = createGateway({
    ...services,
    settings: gatewaySettings(config, tls?.current(), ofMany),
    isReady,
    readMetrics: () => (ofMany?.readMetrics ?? telemetry.scrape)(),
    version: readVersion(),
    readCapacity: async () => capacityOfDisks(await chunks.usages(), placement.current()),
    ...accountApis(processContext, { ...operated, keyring }),
  });
  state.oldestRequestMs = () => gateway.oldestRequestMs();
  const port = await startListening(gateway, config);
  closing.defer(() => {
    state.isReady = false;
    return gateway.drain(config.drainTimeoutMs);
  });
  endpoint = endpointOf(config, port);
  const address = hostPortText({ host: config.listen.host, port });
  joined.announce(address);
  state.isReady = true;
  return {
    address,
    nodeId,
    clusterId: joined.identity.clusterId,
    failed: new Promise(() => {}),
    port,
    hasRoom: () => gateway.hasRoom(),
    isReady: () => isReady() && gateway.hasRoom(),
    reload: () => keyring.readAgain().then(() => exchangeCertificate(gateway, tls)),
  };
}

/** How bodies are written, and what of memory is this gateway's. */
function sharesOf(config: Config, ofMany: GatewayOfMany | undefined) {
  return { largeChunkSizeBytes: largeChunksOf(config), ...(ofMany && { threads: ofMany.threads }) };
}

/** The keys in the folder. Throws {@link Refusal} where there are none. */
async function openKeyring(
  { config, clock, log }: ProcessContext,
  nodeId: string,
  oldestRequestMs: () => number | undefined,
) {
  const keysFolder = config.cluster.keys;
  if (keysFolder === undefined)
    throw new Refusal('a gateway needs cluster.keys, the folder with the master keys');
  const path = join(keysFolder, MASTER_KEYS_FILE);
  const keyring = await openClusterKeyring({ path, writer: nodeId, clock, log, oldestRequestMs });
  return { keysFolder, keyring };
}

/** Throws {@link Refusal} where the folder lacks a master key that the cluster uses, or was made with. */
async function checkKeys(
  {
    metadata,
    keyring,
    keysFolder,
  }: { metadata: MetadataPort; keyring: OpenedClusterKeyring; keysFolder: string },
  { masterKeyId }: { masterKeyId: string },
): Promise<void> {
  const reply = await metadata.query({ shard: SYSTEM_SHARD }, 'get-master-keys', {});
  const { masterKeys } = doneValue(reply);
  if (masterKeys !== null) keyring.learn(masterKeys);
  const missing = keyring.missing();
  if (missing.length > 0)
    throw new Refusal(
      `${keysFolder} lacks the master key ${missing.join(', ')}, which the cluster uses: copy master-keys.json of another gateway`,
    );
  if (masterKeys === null && !keyring.keyIds().includes(masterKeyId))
    throw new Refusal(`${keysFolder} has other master keys than this cluster was made with`);
}

async function openMeasuredChunks(
  processContext: ProcessContext,
  joined: JoinedCluster,
  give: Parameters<typeof openChunks>[2],
) {
  const { telemetry, clock } = processContext;
  const { chunks, placement, directory } = await openChunks(processContext, joined, give);
  const takesWrites = chunks.takesWrites.bind(chunks);
  measureWriting(telemetry, { placement: () => placement.current(), takesWrites, directory, clock });
  return { chunks, placement };
}

/** Waits until the system shard has answered, and checks by it what the folder has. */
async function untilUsable(
  processContext: ProcessContext,
  { stopping, identity }: JoinedCluster,
  keys: Parameters<typeof checkKeys>[0],
  ensureRoot: () => Promise<boolean>,
): Promise<void> {
  const isUsable = await untilAnswered(processContext, stopping, async () => {
    await checkKeys(keys, identity);
    return ensureRoot();
  });
  if (!isUsable) warnOfRootKey(processContext.log, keys.keysFolder);
}

/** The rotation of the master keys, which this gateway drives where no other does; it follows the file of the keys. */
function openRotation(
  { clock, log }: ProcessContext,
  { coordinator: { jobLocks }, stopping, addressOf }: JoinedCluster,
  { metadata, keyring }: { metadata: MetadataPort; keyring: OpenedClusterKeyring },
): ClusterKeyRotation {
  const nameOf = (gateway: string) => addressOf(gateway) ?? `one that starts or has ended (${gateway})`;
  const rotation = createClusterKeyRotation({ metadata, keyring, clock, log, nameOf });
  void keyring.follow(stopping);
  const job = { name: 'rotate-keys', failedEvent: 'key-rotation-failed', retryMs: LOOK_AGAIN_MS };
  void holdJob({ jobLocks, clock, log }, { ...job, begin: rotation.drive }, stopping);
  return rotation;
}

function openMetadata(
  { clock, random, log, telemetry, closing }: ProcessContext,
  joined: JoinedCluster,
): { router: MetadataRouter; fenceOf(shard: number): Fence } {
  const calls = createCallClient({ ...joined.streams, addressOf: joined.addressOf, log, telemetry });
  closing.defer(() => calls.close());
  const { shardCount } = joined.identity;
  const router = createMetadataRouter({ shardCount, calls, clock, random });
  const fences = new Map<number, Fence>();
  joined.coordinator.registry.watch((shard, registered) => {
    router.onRegistered(shard, registered);
    const { incarnation, epoch } = registered.record;
    fences.set(shard, { shard, incarnation, epoch });
  }, joined.stopping);
  return { router, fenceOf: (shard) => fences.get(shard) ?? { shard, incarnation: 0, epoch: 0 } };
}

/** A cluster that starts has shards that do not answer yet: it is asked again until they do, or the process ends. */
async function untilAnswered<T>(
  { clock, log }: ProcessContext,
  stopping: AbortSignal,
  ask: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof AppError) || error.status !== 503 || stopping.aborted) throw error;
      log.warn({ err: error }, 'system-shard-silent');
      await clock.sleep(ASK_AGAIN_MS, stopping);
    }
  }
}

async function openTls({ config, log }: ProcessContext) {
  const tls = await openListenerTls(config, await ownFolder(config));
  if (guessesNames(config)) log.warn({ setting: 'HOLDFAST_TLS_NAMES' }, 'certificate-names-guessed');
  return tls;
}

/** For a self-signed certificate. The keys' folder may be shared with other gateways, or not be for writing. */
async function ownFolder({ dataDir, tls }: Config): Promise<string> {
  const folder = resolve(dataDir);
  if (tls.mode === 'self-signed') await makeFolder(folder, 0o700);
  return folder;
}

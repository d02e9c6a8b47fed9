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
import { createIdentityFeed } from '../../src/coordination/identity-feed.ts';
import { createMetadataRouter, type MetadataRouter } from '../../src/coordination/route-metadata.ts';
import { createTimeJumps } from '../../src/coordination/time-jumps.ts';
import { createFsck } from '../../src/fsck/fsck.ts';
import { createGateway, type Gateway } from '../../src/gateway/http/server.ts';
import { capacityOfDisks } from '../../src/gateway/s3/sosapi/capacity.ts';
import type { KeyRotation } from '../../src/metadata/master-keys/rotate-keys.ts';
import { leaseQuotas } from '../../src/metadata/quotas/lease-quotas.ts';
import { createShardTimes } from '../../src/objects/shard-times.ts';
import { makeFolder } from '../../src/platform/disk/make-folder.ts';
import { MASTER_KEYS_FILE, openFileKeyring } from '../../src/platform/keyring/file-keyring.ts';
import { createCallClient } from '../../src/platform/rpc/call-client.ts';
import { readVersion } from '../../src/platform/version.ts';
import type { Fence } from '../../src/ports/chunks.ts';
import type { KeyringPort } from '../../src/ports/keyring.ts';
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
  const { keysFolder, keyring } = await openKeyring(config, joined.identity);
  const root = await readRootCredentials({ folder: keysFolder, given: config.root });
  const times = createShardTimes(clock);
  const { router, fenceOf } = openMetadata(processContext, joined);
  const learned = times.learnFrom(router);
  const identityFeed = createIdentityFeed({ metadata: learned, clock, log, gateway: nodeId });
  const metadata = leaseQuotas(identityFeed.metadata, { clock, log, telemetry });
  void identityFeed.follow(joined.stopping);
  const shares = sharesOf(config, ofMany);
  const buffers = createBuffers(config, shares);
  const { chunks, placement, directory } = await openChunks(processContext, joined, buffers.give);
  const takesWrites = chunks.takesWrites.bind(chunks);
  measureWriting(telemetry, { placement: () => placement.current(), takesWrites, directory, clock });
  const objects = openObjects(processContext, { chunks, keyring, fenceOf }, { buffers, times, ...shares });
  const accounts = createAccounts({ metadata, keyring, random });
  const isUsable = await untilAnswered(processContext, joined.stopping, () => accounts.ensureRoot(root));
  if (!isUsable) warnOfRootKey(log, keysFolder);
  const tls = await openTls(processContext);
  const state = { isReady: false };
  const fsck = createFsck({ metadata, chunks, clock, log, keyIds: () => keyring.keyIds() });
  closing.defer(() => fsck.stop());
  const rotation = rotationOf(keyring, metadata.shardCount);
  const pendingReclaimBytes = async () => (await chunks.usage()).pendingReclaimBytes;
  const timeJumps = createTimeJumps(metadata);
  const parts = { metadata, chunks, pendingReclaimBytes, timeJumps, rotation, accounts };
  const reports = createReports(processContext, parts);
  let endpoint = '';
  // One that is cut off from the shards would keep its clients waiting; those of another are served. And where no disk is
  // placed yet, a body in chunks has nowhere to go.
  const isReady = () => state.isReady && identityFeed.isCurrent() && placement.current().disks.length > 0;
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
    reload: () => exchangeCertificate(gateway, tls),
  };
}

/** How bodies are written, and what of memory is this gateway's. */
function sharesOf(config: Config, ofMany: GatewayOfMany | undefined) {
  return { largeChunkSizeBytes: largeChunksOf(config), ...(ofMany && { threads: ofMany.threads }) };
}

/** The master keys that this cluster was made with. Throws {@link Refusal} where the folder has others, or there is none. */
async function openKeyring({ cluster }: Config, { masterKeyId }: { masterKeyId: string }) {
  const keysFolder = cluster.keys;
  if (keysFolder === undefined)
    throw new Refusal('a gateway needs cluster.keys, the folder with the master keys');
  const keyring = await openFileKeyring({ path: join(keysFolder, MASTER_KEYS_FILE), isNew: false });
  if (keyring.keyIds().includes(masterKeyId)) return { keysFolder, keyring };
  throw new Refusal(`${keysFolder} has other master keys than this cluster was made with`);
}

/** Of a gateway, which can say which master keys there are, and no more. */
function rotationOf(
  keyring: Pick<KeyringPort, 'activeKeyId' | 'keyIds'>,
  shardCount: number,
): Pick<KeyRotation, 'begin' | 'progress'> {
  return {
    begin: refuseRotation,
    progress: () => ({
      activeKeyId: keyring.activeKeyId,
      olderKeyIds: keyring.keyIds().filter((keyId) => keyId !== keyring.activeKeyId),
      rewrappedCount: 0,
      shardsDone: 0,
      shardCount,
      isWaitingForRequests: false,
    }),
  };
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

/** Every gateway holds the keys of its own folder: a new one would be known to this one alone. */
async function refuseRotation(): Promise<never> {
  throw new AppError('NotImplemented', {
    message:
      'Master keys of a cluster lie in the folders of its gateways and are not rotated by one of them.',
  });
}

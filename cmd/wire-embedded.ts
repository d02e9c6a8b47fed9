// How the parts of the embedded form are put together: every role in one process over one data folder.
import { createAccounts } from '../src/accounts/accounts.ts';
import type { ProcessContext } from '../src/admin/process-context.ts';
import { warnOfRootKey } from '../src/admin/root-credentials.ts';
import { createReports } from '../src/admin/status/server-report.ts';
import { createLocalIdentityFeed } from '../src/coordination/local-identity-feed.ts';
import { createGateway, type Gateway } from '../src/gateway/http/server.ts';
import { capacityOfDisks } from '../src/gateway/s3/sosapi/capacity.ts';
import { leaseQuotas } from '../src/metadata/quotas/lease-quotas.ts';
import { createShardTimes } from '../src/objects/shard-times.ts';
import { RecordMemory } from '../src/platform/extents/record-memory.ts';
import { readVersion } from '../src/platform/version.ts';
import { LIMITS } from '../src/types/limits.ts';
import { createBackground, createStoresFsck } from './background.ts';
import { endpointOf } from './endpoint.ts';
import {
  exchangeCertificate,
  gatewaySettings,
  guessesNames,
  openListenerTls,
  startListening,
  writeEndpointFile,
} from './listening.ts';
import { createBuffers, openObjects } from './open-objects.ts';
import { openStores, type Stores } from './open-stores.ts';
import { accountApis } from './operator-parts.ts';

/** The server put together and running; who ends it is embedded.ts. */
export interface WiredServer extends Pick<Stores, 'folder' | 'isFirstStart' | 'root'> {
  /** As clients on this machine reach it: `http://127.0.0.1:9000`. */
  readonly endpoint: string;
  readonly shardCount: number;
  /** SHA-256 of the certificate; undefined for plain HTTP. */
  readonly fingerprint: string | undefined;
  /** Resolves with the error when a store has failed for good (R20): requests are answered 503 from then on. */
  readonly failed: Promise<Error>;
  /** Whether requests are served. */
  isReady(): boolean;
  /** Reads certificate and key again; connections that exist keep the old ones. */
  reloadTls(): Promise<void>;
}

/** Opens and starts all parts; what closes them is in `process context.closing`. */
export async function wireEmbedded(processContext: ProcessContext): Promise<WiredServer> {
  const { config, log, telemetry, clock, random, closing } = processContext;
  const state = { isReady: false };
  const failure = Promise.withResolvers<Error>();
  // Codec threads seal in it, and the disk takes it from there.
  const received = new RecordMemory(LIMITS.chunkBuffersPooledBytesMax, { isShared: true });
  const buffers = createBuffers(config, { received });
  const stores = await openStores(processContext, {
    onReleased: (buffer) => buffers.give(buffer),
    received,
    onFatal(error) {
      state.isReady = false;
      failure.resolve(error);
    },
  });
  const times = createShardTimes(clock);
  const { folder, keyring, chunks, root, isFirstStart, timeJumps } = stores;
  const { metadata: followed, feed: identityFeed } = createLocalIdentityFeed(
    times.learnFrom(stores.metadata),
  );
  const metadata = leaseQuotas(followed, { clock, log, telemetry });
  const objects = openObjects(processContext, stores, { buffers, times });
  const accounts = createAccounts({ metadata, keyring, random });
  if (!(await accounts.ensureRoot(root))) warnOfRootKey(log, folder);
  const tls = await openListenerTls(config, folder);
  if (guessesNames(config)) log.warn({ setting: 'HOLDFAST_TLS_NAMES' }, 'certificate-names-guessed');

  const { rotation, wakeRotation, runner } = createBackground(processContext, stores, () =>
    gateway.oldestRequestMs(),
  );
  const fsck = createStoresFsck(processContext, stores, metadata);
  const reports = createReports(processContext, { ...stores, rotation, accounts, own: stores });
  let endpoint = '';
  const isReady = () => state.isReady;
  const readStatus = () => reports.readStatus(endpoint);
  const services = { metadata, objects, keyring, identityFeed, clock, random, log, telemetry };
  const operated = { ...services, accounts, rotation, wakeRotation, timeJumps, readStatus, fsck };
  const gateway: Gateway = createGateway({
    ...services,
    settings: gatewaySettings(config, tls?.current()),
    isReady,
    readMetrics: () => telemetry.scrape(),
    version: readVersion(),
    readCapacity: async () => capacityOfDisks([await chunks.usage()], { copies: 1 }),
    ...accountApis(processContext, operated),
  });
  runner.start();
  closing.defer(() => runner.stop());
  closing.defer(() => fsck.stop());
  const port = await startListening(gateway, config);
  closing.defer(() => {
    state.isReady = false;
    return gateway.drain(config.drainTimeoutMs);
  });
  endpoint = endpointOf(config, port);
  await writeEndpointFile(folder, endpoint);
  state.isReady = true;
  return {
    endpoint,
    folder,
    root,
    isFirstStart,
    isReady: () => isReady() && gateway.hasRoom(),
    shardCount: metadata.shardCount,
    fingerprint: tls?.current().fingerprint,
    failed: failure.promise,
    reloadTls: () => exchangeCertificate(gateway, tls),
  };
}

// How the parts of the embedded form are put together where threads of their own serve clients: this one, the main thread, has the
// stores and the background work, gateway-thread.ts all else, and metadata-thread.ts the shards, where there are such threads.
// Wiring only.
import { createAccounts } from '../../src/accounts/accounts.ts';
import type { ProcessContext } from '../../src/admin/process-context.ts';
import { warnOfRootKey } from '../../src/admin/root-credentials.ts';
import { createReports } from '../../src/admin/status/server-report.ts';
import { watchIdentityCommands } from '../../src/coordination/watch-identity-commands.ts';
import type { MasterKeyList, MasterKeys } from '../../src/platform/memory/memory-keyring.ts';
import { createSpares, serveChunks } from '../../src/platform/threads/chunk-line.ts';
import { serveMetadata } from '../../src/platform/threads/metadata-line.ts';
import { serveCalls } from '../../src/platform/threads/named-calls.ts';
import type { WorkerRunner } from '../../src/platform/worker-runner.ts';
import type { MetadataPort } from '../../src/ports/metadata/port.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { createBackground, createStoresFsck } from '../background.ts';
import { endpointOf } from '../endpoint.ts';
import { guessesNames, openListenerTls, writeEndpointFile } from '../listening.ts';
import { openStores, type Stores } from '../open-stores.ts';
import type { WiredServer } from '../wire-embedded.ts';
import type { ThreadCounts } from './count-threads.ts';
import { GatewayThreads } from './gateway-threads.ts';
import { MetadataThreads } from './metadata-threads.ts';
import type { MainCalls } from './thread-calls.ts';

/** Opens and starts all parts; what closes them is in `processContext.closing`. `writeLines`: to the log of the process. */
export async function wireThreads(
  processContext: ProcessContext,
  { counts, writeLines }: { counts: ThreadCounts; writeLines(lines: string): void },
): Promise<WiredServer> {
  const { config, clock, closing } = processContext;
  const failure = Promise.withResolvers<Error>();
  const state: MainState = { isReady: false, endpoint: '', threads: undefined, shardThreads: undefined };
  const fail = (error: Error) => {
    state.isReady = false;
    failure.resolve(error);
    void state.threads?.setReady(false).catch(() => {});
  };
  if (counts.metadata > 0)
    state.shardThreads = new MetadataThreads({
      count: counts.metadata,
      gatewayCount: counts.gateway,
      calls: {
        writeLog: writeLines,
        takeIdentities: async (changes) => state.threads?.takeIdentities(changes),
      },
      onFailed: fail,
    });
  const spares = createSpares(LIMITS.chunkBuffersPooledBytesMax);
  const stores = await openStores(processContext, {
    onReleased: (buffer) => spares.give(buffer),
    onFatal: fail,
    onKeys: async (keys) => state.threads?.takeMasterKeys(listOfKeys(keys)),
    ...(state.shardThreads && { openShards: state.shardThreads.open }),
  });
  const { folder, root, isFirstStart, fenceOf, masterKeys } = stores;
  const { metadata, calls, runner } = await openMain(processContext, { stores, state });
  const tls = await openListenerTls(config, folder);
  const threads = new GatewayThreads({
    count: counts.gateway,
    clock,
    onFailed: fail,
    metadataPorts: (number) => state.shardThreads?.portsOf(number) ?? [],
    serve(line) {
      serveMetadata(line, metadata);
      serveChunks(line, { chunks: stores.chunks, takeSpare: () => spares.take() });
      serveCalls(line, { ...calls, writeLog: writeLines });
    },
  });
  state.threads = threads;
  closing.defer(() => threads.close(config.drainTimeoutMs));
  const certificate = tls?.current();
  const port = await threads.open(config, {
    shardCount: metadata.shardCount,
    fences: Array.from({ length: metadata.shardCount }, (_, shard) => fenceOf(shard)),
    masterKeys: listOfKeys(masterKeys),
    ...(certificate && { certificate: { cert: certificate.cert, key: certificate.key } }),
  });
  runner.start();
  closing.defer(() => {
    state.isReady = false;
  });
  state.endpoint = endpointOf(config, port);
  await writeEndpointFile(folder, state.endpoint);
  state.isReady = true;
  await threads.setReady(true);
  return {
    endpoint: state.endpoint,
    folder,
    root,
    isFirstStart,
    isReady: () => state.isReady && threads.hasRoom(),
    shardCount: metadata.shardCount,
    fingerprint: certificate?.fingerprint,
    failed: failure.promise,
    async reloadTls() {
      if (tls !== undefined) await threads.setCertificate(await tls.reload());
    },
  };
}

interface MainState {
  isReady: boolean;
  endpoint: string;
  /** Absent until they are started. */
  threads: GatewayThreads | undefined;
  /** Absent: this thread has the shards. */
  shardThreads: MetadataThreads | undefined;
}

/** What the main thread has beside the stores: background work, and what operators ask for. */
async function openMain(
  processContext: ProcessContext,
  { stores, state }: { stores: Stores; state: MainState },
): Promise<{ metadata: MetadataPort; calls: Omit<MainCalls, 'writeLog'>; runner: WorkerRunner }> {
  const { config, log, telemetry, random, closing } = processContext;
  const { folder, keyring, root, timeJumps } = stores;
  // Metadata threads watch their own shards: gateway threads ask them past this thread.
  const metadata =
    state.shardThreads === undefined
      ? watchIdentityCommands(stores.metadata, (changes) => state.threads?.takeIdentities(changes))
      : stores.metadata;
  const accounts = createAccounts({ metadata, keyring, random });
  if (!(await accounts.ensureRoot(root))) warnOfRootKey(log, folder);
  if (guessesNames(config)) log.warn({ setting: 'HOLDFAST_TLS_NAMES' }, 'certificate-names-guessed');
  const { rotation, wakeRotation, runner } = createBackground(
    processContext,
    { ...stores, metadata },
    () => state.threads?.oldestRequestMs() ?? 0,
  );
  closing.defer(() => runner.stop());
  const fsck = createStoresFsck(processContext, stores, metadata);
  closing.defer(() => fsck.stop());
  const heldMs = () =>
    Math.max(
      processContext.loop.heldMs(),
      state.threads?.loopHeldMs() ?? 0,
      state.shardThreads?.loopHeldMs() ?? 0,
    );
  const loop = { heldMs };
  const reports = createReports({ ...processContext, loop }, { ...stores, rotation, accounts, own: stores });
  telemetry.addThreads(async () => [
    ...((await state.threads?.readFigures()) ?? []),
    ...((await state.shardThreads?.readFigures()) ?? []),
  ]);
  const calls = {
    noteError: ({ event, message }) => log.note(event, message),
    noteLost: ({ id, kind }) => stores.lost.note(id, kind),
    readStatus: () => reports.readStatus(state.endpoint),
    readMetrics: () => telemetry.scrape(),
    beginRotation: () => rotation.begin(),
    readRotation: () => rotation.progress(),
    removeKey: (keyId) => rotation.remove(keyId),
    wakeRotation,
    readTimeJump: () => timeJumps.unacceptedMs(),
    acceptTimeJump: (atMostMs) => timeJumps.accept(atMostMs),
    beginFsck: (options) => fsck.begin(options),
    lookAtFsck: ({ id, from }) => fsck.look(id, from),
    cancelFsck: (id) => fsck.cancel(id),
  } satisfies Omit<MainCalls, 'writeLog'>;
  return { metadata, calls, runner };
}

function listOfKeys({ activeKeyId, keys }: MasterKeys): MasterKeyList {
  return { activeKeyId, keys: [...keys] };
}

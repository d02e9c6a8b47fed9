// The embedded form: every role in one process over one data folder. Wiring only; reading settings and acting on
// signals is server.ts.
import { createAccounts } from '../src/accounts/accounts.ts';
import { createCodecPool } from '../src/adapters/piscina-codec-pool.ts';
import { createPromTelemetry } from '../src/adapters/prom-telemetry.ts';
import { rememberErrors } from '../src/adapters/recent-errors.ts';
import { systemClock, systemRandom } from '../src/adapters/system-clock.ts';
import type { Config } from '../src/config/schema.ts';
import { answerOperator } from '../src/gateway/operator/operator-api.ts';
import { createGateway, type Gateway } from '../src/gateway/server.ts';
import { ROTATE_KEYS } from '../src/metadata/background/rotate-keys.ts';
import { createChunkBuffers } from '../src/objects/chunk-buffers.ts';
import { createObjectStore } from '../src/objects/create-object-store.ts';
import type { ClockPort } from '../src/ports/clock.ts';
import type { Logger } from '../src/ports/telemetry.ts';
import { startBackground } from './background.ts';
import { gatewaySettings, openListenerTls, startListening, tellAddress } from './listening.ts';
import { openStores } from './open-stores.ts';
import { createReports } from './reports.ts';
import { checkGivenCredentials, type RootCredentials } from './root-credentials.ts';

export interface EmbeddedOptions {
  config: Config;
  log: Logger;
  /** Of tests; default the system's. */
  clock?: ClockPort;
}

export interface EmbeddedServer {
  /** As clients on this machine reach it: `http://127.0.0.1:9000`. */
  readonly endpoint: string;
  /** Absolute path of the data folder. */
  readonly folder: string;
  readonly shardCount: number;
  readonly root: RootCredentials;
  /** True when this start made the data folder. */
  readonly isFirstStart: boolean;
  /** SHA-256 of the certificate; undefined for plain HTTP. */
  readonly fingerprint: string | undefined;
  /** Resolves with the error when a store has failed for good (R20): requests are answered 503 from then on. */
  readonly failed: Promise<Error>;
  /** Reads certificate and key again; connections that exist keep the old ones. */
  reloadTls(): Promise<void>;
  /** Lets requests in flight end, drainTimeout at most, then closes everything. Safe to repeat. */
  stop(): Promise<void>;
}

/** Resolves when requests are taken. Rejects with what was refused, having closed what it had opened. */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  checkGivenCredentials(options.config.root);
  await using opening = new AsyncDisposableStack();
  const server = await open(options, opening);
  const closing = opening.move();
  let stopped: Promise<void> | undefined;
  return {
    ...server,
    stop() {
      stopped ??= closing.disposeAsync();
      return stopped;
    },
  };
}

async function open(
  { config, clock = systemClock, ...given }: EmbeddedOptions,
  closing: AsyncDisposableStack,
) {
  const random = systemRandom;
  const log = rememberErrors(given.log, clock);
  const telemetry = createPromTelemetry({ log });
  const failure = Promise.withResolvers<Error>();
  const state = { isReady: false };
  const buffers = createChunkBuffers({
    chunkSizeBytes: config.storage.chunkSizeBytes,
    keptBytesMax: config.memory.bodyBufferBytes,
  });
  const base = { config, log, telemetry, clock, random, closing };
  const stores = await openStores({
    ...base,
    onReleased: (buffer) => buffers.give(buffer),
    onFatal(error) {
      state.isReady = false;
      failure.resolve(error);
    },
  });
  const { folder, keyring, metadata, chunks, root, isFirstStart, fenceOf } = stores;

  const codecs = createCodecPool({ workers: config.codec.workers });
  closing.defer(() => codecs.close());
  const objects = createObjectStore({
    ...{ chunks, codecs, keyring, clock, random, log, telemetry, buffers, fenceOf },
    settings: {
      inlineBodyBytesMax: config.storage.inlineBodyMaxBytes,
      chunkSizeBytes: config.storage.chunkSizeBytes,
    },
    bodyBufferBytes: config.memory.bodyBufferBytes,
    admitToDisk: (sizeBytes) => stores.reserve.admit(sizeBytes),
  });
  const accounts = createAccounts({ metadata, keyring, random });
  await accounts.ensureRoot(root);

  const background = startBackground({ ...base, stores, oldestRequestMs: () => gateway.oldestRequestMs() });
  const reports = createReports({ stores, telemetry, log, clock, rotation: background.rotation, accounts });
  const operator = {
    accounts,
    rotation: background.rotation,
    wakeRotation: () => background.wake(ROTATE_KEYS),
    readStatus: () => reports.readStatus(endpoint),
  };
  const tls = await openListenerTls(config, folder);
  const gateway: Gateway = createGateway({
    ...{ metadata, objects, keyring, clock, random, log, telemetry },
    settings: gatewaySettings(config, tls?.current()),
    isReady: () => state.isReady,
    readMetrics: () => telemetry.scrape(),
    answerOperator: (request) => answerOperator(operator, request),
  });
  const port = await startListening(gateway, config);
  closing.defer(() => gateway.drain(config.drainTimeoutMs));
  const endpoint = await tellAddress({ config, folder, port });
  state.isReady = true;
  closing.defer(() => {
    state.isReady = false;
  });
  return {
    ...{ endpoint, folder, root, isFirstStart },
    shardCount: metadata.shardCount,
    fingerprint: tls?.current().fingerprint,
    failed: failure.promise,
    async reloadTls() {
      if (tls !== undefined) gateway.setCertificate(await tls.reload());
    },
  };
}

// The embedded form: every role in one process over one data folder. Wiring only; reading settings and acting on
// signals is server.ts.
import { createAccounts } from '../src/accounts/accounts.ts';
import { createPromTelemetry } from '../src/adapters/prom-telemetry.ts';
import { rememberErrors } from '../src/adapters/recent-errors.ts';
import { systemClock, systemRandom } from '../src/adapters/system-clock.ts';
import type { Config } from '../src/config/schema.ts';
import { answerOperator } from '../src/gateway/operator/operator-api.ts';
import { createGateway, type Gateway } from '../src/gateway/server.ts';
import { ROTATE_KEYS } from '../src/metadata/background/rotate-keys.ts';
import type { ClockPort } from '../src/ports/clock.ts';
import type { Logger } from '../src/ports/telemetry.ts';
import { createBackground } from './background.ts';
import { gatewaySettings, openListenerTls, startListening, tellAddress } from './listening.ts';
import { createBuffers, openObjects } from './open-objects.ts';
import { openStores, type Stores } from './open-stores.ts';
import { createReports } from './reports.ts';
import { checkGivenCredentials } from './root-credentials.ts';
import type { Surroundings } from './surroundings.ts';

export interface EmbeddedServer extends Pick<Stores, 'folder' | 'isFirstStart' | 'root'> {
  /** As clients on this machine reach it: `http://127.0.0.1:9000`. */
  readonly endpoint: string;
  readonly shardCount: number;
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
export async function startEmbedded(options: {
  config: Config;
  log: Logger;
  /** Of tests; default the system's. */
  clock?: ClockPort;
}): Promise<EmbeddedServer> {
  const { config, clock = systemClock } = options;
  checkGivenCredentials(config.root);
  await using opening = new AsyncDisposableStack();
  const log = rememberErrors(options.log, clock);
  const telemetry = createPromTelemetry({ log });
  const server = await open({ config, log, telemetry, clock, random: systemRandom, closing: opening });
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

async function open(surroundings: Surroundings): Promise<Omit<EmbeddedServer, 'stop'>> {
  const { config, log, telemetry, clock, random, closing } = surroundings;
  const state = { isReady: false };
  const failure = Promise.withResolvers<Error>();
  const onFatal = (error: Error) => {
    state.isReady = false;
    failure.resolve(error);
  };
  const buffers = createBuffers(config);
  const stores = await openStores(surroundings, { onFatal, onReleased: (buffer) => buffers.give(buffer) });
  const { folder, keyring, metadata, root, isFirstStart } = stores;
  const objects = openObjects(surroundings, stores, buffers);
  const accounts = createAccounts({ metadata, keyring, random });
  await accounts.ensureRoot(root);
  const tls = await openListenerTls(config, folder);

  const { rotation, runner } = createBackground(surroundings, stores, () => gateway.oldestRequestMs());
  const reports = createReports(surroundings, { ...stores, rotation, accounts });
  const wakeRotation = () => runner.wake(ROTATE_KEYS);
  const readStatus = () => reports.readStatus(endpoint);
  const gateway: Gateway = createGateway({
    ...{ metadata, objects, keyring, clock, random, log, telemetry },
    settings: gatewaySettings(config, tls?.current()),
    isReady: () => state.isReady,
    readMetrics: () => telemetry.scrape(),
    answerOperator: (request) => answerOperator({ accounts, rotation, wakeRotation, readStatus }, request),
  });
  runner.start();
  closing.defer(() => runner.stop());
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

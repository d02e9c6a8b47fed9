// Runs the embedded server from its start to its end: banner, signals, exit code. The server itself is embedded.ts.
import { join } from 'node:path';
import { CREDENTIALS_FILE } from '../src/admin/root-credentials.ts';
import type { Config } from '../src/config/schema.ts';
import { createJsonLog, type JsonLog } from '../src/platform/telemetry/json-log.ts';
import { readVersion } from '../src/platform/version.ts';
import { formatBanner } from './banner.ts';
import { type EmbeddedServer, startEmbedded } from './embedded.ts';
import { onSignals } from './signals.ts';
import { ThreadFailed } from './threads/watched-threads.ts';

/** Of a process that a signal has ended, as shells count. */
const SIGNAL_EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/** Resolves with the exit code: 0 when it was asked to stop, 1 when a store has failed. Rejects when it cannot start. */
export async function runServer(config: Config): Promise<number> {
  // All that the server writes is its owner's alone, the databases' files too, in a folder made by somebody else as well.
  process.umask(0o077);
  const log = createJsonLog({ level: config.log.level });
  const stopWish = Promise.withResolvers<'signal'>();
  let server: EmbeddedServer | undefined;
  const release = onSignals({
    drain: () => stopWish.resolve('signal'),
    stopNow(signal) {
      log.warn({ signal }, 'stopped-at-once');
      log.flushNow();
      process.exit(SIGNAL_EXIT_CODES[signal]);
    },
    reload() {
      server?.reloadTls().then(
        () => log.info({}, 'certificate-reloaded'),
        (error) => log.error({ err: error }, 'certificate-refused'),
      );
    },
  });
  try {
    server = await startEmbedded({ config, log });
    logStart(config, log, server);
    const end = await Promise.race([stopWish.promise, server.failed]);
    const hasFailed = end instanceof Error;
    if (hasFailed) log.error({ err: end }, end instanceof ThreadFailed ? 'thread-failed' : 'store-failed');
    log.info({}, 'draining');
    // A store that has failed may not close either.
    await server.stop().catch((error) => log.error({ err: error }, 'stop-failed'));
    log.info({}, 'stopped');
    return hasFailed ? 1 : 0;
  } finally {
    release();
    await log.flush();
  }
}

function logStart(config: Config, log: JsonLog, server: EmbeddedServer): void {
  const { endpoint, folder, isFirstStart, root, shardCount, fingerprint } = server;
  const version = readVersion();
  // performance.now() counts from the start of this process.
  const startMs = Math.round(performance.now());
  log.info({ version, endpoint, dataDir: folder, shards: shardCount, startMs }, 'started');
  const banner = formatBanner({
    version,
    endpoint,
    dataDir: folder,
    credentialsFile: join(folder, CREDENTIALS_FILE),
    isFirstStart,
    // A log must not hold the secret; a person sees it once.
    ...(process.stderr.isTTY && { credentials: root }),
    ...(config.tls.mode === 'self-signed' &&
      fingerprint !== undefined && { certificate: { file: join(folder, 'tls-cert.pem'), fingerprint } }),
  });
  process.stderr.write(`${banner}\n`);
}

// An etcd of one member, on loopback, as a child process: for a cluster on one machine and for tests. A cluster of many
// machines has its own, run by its operator.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { createServer } from 'node:net';
import { json } from 'node:stream/consumers';
import type { ClockPort } from '../../ports/clock.ts';
import { makeFolder } from '../disk/make-folder.ts';

const HOST = '127.0.0.1';
const START_MAX_MS = 20_000;
const STOP_MAX_MS = 5000;
const LOOK_AGAIN_MS = 50;
/** Between looking for free ports and listening on them, others may take them. */
const PORT_TRIES = 5;
const LOG_KEPT_CHARS = 16_384;

export interface EtcdExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface EtcdProcess {
  /** As `http://127.0.0.1:23790`, or `https://localhost:23790` where it has certificates. */
  readonly endpoint: string;
  readonly clientPort: number;
  readonly pid: number;
  /** Resolves when it is gone, however that came. */
  readonly exited: Promise<EtcdExit>;
  /** The end of what it has written. */
  log(): string;
  /** Sends a signal, and resolves at once: `SIGSTOP` and `SIGCONT`, say. */
  signal(signal: NodeJS.Signals): void;
  /** As a power cut does to a process. Resolves when it is gone. */
  kill(): Promise<EtcdExit>;
  /** Ends it gracefully, by force when it does not go. Safe to repeat. */
  stop(): Promise<EtcdExit>;
}

export interface EtcdProcessOptions {
  /** The program. */
  path: string;
  /** Created if missing; an existing one is continued. */
  dataDir: string;
  /** Default: a free one. Give it that of the last time, so that clients find it again. */
  clientPort?: number;
  /** Files (PEM) that both ends show one another: nobody else is let in. Default: plain HTTP, for everybody on this machine. */
  tls?: EtcdTls;
  clock: ClockPort;
}

export interface EtcdTls {
  ca: string;
  cert: string;
  key: string;
}

/** A parent that ends early must not leave it behind. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Resolves when it serves. Rejects with the end of its log when it does not come up; then no process is left. */
export async function startEtcd(options: EtcdProcessOptions): Promise<EtcdProcess> {
  await makeFolder(options.dataDir, 0o700);
  for (let left = PORT_TRIES; ; left--) {
    const [free = 0, peerPort = 0] = await freePorts(2);
    const etcd = spawnEtcd(options, { clientPort: options.clientPort ?? free, peerPort });
    try {
      await untilServing(etcd, options);
      return etcd;
    } catch (error) {
      await etcd.kill();
      const isPortTaken = etcd.log().includes('address already in use');
      if (!isPortTaken || options.clientPort !== undefined || left === 1) throw error;
    }
  }
}

function spawnEtcd(
  { path, dataDir, tls, clock }: EtcdProcessOptions,
  { clientPort, peerPort }: { clientPort: number; peerPort: number },
): EtcdProcess {
  const scheme = tls === undefined ? 'http' : 'https';
  const listen = `${scheme}://${HOST}:${clientPort}`;
  // TLS names no server by an address (RFC 6066).
  const endpoint = tls === undefined ? listen : `${scheme}://localhost:${clientPort}`;
  const peers = `${scheme}://${HOST}:${peerPort}`;
  const flags = {
    name: 'holdfast',
    'data-dir': dataDir,
    'listen-client-urls': listen,
    'advertise-client-urls': endpoint,
    'listen-peer-urls': peers,
    'initial-advertise-peer-urls': peers,
    'initial-cluster': `holdfast=${peers}`,
    // Revisions that nobody asks for any more would fill its quota.
    'auto-compaction-mode': 'periodic',
    'auto-compaction-retention': '1h',
    ...(tls && {
      'cert-file': tls.cert,
      'key-file': tls.key,
      'trusted-ca-file': tls.ca,
      'peer-cert-file': tls.cert,
      'peer-key-file': tls.key,
      'peer-trusted-ca-file': tls.ca,
      'client-cert-auth': 'true',
      'peer-client-cert-auth': 'true',
    }),
  };
  const child = spawn(
    path,
    Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
    {
      // Settings of another etcd of this machine must not apply. Older versions run on arm64 only with this variable.
      env: { ...(process.arch === 'arm64' && { ETCD_UNSUPPORTED_ARCH: 'arm64' }) },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  running.add(child);
  let log = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-LOG_KEPT_CHARS);
    });
  const exited = new Promise<EtcdExit>((resolve) => {
    child.once('error', (error) => {
      log += error.message;
      running.delete(child);
      resolve({ code: null, signal: null });
    });
    child.once('close', (code, signal) => {
      running.delete(child);
      resolve({ code, signal });
    });
  });
  const end = (signal: NodeJS.Signals) => {
    child.kill(signal);
    return exited;
  };
  return {
    endpoint,
    clientPort,
    pid: child.pid ?? 0,
    exited,
    log: () => log,
    signal: (signal) => void child.kill(signal),
    kill: () => end('SIGKILL'),
    async stop() {
      const gone = new AbortController();
      void exited.then(() => gone.abort());
      child.kill('SIGTERM');
      // One that was stopped could not go.
      child.kill('SIGCONT');
      await clock.sleep(STOP_MAX_MS, gone.signal);
      return gone.signal.aborted ? exited : end('SIGKILL');
    },
  };
}

async function untilServing(etcd: EtcdProcess, { clock, tls }: EtcdProcessOptions): Promise<void> {
  let isGone = false;
  void etcd.exited.then(() => {
    isGone = true;
  });
  const endsAtMs = clock.monotonicMs() + START_MAX_MS;
  while (!isGone && clock.monotonicMs() < endsAtMs) {
    if (await isServing(etcd.endpoint, tls)) return;
    await clock.sleep(LOOK_AGAIN_MS);
  }
  throw new Error(`etcd did not come up: ${etcd.log()}`);
}

async function isServing(endpoint: string, tls: EtcdTls | undefined): Promise<boolean> {
  try {
    const options = { agent: false, signal: AbortSignal.timeout(1000) };
    const request =
      tls === undefined
        ? requestHttp(`${endpoint}/health`, options)
        : requestHttps(`${endpoint}/health`, {
            ...options,
            ca: await readFile(tls.ca),
            cert: await readFile(tls.cert),
            key: await readFile(tls.key),
          });
    request.end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const { health } = (await json(response)) as { health?: unknown };
    return health === 'true' || health === true;
  } catch {
    return false;
  }
}

async function freePorts(count: number): Promise<number[]> {
  // All held at once, so that they differ.
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(0, HOST, resolve);
      });
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

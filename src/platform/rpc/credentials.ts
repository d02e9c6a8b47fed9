// By what the members of a cluster know one another: certificates of the cluster's own authority, both ways, or a shared
// secret where nothing leaves the machine. Certificate files are read again when they change. How a secret is shown is
// secret-door.ts; which streams are admitted is admission.ts; certificates are made by ../cluster-certificates.ts.
import { X509Certificate } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import { checkServerIdentity, createSecureContext, type SecureContextOptions } from 'node:tls';
import { ChannelCredentials, ServerCredentials } from '@grpc/grpc-js';
import { Refusal } from '../../base/refusal.ts';
import { hostOf } from '../../base/text/host-port.ts';
import { hasPlainKey } from '../../base/tls/plain-key.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { LIMITS } from '../../types/limits.ts';
import { CHAIN_BYTES_MAX } from '../tls/peer-door.ts';
import { loadTlsFiles, readPem, TlsError } from '../tls/tls.ts';
import { type Channel, SecretChannel } from './secret-door.ts';
import { type ClusterSecret, createClusterSecret } from './secret-proofs.ts';

export type RpcSecurity =
  /** Paths of PEM files: the authority's certificates, this node's certificate with its chain, its key. */
  | { readonly mode: 'tls'; readonly ca: string; readonly cert: string; readonly key: string }
  | { readonly mode: 'secret'; readonly secret: string };

/** Certificates of this node as they are now, as PEM texts. */
export interface NodeCertificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export interface RpcCredentials {
  /** Absent with certificates, which have proved membership before a stream begins. */
  readonly secret: ClusterSecret | undefined;
  /**
   * For other protocols between the same nodes: `follow` is called with those of now and of those after. Absent with a
   * secret.
   */
  readonly certificates:
    | (NodeCertificates & { follow(listener: (now: NodeCertificates) => void): void })
    | undefined;
  /** Throws a {@link Refusal} for an address that may not be listened on or spoken to. */
  checkHost(host: string): void;
  forServer(): ServerCredentials;
  /** For a new connection, with the certificates of this moment. */
  forChannel(channel: Channel): ChannelCredentials;
  /** Reads the files again. Rejects with {@link TlsError} when they are bad; those in use stay so. */
  reload(): Promise<void>;
  /** No file is watched any more. */
  close(): void;
}

/** Rejects with a {@link Refusal} that says what is wrong with the secret or the files. */
export async function openRpcCredentials(
  security: RpcSecurity,
  deps: { clock: ClockPort; log: Logger },
): Promise<RpcCredentials> {
  return security.mode === 'secret'
    ? openSecret(security.secret)
    : await openCertificates(security, deps.clock, deps.log);
}

function openSecret(secret: string): RpcCredentials {
  if (Buffer.byteLength(secret) < LIMITS.clusterSecretBytesMin) {
    throw new Refusal(`the cluster secret must have at least ${LIMITS.clusterSecretBytesMin} characters`);
  }
  const shared = createClusterSecret(secret);
  return {
    secret: shared,
    certificates: undefined,
    checkHost(host) {
      if (isLoopbackHost(host)) return;
      throw new Refusal(
        `${host} is not a loopback address: a shared secret is for nodes of one machine, others need certificates (holdfast cluster certs)`,
      );
    },
    forServer: () => ServerCredentials.createInsecure(),
    forChannel: (channel) => new SecretChannel({ ...channel, secret: shared }),
    reload: async () => undefined,
    close: () => undefined,
  };
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Of addresses; of names only `localhost`, because any other may come to mean another machine. */
export function isLoopbackHost(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return host === 'localhost';
  return loopback.check(host, family === 4 ? 'ipv4' : 'ipv6');
}

const DAY_MS = 24 * 3_600_000;
/** A certificate ends; the operator is warned this long before, and then each day. */
const WARN_BEFORE_END_MS = 30 * DAY_MS;

type CertificatePaths = Extract<RpcSecurity, { mode: 'tls' }>;
interface Certificates extends NodeCertificates {
  readonly expiresAtMs: number;
}

async function openCertificates(
  paths: CertificatePaths,
  clock: ClockPort,
  log: Logger,
): Promise<RpcCredentials> {
  let current = await loadCertificates(paths, clock.wallMs());
  const listeners = new Set<(now: NodeCertificates) => void>();
  const closed = new AbortController();

  function follow(listener: (now: NodeCertificates) => void): void {
    listeners.add(listener);
    listener(current);
  }

  async function reload(): Promise<void> {
    const next = await loadCertificates(paths, clock.wallMs());
    if (next.ca === current.ca && next.cert === current.cert && next.key === current.key) return;
    current = next;
    for (const listener of listeners) listener(next);
    log.info({ expiresAtMs: next.expiresAtMs }, 'cluster-certificate-reloaded');
  }

  /** A file that is being replaced may be half there, or belong to another: said once, tried again. */
  async function watch(): Promise<void> {
    let problem = '';
    for (;;) {
      await clock.sleep(LIMITS.credentialsReloadMs, closed.signal);
      if (closed.signal.aborted) return;
      const now = await reload().then(() => undefined, messageOf);
      if (now !== undefined && now !== problem) log.error({ problem: now }, 'cluster-certificate-refused');
      problem = now ?? '';
      warnOfEnd();
    }
  }

  let warnedAtMs = Number.NEGATIVE_INFINITY;
  function warnOfEnd(): void {
    const { expiresAtMs } = current;
    const nowMs = clock.monotonicMs();
    if (expiresAtMs - clock.wallMs() >= WARN_BEFORE_END_MS || nowMs - warnedAtMs < DAY_MS) return;
    warnedAtMs = nowMs;
    log.warn({ expiresAtMs }, 'cluster-certificate-ends-soon');
  }

  warnOfEnd();
  void watch();
  return {
    secret: undefined,
    get certificates() {
      return { ca: current.ca, cert: current.cert, key: current.key, follow };
    },
    checkHost: () => undefined,
    forServer() {
      const server = new MutualTlsServer(current);
      listeners.add((next) => server.replace(next));
      return server;
    },
    forChannel: ({ address }) =>
      ChannelCredentials.createFromSecureContext(createSecureContext(contextOf(current)), {
        // The name that the library passes is the one that it sends; an address must not be sent as a name.
        checkServerIdentity: (_name, certificate) => checkServerIdentity(hostOf(address), certificate),
      }),
    reload,
    close: () => closed.abort(),
  };
}

async function loadCertificates(paths: CertificatePaths, nowMs: number): Promise<Certificates> {
  const [ca, { cert, key, expiresAtMs }] = await Promise.all([readPem(paths.ca), loadTlsFiles(paths)]);
  const authorities = parseAuthorities(ca, paths.ca);
  const own = new X509Certificate(cert);
  if (own.validFromDate.getTime() > nowMs || expiresAtMs <= nowMs) {
    throw new TlsError(`${paths.cert} is valid from ${own.validFrom} to ${own.validTo}, not now`);
  }
  const chain = certificateBlocks(cert).map((block) => new X509Certificate(block).raw);
  checkChain(chain, paths.cert);
  // With a chain, the authority has signed another of its certificates: the other end checks it whole.
  if (chain.length === 1 && !authorities.some((authority) => own.verify(authority.publicKey))) {
    throw new TlsError(`${paths.cert} was not signed by the authority of ${paths.ca}`);
  }
  return { ca, cert, key, expiresAtMs };
}

/** What other nodes take of this one. */
function checkChain(chain: readonly Buffer[], path: string): void {
  const chainBytes = chain.reduce((sum, { length }) => sum + length, 0);
  if (chainBytes > CHAIN_BYTES_MAX) {
    throw new TlsError(
      `${path} has ${chainBytes} bytes with its chain, nodes take ${CHAIN_BYTES_MAX} of each other: leave out the authority's own certificate, or use EC keys`,
    );
  }
  if (!chain.every(hasPlainKey)) {
    throw new TlsError(
      `${path} has a key of a kind that nodes do not take of each other: use EC keys of P-256, P-384 or P-521, RSA or Ed25519`,
    );
  }
}

function certificateBlocks(pem: string): string[] {
  return pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}

function parseAuthorities(pem: string, path: string): X509Certificate[] {
  const blocks = certificateBlocks(pem);
  if (blocks.length === 0) throw new TlsError(`${path} holds no certificate`);
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch (error) {
    throw new TlsError(`${path} is not usable: ${messageOf(error)}`);
  }
}

function contextOf({ ca, cert, key }: NodeCertificates): SecureContextOptions {
  // Both ends are of this program: no older protocol is needed.
  return { ca, cert, key, minVersion: 'TLSv1.3' };
}

/** The library's own take no new certificates. */
class MutualTlsServer extends ServerCredentials {
  constructor(certificates: NodeCertificates) {
    super(
      { requestCert: true, rejectUnauthorized: true, handshakeTimeout: LIMITS.rpcConnectMaxMs },
      contextOf(certificates),
    );
  }

  replace(certificates: NodeCertificates): void {
    this.updateSecureContextOptions(contextOf(certificates));
  }

  override _equals(other: ServerCredentials): boolean {
    return other === this;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

// The server's certificate: a self-signed one kept in the data folder, or the operator's own files; read again on
// request, keeping the one in use when the new one is bad. Not here: listening, and who asks for a reload.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isIP, SocketAddress } from 'node:net';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { Refusal } from '../../base/refusal.ts';
import { writeDurableFile } from '../disk/durable-file.ts';
import { readSecretFile } from '../disk/secret-file.ts';

const CERT_FILE = 'tls-cert.pem';
const KEY_FILE = 'tls-key.pem';
const DAY_MS = 24 * 3_600_000;
/** The longest that all clients accept. */
const LIFETIME_MS = 825 * DAY_MS;
const RENEW_BEFORE_END_MS = 30 * DAY_MS;

/** No usable certificate; the message says why. */
export class TlsError extends Refusal {
  override name = 'TlsError';
}

/** A certificate with its key, checked to belong together. */
export interface TlsIdentity {
  /** PEM, with the chain if there is one. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
  /** SHA-256 of the certificate, as tools print it: `AB:CD:...`. */
  readonly fingerprint: string;
  readonly expiresAtMs: number;
}

export type TlsOptions =
  | {
      readonly mode: 'self-signed';
      /** The data folder; the files are tls-cert.pem and tls-key.pem, of mode 0600. */
      readonly folder: string;
      /** Host names, wildcards and addresses, as of {@link selfSignedNames}. */
      readonly names: readonly string[];
      /** Of a new certificate: what clients that look at nothing else compare with their endpoint. Default: Holdfast. */
      readonly commonName?: string;
      /** The addresses among `names` are this machine's, which come and go: one that has gone is no reason for a new one. */
      readonly namesOwnAddresses?: boolean;
    }
  | { readonly mode: 'files'; readonly cert: string; readonly key: string };

export interface TlsSource {
  /** The certificate in use. */
  current(): TlsIdentity;
  /**
   * Reads the files again, or renews the self-signed certificate near its end. Resolves with the certificate then in
   * use; rejects with {@link TlsError} when the new files are bad, and the old certificate stays in use.
   */
  reload(): Promise<TlsIdentity>;
}

/** Loads or makes the certificate. Rejects with {@link TlsError}. `nowMs` is the wall clock. */
export async function openTls(options: TlsOptions, nowMs: () => number = Date.now): Promise<TlsSource> {
  const load = () => (options.mode === 'files' ? loadTlsFiles(options) : loadSelfSigned(options, nowMs()));
  let identity = await load();
  return {
    current: () => identity,
    async reload() {
      identity = await load();
      return identity;
    },
  };
}

/** What the self-signed certificate is for: this machine, each base domain with its buckets, and further names. */
export function selfSignedNames(options: {
  readonly domains: readonly string[];
  readonly names: readonly string[];
  /** As of {@link machineNames}, for a server that listens at more than loopback. */
  readonly machine?: readonly string[];
}): string[] {
  const { domains, names, machine = [] } = options;
  const ofDomains = domains.flatMap((domain) => [domain, `*.${domain}`]);
  return [...new Set(['localhost', '127.0.0.1', '::1', ...machine, ...ofDomains, ...names])];
}

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i;

/** The name and the addresses of this machine that others may reach it by: not those of one link alone (fe80::). */
export function machineNames(
  name: string,
  interfaces: Readonly<Record<string, readonly { address: string; internal: boolean }[] | undefined>>,
): string[] {
  const addresses = Object.values(interfaces)
    .flatMap((found) => found ?? [])
    .filter(({ address, internal }) => !internal && !/^fe80:/i.test(address))
    .map(({ address }) => address);
  return [...(HOST_NAME.test(name) ? [name.toLowerCase()] : []), ...addresses];
}

/** Reads a certificate and its key. Rejects with {@link TlsError} unless they belong together. */
export async function loadTlsFiles(paths: {
  readonly cert: string;
  readonly key: string;
}): Promise<TlsIdentity> {
  const [cert, key] = await Promise.all([readPem(paths.cert), readKeyPem(paths.key)]);
  try {
    return identify(cert, key);
  } catch (error) {
    throw new TlsError(
      `the certificate ${paths.cert} with the key ${paths.key} is not usable: ${messageOf(error)}`,
    );
  }
}

/** Rejects with {@link TlsError}. */
export async function readPem(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new TlsError(`cannot read ${path}: ${messageOf(error)}`);
  }
}

/** As {@link readPem}, of a private key: rejects also when others can read it. */
async function readKeyPem(path: string): Promise<string> {
  try {
    return await readSecretFile(path);
  } catch (error) {
    throw new TlsError(error instanceof Refusal ? error.message : `cannot read ${path}: ${messageOf(error)}`);
  }
}

/** Throws unless both parse, belong together and OpenSSL takes them. */
function identify(cert: string, key: string): TlsIdentity {
  const parsed = new X509Certificate(cert);
  if (!parsed.checkPrivateKey(createPrivateKey(key))) throw new Error('the key is of another certificate');
  createSecureContext({ cert, key });
  return { cert, key, fingerprint: parsed.fingerprint256, expiresAtMs: parsed.validToDate.getTime() };
}

async function loadSelfSigned(
  options: Extract<TlsOptions, { mode: 'self-signed' }>,
  nowMs: number,
): Promise<TlsIdentity> {
  const stored = await readStored(options.folder);
  const isCurrent = stored !== undefined && stored.expiresAtMs - nowMs > RENEW_BEFORE_END_MS;
  if (isCurrent && isFor(stored.cert, options)) return stored;
  const made = await makeSelfSigned(options, nowMs);
  // Cut short between the two, the files do not belong together and are made again.
  await writeDurableFile(join(options.folder, KEY_FILE), made.key);
  await writeDurableFile(join(options.folder, CERT_FILE), made.cert);
  return made;
}

/**
 * The pair in the data folder; undefined when it is not there or of no use, for it can be made again. A key that others can
 * read is refused: clients trust its certificate, so it is for the operator to say whether to go on with it.
 */
async function readStored(folder: string): Promise<TlsIdentity | undefined> {
  try {
    const [cert, key] = await Promise.all([
      readFile(join(folder, CERT_FILE), 'utf8'),
      readSecretFile(join(folder, KEY_FILE)),
    ]);
    return identify(cert, key);
  } catch (error) {
    if (error instanceof Refusal) throw new TlsError(error.message);
    return undefined;
  }
}

function isFor(
  cert: string,
  { names, namesOwnAddresses = false }: Extract<TlsOptions, { mode: 'self-signed' }>,
): boolean {
  const listed = (new X509Certificate(cert).subjectAltName ?? '')
    .split(', ')
    .map((entry) => normalName(entry.replace(/^(DNS|IP Address):/, '')));
  const wanted = names.map(normalName);
  const needless = listed.filter(
    (name) => !wanted.includes(name) && !(namesOwnAddresses && isIP(name) !== 0),
  );
  return needless.length === 0 && wanted.every((name) => listed.includes(name));
}

/** One spelling of each IPv6 address. */
function normalName(name: string): string {
  return isIP(name) === 6 ? new SocketAddress({ address: name, family: 'ipv6' }).address : name.toLowerCase();
}

async function makeSelfSigned(
  { names, commonName = 'Holdfast' }: Extract<TlsOptions, { mode: 'self-signed' }>,
  nowMs: number,
): Promise<TlsIdentity> {
  // Loaded here because it is slow to load and most starts do not need it.
  const { generate } = await import('selfsigned');
  const altNames = names.map((name) =>
    isIP(name) === 0 ? ({ type: 2, value: name } as const) : ({ type: 7, ip: name } as const),
  );
  const made = await generate([{ name: 'commonName', value: commonName }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    // A minute early, for clients whose clock is a little behind.
    notBeforeDate: new Date(nowMs - 60_000),
    notAfterDate: new Date(nowMs + LIFETIME_MS),
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      { name: 'subjectAltName', altNames },
    ],
  });
  return identify(made.cert, made.private);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

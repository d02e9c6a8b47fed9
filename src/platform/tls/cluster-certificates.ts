// A small certificate authority for a cluster that has none: its own certificate and one for each node, in a folder.
// Nothing that is there is written over. The certificate of the server's own HTTPS is tls.ts's; how nodes use these is
// rpc/credentials.ts.
import { open, readFile, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { Refusal } from '../../base/refusal.ts';
import { syncFolder } from '../disk/durable-file.ts';
import { readSecretFile } from '../disk/secret-file.ts';

export interface NodeCertificateOptions {
  /** Exists. */
  folder: string;
  /** Of the node; its files are named after it. */
  name: string;
  /** Names and addresses under which other nodes reach it; at least one. */
  hosts: readonly string[];
  nowMs: number;
}

export interface NodeCertificateFiles {
  ca: string;
  cert: string;
  key: string;
  /** The authority is new. */
  madeCa: boolean;
  expiresAtMs: number;
}

const DAY_MS = 24 * 3_600_000;
const CA_LIFETIME_MS = 3650 * DAY_MS;
const NODE_LIFETIME_MS = 825 * DAY_MS;
/** For nodes whose clock is a little behind. */
const BACKDATE_MS = 3_600_000;

/** Fit for file names and for the common name of a certificate. */
const NODE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const HOST_NAME =
  /^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$/;

/** Makes a node's certificate, and the authority if there is none. Rejects with a {@link Refusal}. */
export async function makeNodeCertificate(options: NodeCertificateOptions): Promise<NodeCertificateFiles> {
  const { folder, name, hosts, nowMs } = options;
  checkNames(name, hosts);
  const at = (file: string) => join(folder, file);
  const files = { ca: at('ca-cert.pem'), cert: at(`${name}-cert.pem`), key: at(`${name}-key.pem`) };
  const caKeyFile = at('ca-key.pem');
  for (const path of [files.cert, files.key]) {
    if (await exists(path)) throw new Refusal(`${path} is there already; it is not written over`);
  }
  const [hasCa, hasCaKey] = [await exists(files.ca), await exists(caKeyFile)];
  if (hasCa !== hasCaKey) {
    const [there, missing] = hasCa ? [files.ca, caKeyFile] : [caKeyFile, files.ca];
    throw new Refusal(`${there} is there, but ${missing} is not: an authority needs both`);
  }
  if (!hasCa) await writePair({ cert: files.ca, key: caKeyFile }, await makeAuthority(nowMs));
  const ca = { cert: await readFile(files.ca, 'utf8'), key: await readSecretFile(caKeyFile) };
  const expiresAtMs = nowMs + NODE_LIFETIME_MS;
  await writePair(files, await makeNode({ ca, name, hosts, nowMs, expiresAtMs }));
  await syncFolder(folder);
  return { ...files, madeCa: !hasCa, expiresAtMs };
}

function checkNames(name: string, hosts: readonly string[]): void {
  if (!NODE_NAME.test(name) || name === 'ca') {
    throw new Refusal(`"${name}" cannot name a node: letters, digits, dots and hyphens, and not "ca"`);
  }
  if (hosts.length === 0) throw new Refusal('a node needs at least one host name or address');
  const bad = hosts.find((host) => isIP(host) === 0 && !HOST_NAME.test(host));
  if (bad !== undefined) throw new Refusal(`"${bad}" is neither a host name nor an address`);
}

interface Pair {
  cert: string;
  key: string;
}

const ALGORITHM = { keyType: 'ec', curve: 'P-256', algorithm: 'sha256' } as const;

async function makeAuthority(nowMs: number): Promise<Pair> {
  const { generate } = await import('selfsigned');
  const made = await generate([{ name: 'commonName', value: 'Holdfast cluster authority' }], {
    ...ALGORITHM,
    notBeforeDate: new Date(nowMs - BACKDATE_MS),
    notAfterDate: new Date(nowMs + CA_LIFETIME_MS),
    extensions: [
      { name: 'basicConstraints', cA: true, pathLenConstraint: 0, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  return { cert: made.cert, key: made.private };
}

async function makeNode(options: {
  ca: Pair;
  name: string;
  hosts: readonly string[];
  nowMs: number;
  expiresAtMs: number;
}): Promise<Pair> {
  const { ca, name, hosts, nowMs, expiresAtMs } = options;
  const { generate } = await import('selfsigned');
  const altNames = hosts.map((host) =>
    isIP(host) === 0 ? ({ type: 2, value: host } as const) : ({ type: 7, ip: host } as const),
  );
  const made = await generate([{ name: 'commonName', value: name }], {
    ...ALGORITHM,
    ca,
    notBeforeDate: new Date(nowMs - BACKDATE_MS),
    notAfterDate: new Date(expiresAtMs),
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      // Every node both listens and calls.
      { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
      { name: 'subjectAltName', altNames },
    ],
  });
  return { cert: made.cert, key: made.private };
}

/** The key first: a certificate without a key is of no use to anyone. */
async function writePair(paths: Pair, pair: Pair): Promise<void> {
  await writeNew(paths.key, pair.key, 0o600);
  await writeNew(paths.cert, pair.cert, 0o644);
}

async function writeNew(path: string, text: string, mode: number): Promise<void> {
  await using file = await open(path, 'wx', mode);
  // Whatever the process's mask takes away or leaves.
  await file.chmod(mode);
  await file.writeFile(text);
  await file.sync();
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

// How processes of a cluster prove that they belong to it: by a certificate of the cluster's authority or, on one machine, by
// the cluster's secret. The secret is never sent. A request carries a code (HMAC) of its head, with the checksum of its body.
// An answer carries a code of its own head and of the request's proof. So neither side takes a foreign process on a port for a
// member. Such a process cannot use a proof that it was sent: a proof holds for one address, for a short time
// (LIMITS.peerProofAgeMaxMs), and not at a node that has started later (exchange.ts).
import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import { Refusal } from '../../base/refusal.ts';

/** PEM texts; `ca` issues certificates to members of this cluster alone. */
export interface PeerCertificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export type PeerCredentials =
  /** The first certificates; `follow` reports the present ones, and those that replace them. */
  | (PeerCertificates & { readonly kind: 'tls'; follow?(listener: (now: PeerCertificates) => void): void })
  | { readonly kind: 'secret'; readonly secret: string };

/** For either end of a connection that is made now. */
export function tlsOptions({ ca, cert, key }: PeerCertificates) {
  // Both ends are of this program: no older protocol is needed.
  return { ca, cert, key, minVersion: 'TLSv1.3' } as const;
}

export interface RequestFacts {
  clusterId: string;
  /** The address of the intended node, as it is announced. */
  address: string;
  method: string;
  path: string;
  sizeBytes: number;
  /** As their headers say; empty when there are none. */
  checksum: string;
  map: string;
  fence: string;
  timeMs: string;
}

export interface AnswerFacts {
  /** Of the request. */
  proof: string;
  status: number;
  sizeBytes: number;
  checksum: string;
  map: string;
  error: string;
}

export interface Prover {
  request(facts: RequestFacts): string;
  answer(facts: AnswerFacts): string;
}

const LABEL = 'holdfast chunks 1';

export function createProver(secret: string): Prover {
  // A key object: with bytes each proof would make one anew, and cost five times as much.
  const key = createSecretKey(createHmac('sha256', secret).update(LABEL).digest());
  const codeOf = (kind: string, parts: readonly (string | number)[]) =>
    createHmac('sha256', key)
      .update([kind, ...parts].join('\n'))
      .digest('hex');
  return {
    request: ({ clusterId, address, method, path, sizeBytes, checksum, map, fence, timeMs }) =>
      codeOf('request', [clusterId, address, method, path, sizeBytes, checksum, map, fence, timeMs]),
    answer: ({ proof, status, sizeBytes, checksum, map, error }) =>
      codeOf('answer', [proof, status, sizeBytes, checksum, map, error]),
  };
}

/** In constant time. */
export function isSameProof(given: unknown, expected: string): boolean {
  if (typeof given !== 'string' || given.length !== expected.length) return false;
  return timingSafeEqual(Buffer.from(given, 'latin1'), Buffer.from(expected, 'latin1'));
}

/** Throws {@link Refusal}: what the secret proves can be read and delayed by anybody on the way. */
export function refuseSecretBeyondLoopback(host: string, { kind }: PeerCredentials): void {
  if (kind === 'tls' || isLoopback(host)) return;
  throw new Refusal(
    `The cluster secret is for one machine only, and ${host} is not its loopback: give certificates instead.`,
  );
}

function isLoopback(host: string): boolean {
  if (isIP(host) === 4) return host.startsWith('127.');
  return host === 'localhost' || host === '::1';
}

// Who may open a stream: decided from its headers alone, before anything of it is read, so that a stranger costs and
// learns nothing (proto/metadata.proto says what stands in the headers). The caller's half is open-stream.ts.
import { Metadata, status } from '@grpc/grpc-js';
import { assert } from '../../base/assert.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { NodeId } from '../../ports/replication.ts';
import type { RpcCredentials } from './credentials.ts';
import { createChallenges, type HandshakeFields } from './secret-proofs.ts';
import { RPC_VERSION } from './wire.ts';

export interface Member {
  readonly clusterId: string;
  readonly nodeId: NodeId;
}

export const HEADER = {
  version: 'holdfast-version',
  cluster: 'holdfast-cluster',
  caller: 'holdfast-caller',
  callee: 'holdfast-callee',
  challenge: 'holdfast-challenge',
  nonce: 'holdfast-nonce',
  proof: 'holdfast-proof',
} as const;

export type Decision =
  /** `headers` accept the stream. */
  | { kind: 'admitted'; caller: NodeId; headers: Metadata }
  /** `isChallenge`: it has not proved anything yet, and the answer says how to. */
  | { kind: 'refused'; code: status; reason: string; trailers: Metadata; isChallenge: boolean };

export interface Admission {
  decide(path: string, headers: Metadata): Decision;
}

/** Fit for headers and logs. */
const ID = /^[\x21-\x7e]{1,64}$/;

/** Throws a broken invariant for ids that do not fit into headers. */
export function checkMember({ clusterId, nodeId }: Member): void {
  assert(ID.test(clusterId) && ID.test(nodeId), 'ids of clusters and nodes are short and printable');
}

export function createAdmission(deps: {
  self: Member;
  /** Of this node, as others know it. */
  address(): string;
  credentials: RpcCredentials;
  clock: ClockPort;
  random: RandomPort;
}): Admission {
  const { self, credentials } = deps;
  const challenges = createChallenges(deps);
  checkMember(self);

  /** With the secret: the callee's own proof, or why there is none for this caller. */
  function checkProof(
    handshake: HandshakeFields,
    proof: string,
  ): { answer: string } | { isChallenge: boolean } {
    if (credentials.secret === undefined) return { answer: '' };
    if (proof === '') return { isChallenge: true };
    const isProved = credentials.secret.verify('caller', handshake, proof);
    if (!isProved || handshake.nonce === '' || !challenges.isGood(handshake.challenge))
      return { isChallenge: false };
    challenges.spend(handshake.challenge);
    return { answer: credentials.secret.prove('callee', handshake) };
  }

  return {
    decide(path, headers) {
      const handshake: HandshakeFields = {
        path,
        address: deps.address(),
        clusterId: one(headers, HEADER.cluster),
        caller: one(headers, HEADER.caller),
        callee: one(headers, HEADER.callee),
        challenge: one(headers, HEADER.challenge),
        nonce: one(headers, HEADER.nonce),
      };
      const proved = checkProof(handshake, one(headers, HEADER.proof));
      if ('isChallenge' in proved) {
        const trailers = new Metadata();
        trailers.set(HEADER.challenge, challenges.issue());
        const reason = 'this is for members of the cluster, who know its secret';
        return { kind: 'refused', code: status.UNAUTHENTICATED, reason, trailers, ...proved };
      }
      // Only members come so far: they may know what is wrong.
      const reason = findMismatch(handshake, one(headers, HEADER.version), self);
      if (reason !== undefined) {
        const code = status.FAILED_PRECONDITION;
        return { kind: 'refused', code, reason, trailers: new Metadata(), isChallenge: false };
      }
      const accepted = new Metadata();
      accepted.set(HEADER.callee, self.nodeId);
      if (proved.answer !== '') accepted.set(HEADER.proof, proved.answer);
      return { kind: 'admitted', caller: handshake.caller, headers: accepted };
    },
  };
}

function findMismatch(handshake: HandshakeFields, version: string, self: Member): string | undefined {
  if (version !== String(RPC_VERSION)) {
    return `the caller speaks version ${version === '' ? '(none)' : version}, this node speaks ${RPC_VERSION}`;
  }
  if (handshake.clusterId !== self.clusterId) {
    return `the caller is of cluster ${handshake.clusterId}, this node of cluster ${self.clusterId}`;
  }
  if (handshake.callee !== self.nodeId) return `this is node ${self.nodeId}, not ${handshake.callee}`;
  return ID.test(handshake.caller) ? undefined : 'the caller does not say which node it is';
}

function one(headers: Metadata, name: string): string {
  const value = headers.get(name)[0];
  return typeof value === 'string' ? value : '';
}

// Which streams of members are served: decided from their headers alone, before anything else of them is read
// (proto/metadata.proto says what stands in the headers). Strangers have no connection: their handshake ends, by certificates or
// in secret-door.ts. The caller's half is open-stream.ts.
import { Metadata } from '@grpc/grpc-js';
import { assert } from '../../base/assert.ts';
import type { NodeId } from '../../ports/replication.ts';
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
} as const;

export type Decision =
  /** `headers` accept the stream. */
  { kind: 'admitted'; caller: NodeId; headers: Metadata } | { kind: 'refused'; reason: string };

/** Fit for headers and logs. */
const ID = /^[\x21-\x7e]{1,64}$/;

/** Throws a broken invariant for ids that do not fit into headers. */
export function checkMember({ clusterId, nodeId }: Member): void {
  assert(ID.test(clusterId) && ID.test(nodeId), 'ids of clusters and nodes are short and printable');
}

/** For streams that reach `self`. */
export function decideAdmission(self: Member, headers: Metadata): Decision {
  const reason = findMismatch(self, headers);
  if (reason !== undefined) return { kind: 'refused', reason };
  const accepted = new Metadata();
  accepted.set(HEADER.callee, self.nodeId);
  return { kind: 'admitted', caller: one(headers, HEADER.caller), headers: accepted };
}

function findMismatch(self: Member, headers: Metadata): string | undefined {
  const [version, cluster] = [one(headers, HEADER.version), one(headers, HEADER.cluster)];
  if (version !== String(RPC_VERSION)) {
    return `the caller speaks version ${version === '' ? '(none)' : version}, this node speaks ${RPC_VERSION}`;
  }
  if (cluster !== self.clusterId) {
    return `the caller is of cluster ${cluster}, this node of cluster ${self.clusterId}`;
  }
  const callee = one(headers, HEADER.callee);
  if (callee !== self.nodeId) return `this is node ${self.nodeId}, not ${callee}`;
  return ID.test(one(headers, HEADER.caller)) ? undefined : 'the caller does not say which node it is';
}

function one(headers: Metadata, name: string): string {
  const value = headers.get(name)[0];
  return typeof value === 'string' ? value : '';
}

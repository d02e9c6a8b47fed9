// How the two ends of a connection show one another that they know the cluster's secret, without sending it: each proves it over
// a challenge of the callee and a nonce of the caller, both new for this connection (secret-door.ts). Not encryption: for loopback.
import { createHmac, timingSafeEqual } from 'node:crypto';

/** What is proved: who is spoken to, and that it is now. */
export interface HandshakeFields {
  /**
   * Of the callee, as others know it: a process that has taken another node's old address cannot pass on what it receives
   * there.
   */
  address: string;
  challenge: string;
  nonce: string;
}

export interface ClusterSecret {
  /** 64 hex digits. */
  prove(role: 'caller' | 'callee', handshake: HandshakeFields): string;
  /** In constant time. */
  verify(role: 'caller' | 'callee', handshake: HandshakeFields, proof: string): boolean;
}

export function createClusterSecret(secret: string): ClusterSecret {
  const prove = (role: 'caller' | 'callee', handshake: HandshakeFields) => {
    const { address, challenge, nonce } = handshake;
    // As JSON, so that no field can be taken for part of another.
    const text = JSON.stringify([`holdfast rpc ${role}`, address, challenge, nonce]);
    return createHmac('sha256', secret).update(text).digest('hex');
  };
  return { prove, verify: (role, handshake, proof) => equalSecrets(prove(role, handshake), proof) };
}

/** In constant time for texts of one length. */
function equalSecrets(a: string, b: string): boolean {
  const [first, second] = [Buffer.from(a), Buffer.from(b)];
  return first.length === second.length && timingSafeEqual(first, second);
}

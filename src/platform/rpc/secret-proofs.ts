// How the two ends of a stream show one another that they know the cluster's secret, without sending it: each proves it
// over a challenge of the callee and a nonce of the caller (proto/metadata.proto). A challenge is good once and for a few
// seconds; none is stored before it has been answered well, so strangers cost no memory. Not encryption: for loopback.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { toHex } from '../../base/bytes/bytes.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import { LIMITS } from '../../types/limits.ts';

/** What is proved: who speaks to whom, where, and that it is now. */
export interface HandshakeFields {
  path: string;
  /**
   * Of the callee, as others know it: a process that has taken another node's old address cannot pass on what it receives
   * there.
   */
  address: string;
  clusterId: string;
  caller: string;
  callee: string;
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
    const { path, address, clusterId, caller, callee, challenge, nonce } = handshake;
    // As JSON, so that no field can be taken for part of another.
    const text = JSON.stringify([
      `holdfast rpc ${role}`,
      path,
      address,
      clusterId,
      caller,
      callee,
      challenge,
      nonce,
    ]);
    return createHmac('sha256', secret).update(text).digest('hex');
  };
  return { prove, verify: (role, handshake, proof) => equalSecrets(prove(role, handshake), proof) };
}

/** In constant time for texts of one length. */
function equalSecrets(a: string, b: string): boolean {
  const [first, second] = [Buffer.from(a), Buffer.from(b)];
  return first.length === second.length && timingSafeEqual(first, second);
}

export interface Challenges {
  issue(): string;
  isGood(challenge: string): boolean;
  /** It answered for someone: never again. */
  spend(challenge: string): void;
}

const RANDOM_BYTES = 16;

export function createChallenges({ clock, random }: { clock: ClockPort; random: RandomPort }): Challenges {
  /** Of this process: what was issued before a restart is worth nothing. */
  const key = random.bytes(32);
  const spent = new Map<string, number>();
  const seal = (text: string) => createHmac('sha256', key).update(text).digest('hex');

  const issuedAtMs = (challenge: string) => Number(challenge.split('.')[0]);
  const isFresh = (atMs: number) => clock.monotonicMs() - atMs <= LIMITS.challengeAgeMaxMs;

  return {
    issue() {
      const text = `${Math.floor(clock.monotonicMs())}.${toHex(random.bytes(RANDOM_BYTES))}`;
      return `${text}.${seal(text)}`;
    },
    isGood(challenge) {
      const end = challenge.lastIndexOf('.');
      if (end < 0 || !equalSecrets(seal(challenge.slice(0, end)), challenge.slice(end + 1))) return false;
      return isFresh(issuedAtMs(challenge)) && !spent.has(challenge);
    },
    spend(challenge) {
      for (const [old, atMs] of spent) {
        if (isFresh(atMs)) break;
        spent.delete(old);
      }
      spent.set(challenge, issuedAtMs(challenge));
    },
  };
}

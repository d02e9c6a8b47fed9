// A certificate authority of a made-up cluster, and certificates that it issues to members on this machine.
import { generate } from 'selfsigned';
import type { PeerCredentials } from '../../../src/platform/chunk-http/peer-proof.ts';

const KEYS = { keyType: 'ec', curve: 'P-256', algorithm: 'sha256' } as const;

export interface PeerAuthority {
  /** PEM. */
  readonly ca: string;
  issue(): Promise<PeerCredentials & { kind: 'tls' }>;
}

export async function createPeerAuthority(): Promise<PeerAuthority> {
  const authority = await generate([{ name: 'commonName', value: 'a cluster' }], {
    ...KEYS,
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  return {
    ca: authority.cert,
    async issue() {
      const member = await generate([{ name: 'commonName', value: 'a member' }], {
        ...KEYS,
        ca: { key: authority.private, cert: authority.cert },
        extensions: [
          { name: 'basicConstraints', cA: false, critical: true },
          { name: 'keyUsage', digitalSignature: true, critical: true },
          { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
          { name: 'subjectAltName', altNames: ['127.0.0.1', '::1'].map((ip) => ({ type: 7, ip })) },
        ],
      });
      return { kind: 'tls', ca: authority.cert, cert: member.cert, key: member.private };
    },
  };
}

// Opens sockets to storage nodes: plain ones between processes of one machine, else TLS with certificates at both ends, those of
// the moment at which a connection is made.
import { connect, isIP, type OnReadOpts, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext } from 'node:tls';
import { hostOf, portOf } from '../../base/text/host-port.ts';
import { type PeerCertificates, type PeerCredentials, tlsOptions } from './peer-proof.ts';

/** Nothing may be written before the peer is known. */
export interface DialedSocket {
  socket: Socket;
  /** The event at which that is so. */
  readyEvent: 'connect' | 'secureConnect';
}

/** Connects to HOST:PORT; received bytes go to `onread` instead of the socket's stream. */
export type Dial = (address: string, onread: OnReadOpts) => DialedSocket;

export function createDial(credentials: PeerCredentials): Dial {
  if (credentials.kind === 'secret') {
    return (address, onread) => ({
      socket: connect({ ...whereOf(address), noDelay: true, onread }),
      readyEvent: 'connect',
    });
  }
  // Parsed once for all connections.
  const contextOf = (certificates: PeerCertificates) => createSecureContext(tlsOptions(certificates));
  let secureContext = contextOf(credentials);
  credentials.follow?.((now) => {
    secureContext = contextOf(now);
  });
  return (address, onread) => {
    const { host, port } = whereOf(address);
    const socket = connectTls({
      ...{ host, port, secureContext, onread, rejectUnauthorized: true },
      // The name of an address is not a name.
      servername: isIP(host) === 0 ? host : '',
    });
    // No option of this call sets it.
    socket.setNoDelay(true);
    return { socket, readyEvent: 'secureConnect' };
  };
}

function whereOf(address: string): { host: string; port: number } {
  return { host: hostOf(address), port: portOf(address) };
}

// Connections to a port for members of the cluster. Who has not proved to be one shares places and turns by address with all others:
// a newcomer always finds a place, and where there are no more, the oldest connection of a stranger goes, of the address that has
// most. What shaking hands takes of the thread is counted by address, and who has had least of late is the next; addresses
// at which a member has proved itself count each for itself, all others together, too.
import type { Server, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { createFairShare } from '../../base/async/fair-share.ts';
import { createSharedPlaces } from '../../base/async/shared-places.ts';
import { createStartTurns } from '../../base/async/start-turns.ts';
import { BoundedMap } from '../../base/bounded-map.ts';
import { paceHandshakes } from '../../base/tls/paced-handshakes.ts';
import type { ClockPort } from '../../ports/clock.ts';
import { ADDRESS_WEIGHTS, addressGroupOf } from '../../types/tenant.ts';

export interface PeerPlaces {
  /** One was taken. False: there is no room, all being members, and it has ended. */
  take(socket: Socket): boolean;
  /** It belongs to a member, and goes for no stranger. */
  prove(socket: Socket): void;
  /** A member has proved itself at this address of late. */
  isKnown(addressGroup: string): boolean;
  /** Ends the connections of those who have proved nothing. */
  endStrangers(): void;
}

export interface PeerPlacesOptions {
  connectionsMax: number;
  /** A connection of a stranger has made room for another. */
  onYield(address: string): void;
}

/** Groups of addresses that are remembered. */
const KNOWN_MAX = 4096;

export function createPeerPlaces({ connectionsMax, onYield }: PeerPlacesOptions): PeerPlaces {
  const strangers = new Set<Socket>();
  const known = new BoundedMap<string, true>(KNOWN_MAX);
  const places = createSharedPlaces<Socket>({
    limit: connectionsMax,
    weights: ADDRESS_WEIGHTS,
    end(socket) {
      onYield(socket.remoteAddress ?? '');
      socket.destroy();
    },
  });
  return {
    take(socket) {
      strangers.add(socket);
      socket.once('close', () => {
        strangers.delete(socket);
        places.remove(socket);
      });
      const isWelcome = places.add(socket, [addressGroupOf(socket.remoteAddress ?? '')]);
      if (!isWelcome) socket.destroy();
      return isWelcome;
    },
    prove(socket) {
      if (socket.destroyed || !strangers.delete(socket)) return;
      known.set(addressGroupOf(socket.remoteAddress ?? ''), true);
      places.setIdle(socket, false);
      // All members of a machine may have one address.
      places.move(socket, []);
    },
    isKnown: (addressGroup) => known.get(addressGroup) === true,
    endStrangers() {
      for (const socket of strangers) socket.destroy();
    },
  };
}

/** Of one turn of the event loop, for all who shake hands. */
const HANDSHAKES_TURN_MS = 4;
/**
 * Encrypted bytes of who has not shaken hands: a certificate with its chain, which are checked in one piece. A stranger may make
 * one that takes 3 ms for each 430 bytes.
 */
const CERTIFICATE_BYTES_MAX = 6 * 1024;
/** Of a member's certificate with its chain (DER): a signature of RSA with 4,096 bits goes with it. */
export const CHAIN_BYTES_MAX = 5 * 1024;
/** What has come from all who wait for their turn. */
const WAITING_BYTES_MAX = 16 * 1024 * 1024;

/** Members prove themselves by certificates. To be called before anybody listens for secured connections, or takes any. */
export function guardHandshakes(
  server: Server,
  { places, clock, helloMaxMs }: { places: PeerPlaces; clock: ClockPort; helloMaxMs: number },
): void {
  const turns = createStartTurns({ clock, turnMs: HANDSHAKES_TURN_MS });
  const waiting = createFairShare({ limit: WAITING_BYTES_MAX, weights: ADDRESS_WEIGHTS });
  const groupOf = ({ remoteAddress = '' }: Socket) => addressGroupOf(remoteAddress);
  const shakeHands = paceHandshakes<Socket>(server, {
    helloMaxMs,
    certificateBytesMax: CERTIFICATE_BYTES_MAX,
    mayShakeHands(socket, start) {
      const group = groupOf(socket);
      const path = places.isKnown(group) ? [group] : ['strangers', group];
      turns.add({ senderOf: () => path, isLight: false, start });
      return false;
    },
    holdRecords(socket, sizeBytes) {
      const path = [groupOf(socket)];
      if (!waiting.mayTake(path, sizeBytes)) return undefined;
      waiting.take(path, sizeBytes);
      return () => waiting.giveBack(path, sizeBytes);
    },
    onSecured: (socket) => places.prove(socket),
  });
  server.on('connection', (socket: Socket) => {
    if (places.take(socket)) shakeHands(socket);
  });
}

/** Why hands were not shaken: Node says of a certificate that is not of the authority only that the connection has ended. */
export function refusalReason({ message }: Error, { authorizationError }: Partial<TLSSocket>): string {
  return authorizationError == null ? message : String(authorizationError);
}

// The connections that are open, from the moment that they are taken: whose they are, who makes room when there are too
// many, and how many requests wait on them. A connection counts by its address until a request on it has proved an account.
import type { Socket } from 'node:net';
import { createFairShare, type ShareName, type SharePath } from '../../base/async/fair-share.ts';
import { createSharedPlaces } from '../../base/async/shared-places.ts';
import { LIMITS } from '../../types/limits.ts';
import { addressGroupOf, SHARE_WEIGHTS, sharePathOf, type Tenant } from '../../types/tenant.ts';
import { shareOfThread } from '../../types/thread-share.ts';
import { excessiveHeads } from './unfinished-heads.ts';

/** Heads that are not complete are looked at when so many connections have come, however soon. */
const LOOK_EVERY_CONNECTIONS = 1000;

export interface Connection {
  /** The one that requests come on: that of TLS, once hands are shaken. */
  socket: Socket;
  /** Whom it counts against. */
  tenant: Tenant;
  /** Exchanges under way, and a request that waits for its turn to start: more than one only while the answer to the last one is on its way out. */
  underWay: number;
  /** Of these, those that are answered and only listened to, and those that wait for the body of who has proved nothing. */
  yielding: number;
  /** Requests that wait for the answers to those before them, by what they count in. */
  readonly waiting: SharePath[];
  /** It is one more than there may be, in that share: its next answer is its last. */
  excessOf: ShareName | undefined;
  /** Bytes that have come on it, up to the end of its last request. */
  parsedBytes: number;
  /** Its bytes make no sense any more: it ends when nothing is under way. */
  isBroken: boolean;
}

export interface ConnectionsOptions {
  readonly connectionsMax: number;
  /** As in types/thread-share.ts. */
  readonly threads?: number | undefined;
  /** An idle connection is closed to make room for others. */
  onYield(tenant: Tenant): void;
}

export class Connections {
  readonly #connectionsMax: number;
  readonly #bySocket = new Map<Socket, Connection>();
  /** Those whose hands are not shaken yet, by their two ends. */
  readonly #byEnds = new Map<string, Connection>();
  readonly #places;
  readonly #onYield: (tenant: Tenant) => void;
  #openedSinceLook = 0;
  readonly #threads: number | undefined;
  readonly #waiting;

  constructor({ connectionsMax, threads, onYield }: ConnectionsOptions) {
    this.#threads = threads;
    const waitingMax = shareOfThread(LIMITS.pipelinedWaitingMax, { threads });
    this.#waiting = createFairShare({ limit: waitingMax, weights: SHARE_WEIGHTS });
    this.#connectionsMax = connectionsMax;
    this.#onYield = onYield;
    this.#places = createSharedPlaces<Connection>({
      limit: connectionsMax,
      weights: SHARE_WEIGHTS,
      end({ socket, tenant }) {
        socket.destroy();
        onYield(tenant);
      },
    });
  }

  get(socket: Socket): Connection | undefined {
    return this.#bySocket.get(socket);
  }

  /** Whom what comes on it counts against. */
  pathOf(socket: Socket): SharePath {
    const connection = this.#bySocket.get(socket);
    return connection === undefined ? [] : sharePathOf(connection.tenant);
  }

  all(): IterableIterator<Connection> {
    return this.#bySocket.values();
  }

  /** One is taken; over TLS its hands are still to be shaken. */
  open(socket: Socket): void {
    if (++this.#openedSinceLook >= LOOK_EVERY_CONNECTIONS) this.endExcessiveHeads();
    const tenant = { account: undefined, address: addressGroupOf(socket.remoteAddress ?? '') };
    const connection: Connection = {
      socket,
      tenant,
      underWay: 0,
      yielding: 0,
      waiting: [],
      parsedBytes: 0,
      excessOf: undefined,
      isBroken: false,
    };
    this.#bySocket.set(socket, connection);
    const ends = endsOf(socket);
    this.#byEnds.set(ends, connection);
    const share = this.#shareAtStake(0);
    if (!this.#places.add(connection, sharePathOf(tenant))) connection.excessOf = share;
    socket.once('close', () => {
      if (this.#byEnds.get(ends) === connection) this.#byEnds.delete(ends);
      this.#forget(connection, socket);
    });
  }

  /** Connections end whose heads are not complete and hold more than their tenant's share. */
  endExcessiveHeads(): void {
    this.#openedSinceLook = 0;
    for (const { socket, tenant } of excessiveHeads(this.#bySocket.values(), this.#threads)) {
      socket.destroy();
      this.#onYield(tenant);
    }
  }

  /** Hands are shaken: requests come on `secured`. */
  secure(secured: Socket): void {
    const connection = this.#byEnds.get(endsOf(secured));
    if (connection === undefined) {
      this.open(secured);
      return;
    }
    this.#bySocket.delete(connection.socket);
    this.#bySocket.set(secured, connection);
    connection.socket = secured;
    connection.parsedBytes = 0;
    secured.once('close', () => this.#forget(connection, secured));
  }

  /** A request on it has proved an account: it counts as that of the last one. */
  prove(connection: Connection, { account, signer }: Omit<Tenant, 'address'>): void {
    const { tenant, socket } = connection;
    if (tenant.account === account && tenant.signer === signer) return;
    // One that has made room for another is gone from the places before it is closed.
    if (socket.destroyed || !this.#bySocket.has(socket)) return;
    connection.tenant = { account, signer, address: tenant.address };
    const share = this.#shareAtStake(1);
    const isWelcome = this.#places.move(connection, sharePathOf(connection.tenant));
    connection.excessOf = isWelcome ? undefined : share;
  }

  /** Call it when its exchanges have changed: an idle connection, or one whose exchanges yield, may have to make room. */
  update(connection: Connection): void {
    this.#places.setIdle(connection, connection.underWay === connection.yielding);
  }

  /** A request has come behind others whose answers are not out: false when there are too many of them. */
  mayWait(socket: Socket): boolean {
    const connection = this.#bySocket.get(socket);
    if (connection === undefined || connection.waiting.length >= LIMITS.pipelinedRequestsMax) return false;
    const path = sharePathOf(connection.tenant);
    if (!this.#waiting.mayTake(path, 1)) return false;
    this.#waiting.take(path, 1);
    connection.waiting.push(path);
    return true;
  }

  /** The turn of one that has waited has come. */
  endWait(socket: Socket): void {
    const path = this.#bySocket.get(socket)?.waiting.shift();
    if (path !== undefined) this.#waiting.giveBack(path, 1);
  }

  /** Whose it is that is used up where a connection finds no place; `ownCount`: places that it has itself. */
  #shareAtStake(ownCount: number): ShareName {
    return this.#places.count - ownCount < this.#connectionsMax ? 'tenant' : 'all';
  }

  #forget(connection: Connection, socket: Socket): void {
    // The place goes back with the first of the two sockets of TLS.
    this.#bySocket.delete(socket);
    this.#bySocket.delete(connection.socket);
    this.#places.remove(connection);
    for (const path of connection.waiting.splice(0)) this.#waiting.giveBack(path, 1);
  }
}

/** The same for both sockets of a TLS connection, and for no two connections. */
function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

// HTTP servers of a node whose clients ask one thing at a time: scrapers, probes, other nodes. One read of a socket holds
// thousands of small requests, and Node's parser makes them all, each with its answer, before anything else runs: a node would
// do nothing else for as long as somebody sends them. Here a connection that has some requests unanswered ends at the next, and
// one whose request has a body in chunks ends at its head: those clients tell the length, and chunks of a byte cost as much.
import { IncomingMessage, type ServerOptions, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** More than one: a client may have an answer before its server knows that it is out. */
export const AT_ONCE_MAX = 4;

const unanswered = new WeakMap<Socket, number>();

function addUnanswered(socket: Socket, change: number): void {
  unanswered.set(socket, (unanswered.get(socket) ?? 0) + change);
}

class OneOfFew extends IncomingMessage {
  #endsParsing: boolean | undefined;

  /**
   * Asked by Node when the head is there; what was said once stays. Behind an upgrade the parser makes no more requests, and as
   * nobody listens for upgrades the connection ends.
   */
  get upgrade(): boolean {
    this.#endsParsing ??=
      this.method === 'CONNECT' ||
      this.headers['transfer-encoding'] !== undefined ||
      (unanswered.get(this.socket) ?? 0) >= AT_ONCE_MAX;
    return this.#endsParsing;
  }

  // What Node makes of the headers Upgrade and Connection: nothing is upgraded here.
  set upgrade(_wanted: boolean | null) {}
}

/** Node makes one for each request, for those that it refuses itself, too. */
class CountedResponse extends ServerResponse {
  constructor(...given: ConstructorParameters<typeof ServerResponse>) {
    super(...given);
    const { socket } = given[0];
    addUnanswered(socket, 1);
    this.once('close', () => addUnanswered(socket, -1));
  }
}

/** Options of Node's servers. */
export const FEW_AT_ONCE: Pick<ServerOptions, 'IncomingMessage' | 'ServerResponse'> = {
  IncomingMessage: OneOfFew,
  ServerResponse: CountedResponse as typeof ServerResponse,
};

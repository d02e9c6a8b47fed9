// Calls of gateways to nodes over the simulated network (src/ports/shard-calls.ts): request, reply, tickets, and what a
// broken connection leaves open. A message that the network loses breaks the connection sooner or later, as TCP does.
import type { NodeId } from '../../src/ports/replication.ts';
import type {
  ShardCall,
  ShardCallHandler,
  ShardCallPort,
  ShardReply,
  Ticket,
} from '../../src/ports/shard-calls.ts';
import type { Chance } from './chance.ts';
import type { SimulatedProcess } from './clock.ts';
import type { Network } from './network.ts';

const BROKEN_MIN_MS = 5;
const BROKEN_MAX_MS = 8000;
/** Until a broken connection shows while both ends live. */
const RESET_MAX_MS = 50;

/** What runs around the handling of a call, on the callee's side: the world looks on. */
export interface CallObserver {
  onCall(nodeId: NodeId, call: ShardCall): void;
  onReply(nodeId: NodeId, call: ShardCall, reply: ShardReply): void;
}

interface Pending {
  /** Of the callee when the call was made; undefined when nobody was there. */
  callee: SimulatedProcess | undefined;
  settle(reply: ShardReply): void;
  break(delayMs: number, reason: string): void;
}

export class CallNetwork {
  readonly #network: Network;
  readonly #chance: Chance;
  readonly #observer: CallObserver;
  readonly #handlers = new Map<SimulatedProcess, ShardCallHandler>();

  constructor(network: Network, options: { chance: Chance; observer: CallObserver }) {
    this.#network = network;
    this.#chance = options.chance;
    this.#observer = options.observer;
  }

  /** What a node serves, as long as its process lives. */
  serve(process: SimulatedProcess, handler: ShardCallHandler): void {
    this.#handlers.set(process, handler);
    process.onEnd(() => this.#handlers.delete(process));
  }

  /** The port of one gateway process. */
  port(address: string, process: SimulatedProcess): ShardCallPort {
    const caller = new Caller(address, {
      process,
      network: this.#network,
      chance: this.#chance,
      answer: (nodeId, callee, request) =>
        this.#answer(nodeId, { callee, caller: process, address, ...request }),
    });
    return { call: (to, call, signal) => caller.call(to, call, signal) };
  }

  /** Runs at the callee: evaluates, and sends the reply. */
  #answer(
    nodeId: NodeId,
    request: {
      callee: SimulatedProcess;
      caller: SimulatedProcess;
      address: string;
      call: ShardCall | undefined;
      take(answer: Answer | undefined): void;
    },
  ): void {
    const { callee, caller, address, call, take } = request;
    const handler = this.#handlers.get(callee);
    const reply = (payload: Answer) => {
      const isUnderWay = this.#network.send({
        from: nodeId,
        process: callee,
        to: address,
        payload,
        name: `reply ${payload.reply?.kind ?? 'ticket'}`,
        deliver: (arrived, receiver) => {
          if (receiver === caller) take(arrived as Answer);
        },
      });
      if (!isUnderWay) take(undefined);
    };
    if (handler === undefined) {
      take(undefined);
      return;
    }
    if (call === undefined) {
      reply({ ticket: handler.ticket() });
      return;
    }
    this.#observer.onCall(nodeId, call);
    handler
      .handle(call)
      .then((answer) => {
        // A process that has ended in this step has still answered nobody.
        if (!callee.isAlive) return;
        this.#observer.onReply(nodeId, call, answer);
        reply({ reply: answer, ticket: handler.ticket() });
      })
      .catch((error: unknown) => {
        // A process that ends sends nothing more, well or not.
        if (callee.isAlive) callee.host.scheduler.fail(error);
      });
  }
}

/** What comes back: the reply, if it was a call, and where the callee's clock stands. */
interface Answer {
  reply?: ShardReply;
  ticket: Ticket;
}

type Ask = (
  nodeId: NodeId,
  callee: SimulatedProcess,
  request: { call: ShardCall | undefined; take(answer: Answer | undefined): void },
) => void;

class Caller {
  readonly #address: string;
  readonly #process: SimulatedProcess;
  readonly #network: Network;
  readonly #chance: Chance;
  readonly #answer: Ask;
  /** By the process that gave them: another one at the same address is another connection. */
  readonly #tickets = new Map<SimulatedProcess, Ticket>();
  readonly #pending = new Set<Pending>();
  readonly #watched = new Set<SimulatedProcess>();

  constructor(
    address: string,
    options: { process: SimulatedProcess; network: Network; chance: Chance; answer: Ask },
  ) {
    this.#address = address;
    this.#process = options.process;
    this.#network = options.network;
    this.#chance = options.chance;
    this.#answer = options.answer;
  }

  call(to: NodeId, call: Omit<ShardCall, 'ticket'>, signal: AbortSignal): Promise<ShardReply> {
    return new Promise((resolve, reject) => {
      const pending = this.#open(to, { resolve, reject, signal });
      const { callee } = pending;
      const ticket = callee && this.#tickets.get(callee);
      if (ticket !== undefined) return this.#send(to, pending, { ...call, ticket });
      // Nothing is sent for a caller that has given up meanwhile, or was answered that nothing was sent.
      this.#send(to, pending, undefined, (first) => {
        if (this.#pending.has(pending)) this.#send(to, pending, { ...call, ticket: first });
      });
    });
  }

  #open(
    to: NodeId,
    wait: { resolve(reply: ShardReply): void; reject(error: Error): void; signal: AbortSignal },
  ): Pending {
    const callee = this.#network.member(to);
    let isSettled = false;
    const settle = (end: () => void) => {
      if (isSettled) return;
      isSettled = true;
      this.#pending.delete(pending);
      wait.signal.removeEventListener('abort', onAbort);
      end();
    };
    const onAbort = () => settle(() => wait.reject(new Error('the call was given up')));
    const pending: Pending = {
      callee,
      settle: (reply) => settle(() => wait.resolve(reply)),
      break: (delayMs, reason) => {
        this.#process.schedule(delayMs, `connection to ${to} breaks`, () =>
          settle(() => wait.reject(new Error(reason))),
        );
      },
    };
    this.#pending.add(pending);
    wait.signal.addEventListener('abort', onAbort, { once: true });
    if (callee === undefined) pending.break(this.#chance.between(1, RESET_MAX_MS), 'nobody listens');
    else this.#watch(callee);
    return pending;
  }

  /** A process that ends takes its connections with it. */
  #watch(callee: SimulatedProcess): void {
    if (this.#watched.has(callee)) return;
    this.#watched.add(callee);
    callee.onEnd(() => {
      this.#tickets.delete(callee);
      if (!this.#process.isAlive) return;
      for (const pending of this.#pending)
        if (pending.callee === callee)
          pending.break(this.#chance.between(1, RESET_MAX_MS), 'the connection broke');
    });
  }

  /** Without a call: asks for a ticket. */
  #send(to: NodeId, pending: Pending, call: ShardCall | undefined, then?: (ticket: Ticket) => void): void {
    const { callee } = pending;
    if (callee === undefined) return;
    const isBroken = () =>
      pending.break(this.#chance.between(BROKEN_MIN_MS, BROKEN_MAX_MS), 'the connection broke');
    const take = (answer: Answer | undefined) => {
      if (!this.#process.isAlive) return;
      if (answer === undefined) return isBroken();
      this.#tickets.set(callee, answer.ticket);
      if (answer.reply !== undefined) pending.settle(answer.reply);
      else then?.(answer.ticket);
    };
    const isUnderWay = this.#network.send({
      from: this.#address,
      process: this.#process,
      to,
      payload: call ?? null,
      name: call === undefined ? 'asks for a ticket' : `calls ${call.name}`,
      isOnce: true,
      deliver: (payload, receiver) => {
        // Of a connection that the earlier process had.
        if (receiver !== callee) return;
        this.#answer(to, callee, { call: (payload ?? undefined) as ShardCall | undefined, take });
      },
    });
    if (!isUnderWay) isBroken();
  }
}

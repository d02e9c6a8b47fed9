// The network between simulated processes: it delays, loses, doubles and reorders messages, is cut between hosts in both
// directions or in one, and may deliver what it has held back for longer than anyone waits. Only plain data crosses:
// messages travel as packed bytes. The calls of gateways are in calls.ts.
import { crc32 } from 'node:zlib';
import { packPlain, unpackPlain } from '../../src/base/record-codec.ts';
import type { NodeId, PeerPort, ReplicaMessage } from '../../src/ports/replication.ts';
import type { Chance } from './chance.ts';
import { Changeable } from './changes.ts';
import type { SimulatedProcess } from './clock.ts';
import type { Counts } from './counts.ts';
import type { Scheduler } from './scheduler.ts';

/** How the network behaves at the moment; shares are of messages. */
export interface Weather {
  delayMinMs: number;
  delayMaxMs: number;
  lostShare: number;
  doubledShare: number;
  /** Overtaken by what was sent after it. */
  reorderedShare: number;
  /** Held back for longer than 10 L. */
  oldShare: number;
}

export const FAIR_WEATHER: Weather = {
  delayMinMs: 0.1,
  delayMaxMs: 1.5,
  lostShare: 0,
  doubledShare: 0,
  reorderedShare: 0.01,
  oldShare: 0,
};

const REORDERED_MAX_MS = 30;
const OLD_MIN_MS = 30_000;
const OLD_MAX_MS = 45_000;

/** Sees what replicas say to one another as it arrives; what it returns arrives in its place. */
export type Watcher = (from: NodeId, to: NodeId, message: ReplicaMessage) => ReplicaMessage | undefined;

export type Deliver = (payload: unknown, to: SimulatedProcess) => void;
/** At the receiver's machine: what its process will find there. */
type Arrive = (payload: unknown) => unknown;

/** A message, who sends it, and what becomes of it. */
interface Sending {
  from: string;
  process: SimulatedProcess;
  to: string;
  payload: unknown;
  name: string;
  /** It travels on a stream, which brings nothing twice. */
  isOnce?: boolean;
  deliver: Deliver;
  arrive?: Arrive;
}

export class Network {
  readonly weather = new Changeable<Weather>(FAIR_WEATHER);
  #lastOldAtMs = 0;
  readonly #scheduler: Scheduler;
  readonly #chance: Chance;
  readonly #counts: Counts;
  /** The process that runs under an address now. */
  readonly #members = new Map<string, SimulatedProcess>();
  readonly #listeners = new Map<SimulatedProcess, (from: NodeId, message: ReplicaMessage) => void>();
  readonly #watchers = new Set<Watcher>();
  /** `from>to` of hosts -> how many cuts hold it. */
  readonly #cuts = new Map<string, number>();
  /** `from>to` of addresses -> when the newest message that keeps its turn arrives. */
  readonly #lastArrivalMs = new Map<string, number>();

  constructor(scheduler: Scheduler, options: { chance: Chance; counts: Counts }) {
    this.#scheduler = scheduler;
    this.#chance = options.chance;
    this.#counts = options.counts;
  }

  /** From now on `address` is this process. What was sent to an earlier one arrives here, if it is late enough. */
  join(address: string, process: SimulatedProcess): void {
    this.#members.set(address, process);
    process.onEnd(() => {
      this.#listeners.delete(process);
      if (this.#members.get(address) === process) this.#members.delete(address);
    });
  }

  member(address: string): SimulatedProcess | undefined {
    return this.#members.get(address);
  }

  /** Nothing gets from one host to the other until the returned function is called. */
  cut(from: string, to: string): () => void {
    const link = `${from}>${to}`;
    this.#cuts.set(link, (this.#cuts.get(link) ?? 0) + 1);
    let isHealed = false;
    return () => {
      if (isHealed) return;
      isHealed = true;
      const left = (this.#cuts.get(link) ?? 1) - 1;
      if (left > 0) this.#cuts.set(link, left);
      else this.#cuts.delete(link);
    };
  }

  isCut(from: string, to: string): boolean {
    return this.#cuts.size > 0 && this.#cuts.has(`${from}>${to}`);
  }

  /** Until the returned function is called. */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  #watched(from: NodeId, to: NodeId, message: ReplicaMessage): ReplicaMessage {
    let arriving = message;
    for (const see of [...this.#watchers]) arriving = see(from, to, arriving) ?? arriving;
    return arriving;
  }

  /** Between replicas: any message may be lost without a word. */
  peer(address: NodeId, process: SimulatedProcess): PeerPort {
    return {
      send: (to, message) => {
        const deliver: Deliver = (payload, receiver) =>
          this.#listeners.get(receiver)?.(address, payload as ReplicaMessage);
        const arrive: Arrive = (payload) => this.#watched(address, to, payload as ReplicaMessage);
        this.send({ from: address, process, to, payload: message, name: message.kind, deliver, arrive });
      },
      listen: (onMessage) => {
        if (process.isAlive) this.#listeners.set(process, onMessage);
      },
    };
  }

  /**
   * Sends `payload` from a process to the process that is at `to` when it arrives. Returns whether at least one copy is
   * under way: only the world knows what became of it.
   */
  send(message: Sending): boolean {
    const { from, process, to } = message;
    if (!process.isAlive) return false;
    const bytes = packPlain(message.payload);
    const { lostShare, doubledShare } = this.weather.now;
    const chance = this.#chance;
    if (chance.happens(lostShare)) {
      this.#counts.add('message lost');
      return false;
    }
    const isUnderWay = this.#sendCopy(message, { bytes, link: `${from}>${to}` });
    if (chance.happens(doubledShare) && !message.isOnce) {
      this.#counts.add('message doubled');
      this.#sendCopy(message, { bytes, link: `${from}>${to}` });
    }
    return isUnderWay;
  }

  #sendCopy(message: Sending, { bytes, link }: { bytes: Uint8Array; link: string }): boolean {
    const { process, from, to, name, deliver, arrive } = message;
    const fromHost = process.host.name;
    // Of where it is going, also when nobody is there at the moment.
    const toHost = this.#members.get(to)?.host.name ?? to;
    if (this.isCut(fromHost, toHost)) return false;
    this.#scheduler.after(this.#delayMs(link), {
      name: `net ${from}>${to} ${name} ${crc32(bytes).toString(16)}`,
      run: () => {
        const receiver = this.#members.get(to);
        if (receiver === undefined || this.isCut(fromHost, receiver.host.name)) return;
        const payload = unpackPlain(bytes);
        const found = arrive === undefined ? payload : arrive(payload);
        const receive = () => deliver(found, receiver);
        // A stopped process finds it when it goes on.
        if (receiver.isStopped) receiver.schedule(0, `hears ${name} of ${from}`, receive);
        else receive();
      },
    });
    return true;
  }

  /** When the last of the messages arrives that were held back. */
  get lastOldAtMs(): number {
    return this.#lastOldAtMs;
  }

  /** A message that somebody else holds back, for so long from now. */
  noteHeldBack(heldMs: number): void {
    this.#lastOldAtMs = Math.max(this.#lastOldAtMs, this.#scheduler.nowMs + heldMs);
  }

  #delayMs(link: string): number {
    const { delayMinMs, delayMaxMs, reorderedShare, oldShare } = this.weather.now;
    const chance = this.#chance;
    const delayMs = chance.between(delayMinMs, delayMaxMs);
    if (chance.happens(oldShare)) {
      this.#counts.add('message old');
      const heldMs = chance.between(OLD_MIN_MS, OLD_MAX_MS);
      this.noteHeldBack(heldMs);
      return heldMs;
    }
    if (chance.happens(reorderedShare)) {
      this.#counts.add('message reordered');
      return delayMs + chance.between(0, REORDERED_MAX_MS);
    }
    const { nowMs } = this.#scheduler;
    const arrivalMs = Math.max(nowMs + delayMs, this.#lastArrivalMs.get(link) ?? 0);
    this.#lastArrivalMs.set(link, arrivalMs);
    return arrivalMs - nowMs;
  }
}

// One connection of the load on a cluster (cluster-load.ts): it owns the keys of one bucket, so that it knows what they
// hold, and does to them whatever chance says. A request without an answer leaves its key open (ledger.ts): nobody writes
// to it any more, and what is read of it must be one of its outcomes.
import { must } from '../../../src/base/assert.ts';
import { childrenOf, parseXml, textOf } from '../../../src/base/xml/parse-xml.ts';
import { seededBytes } from '../clients/tree.ts';
import type { GatewayClients, Wanted } from './gateway-clients.ts';
import { type Digest, digestOf, type Ledger } from './ledger.ts';

const KiB = 1024;
const SMALL_BYTES_MAX = 16 * KiB;
const CHUNKED_BYTES = { min: 70 * KiB, max: 300 * KiB };
const RACERS = 4;
/** Of the newest keys, for a list while all goes on. */
const RECENT_COUNT = 500;

const COUNTER_PREFIX = 'counter-';

/** What all workers have in common. */
export interface Work {
  readonly clients: GatewayClients;
  readonly ledger: Ledger;
  /** Wrong answers. */
  readonly problems: string[];
  /** Gateways to go to. */
  used: readonly number[];
  onAcknowledged(): void;
}

/** An object that holds a number, which its worker raises. */
export interface Counter {
  readonly path: string;
  begun: number;
  acknowledged: number;
}

export class ClusterWorker {
  /** Its acknowledged writes. */
  readonly acknowledged: { begunMs: number; endedMs: number }[] = [];
  readonly bucket: string;
  readonly #work: Work;
  readonly #random: () => number;
  readonly #keys: string[] = [];
  #keyCount = 0;
  #counterCount = 0;
  #passingCount = 0;
  /** It stays with a gateway while all is well. */
  #gateway: number;
  #counter: Counter;

  constructor(work: Work, options: { bucket: string; random: () => number; gateway: number }) {
    this.#work = work;
    this.bucket = options.bucket;
    this.#random = options.random;
    this.#gateway = options.gateway;
    this.#counter = this.#newCounter();
  }

  get counter(): Readonly<Counter> {
    return this.#counter;
  }

  /** One thing, to its end. */
  step(): Promise<void> {
    const chance = this.#random();
    if (chance < 0.35) return this.#put(this.#newKey(), SMALL_BYTES_MAX * this.#random());
    if (chance < 0.45) return this.#putChunked();
    if (chance < 0.55) return this.#overwrite();
    if (chance < 0.62) return this.#copy();
    if (chance < 0.7) return this.#remove();
    if (chance < 0.84) return this.#readBack();
    if (chance < 0.92) return this.#count();
    if (chance < 0.94) return this.#listRecent();
    if (chance < 0.95) return this.#passBucket();
    return this.#race();
  }

  /** Lists every page behind `after`, and compares. */
  async checkList(after = ''): Promise<string[]> {
    const { clients, ledger } = this.#work;
    const prefix = `/${this.bucket}/`;
    const found = new Set<string>();
    for (let last = after.slice(prefix.length); ; ) {
      const path = `/${this.bucket}?list-type=2&start-after=${encodeURIComponent(last)}`;
      const answer = await clients.send(this.#nextGateway(), { method: 'GET', path });
      if (answer === undefined) return [];
      if (answer.status !== 200) return [`GET ${path}: ${answer.status} ${answer.body}`];
      const root = parseXml(answer.body, { depthMax: 16 });
      for (const entry of childrenOf(root, 'Contents')) {
        last = textOf(entry, 'Key') ?? '';
        found.add(prefix + last);
      }
      if (textOf(root, 'IsTruncated') !== 'true') break;
    }
    const { certain, possible } = ledger.listed(prefix, after);
    const missing = [...certain].filter((path) => !found.has(path));
    const excess = [...found].filter((path) => !certain.has(path) && !possible.has(path));
    return [
      ...missing.map((path) => `${path} is not listed`),
      ...excess.map((path) => `${path} is listed, and should not be there`),
    ];
  }

  #nextGateway(turn = 0): number {
    const { used } = this.#work;
    return must(used[(this.#gateway + turn) % used.length], 'a gateway to go to');
  }

  #newKey(): string {
    return `/${this.bucket}/${String(this.#keyCount++).padStart(6, '0')}`;
  }

  /** One of those that may be written to. */
  #someKey(): string | undefined {
    const path = this.#keys[Math.floor(this.#random() * this.#keys.length)];
    return path !== undefined && this.#work.ledger.isSettled(path) ? path : undefined;
  }

  /** Notes what came of it. True when it was acknowledged. */
  async #write(wanted: Wanted, digest: Digest): Promise<boolean> {
    const { clients, ledger, problems } = this.#work;
    const begunMs = performance.now();
    const answer = await clients.send(this.#nextGateway(), wanted);
    if (answer === undefined) {
      ledger.leaveOpen(wanted.path, digest);
      // Another may do better.
      this.#gateway++;
    } else if (answer.status > 299 || answer.body.includes('<Error>'))
      problems.push(`${wanted.method} ${wanted.path}: ${answer.status} ${answer.body}`);
    else {
      ledger.acknowledge(wanted.path, digest);
      this.#note(begunMs);
      return true;
    }
    return false;
  }

  #note(begunMs: number): void {
    this.acknowledged.push({ begunMs, endedMs: performance.now() });
    this.#work.onAcknowledged();
  }

  async #put(path: string, sizeBytes: number): Promise<void> {
    const body = seededBytes(`${path} ${this.#random()}`, Math.ceil(sizeBytes));
    if (await this.#write({ method: 'PUT', path, body }, digestOf(body))) this.#keys.push(path);
  }

  #putChunked(): Promise<void> {
    const { min, max } = CHUNKED_BYTES;
    return this.#put(this.#newKey(), min + (max - min) * this.#random());
  }

  async #overwrite(): Promise<void> {
    const path = this.#someKey();
    if (path !== undefined) await this.#put(path, SMALL_BYTES_MAX * this.#random());
  }

  async #remove(): Promise<void> {
    const path = this.#someKey();
    if (path !== undefined) await this.#write({ method: 'DELETE', path }, null);
  }

  async #copy(): Promise<void> {
    const source = this.#someKey();
    const digest = source === undefined ? undefined : await this.#read(source, 0);
    if (source === undefined || digest === undefined || digest === null) return;
    const path = this.#newKey();
    const headers = { 'x-amz-copy-source': source };
    if (await this.#write({ method: 'PUT', path, headers }, digest)) this.#keys.push(path);
  }

  async #readBack(): Promise<void> {
    const path = this.#keys[Math.floor(this.#random() * this.#keys.length)];
    if (path !== undefined) await this.#read(path, Math.floor(this.#random() * this.#work.used.length));
  }

  /** Checks it, too. undefined: it could not be had. */
  async #read(path: string, turn: number): Promise<Digest | undefined> {
    const { clients, ledger, problems } = this.#work;
    const answer = await clients.send(this.#nextGateway(turn), { method: 'GET', path });
    if (answer === undefined) return undefined;
    if (answer.status !== 200 && answer.status !== 404) {
      problems.push(`GET ${path}: ${answer.status} ${answer.body}`);
      return undefined;
    }
    const found = answer.status === 404 ? null : digestOf(answer.body);
    const problem = ledger.check(path, found);
    if (problem !== undefined) problems.push(problem);
    return found;
  }

  async #listRecent(): Promise<void> {
    const from = Math.max(0, this.#keyCount - RECENT_COUNT);
    const after = `/${this.bucket}/${String(from).padStart(6, '0')}`;
    this.#work.problems.push(...(await this.checkList(after)));
  }

  /** A bucket that comes and goes: what the system shard does. */
  async #passBucket(): Promise<void> {
    const { clients, problems } = this.#work;
    const path = `/${this.bucket}-passing-${this.#passingCount++}`;
    const begunMs = performance.now();
    for (const [method, status] of [
      ['PUT', 200],
      ['HEAD', 200],
      ['DELETE', 204],
      ['HEAD', 404],
    ] as const) {
      const answer = await clients.send(this.#nextGateway(), { method, path });
      // What is unknown of it does no harm: its name is used once.
      if (answer === undefined) return void this.#gateway++;
      if (answer.status !== status) problems.push(`${method} ${path}: ${answer.status} ${answer.body}`);
    }
    this.#note(begunMs);
  }

  #newCounter(): Counter {
    return { path: `/${this.bucket}/${COUNTER_PREFIX}${this.#counterCount++}`, begun: 0, acknowledged: 0 };
  }

  async #count(): Promise<void> {
    const counter = this.#counter;
    counter.begun++;
    const { path, begun } = counter;
    const body = Buffer.from(String(begun));
    if (await this.#write({ method: 'PUT', path, body }, digestOf(body))) counter.acknowledged = begun;
    // What may still happen to this one must not take back what is acknowledged later.
    else this.#counter = this.#newCounter();
  }

  /** Several create one key, then replace what won; each time one alone may succeed. */
  async #race(): Promise<void> {
    const path = this.#newKey();
    const etag = await this.#runRace(path, { 'if-none-match': '*' });
    if (etag !== undefined) await this.#runRace(path, { 'if-match': etag });
  }

  /** The ETag of the winner; undefined when it is not known who that is. */
  async #runRace(path: string, headers: Record<string, string>): Promise<string | undefined> {
    const { clients, ledger, problems } = this.#work;
    const begunMs = performance.now();
    const runs = await Promise.all(
      Array.from({ length: RACERS }, async (_, racer) => {
        // No two alike: one ETag must not stand for two versions.
        const body = seededBytes(`${path} ${JSON.stringify(headers)} ${racer}`, KiB * (1 + racer));
        const answer = await clients.send(this.#nextGateway(racer), { method: 'PUT', path, body, headers });
        return { digest: digestOf(body), answer };
      }),
    );
    const told = `race for ${path} by ${JSON.stringify(headers)}: ${runs.map(({ answer }) => answer?.status).join(' ')}`;
    const winners = runs.filter(({ answer }) => answer?.status === 200);
    const open = runs.filter(({ answer }) => answer === undefined);
    const losers = runs.filter(({ answer }) => answer?.status === 412 || answer?.status === 409);
    if (winners.length + open.length + losers.length < RACERS || winners.length > 1) problems.push(told);
    if (winners.length + open.length === 0) problems.push(told);
    const [winner] = winners;
    if (winner === undefined) {
      for (const { digest } of open) ledger.leaveOpen(path, digest);
      return undefined;
    }
    // Of those without an answer none can have won beside it.
    ledger.acknowledge(path, winner.digest);
    this.#note(begunMs);
    return winner.answer?.headers.etag;
  }
}

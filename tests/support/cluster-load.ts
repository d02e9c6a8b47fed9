// A continuous load on the gateways of a cluster that goes on through faults, and checks while it runs. Each worker owns
// the keys of one bucket, so that it knows what they hold: it puts small and chunked objects, overwrites, copies, deletes,
// lists and reads back, through one gateway or another; and now and then several ask at once to create one key, or to
// replace one version, of whom one alone may win. A request without a definite answer leaves its key open (ledger.ts):
// nobody writes to it any more, and what is read of it must be one of its outcomes.
// Not here: the faults (tests/cluster/faults.test.ts).
import { Agent } from 'node:http';
import { childrenOf, parseXml, textOf } from '../../src/lib/xml.ts';
import { type Digest, digestOf, Ledger } from './ledger.ts';
import { type Access, type RawAnswer, type RawRequest, send } from './raw-s3.ts';
import { seededBytes, seededNumbers } from './tree.ts';

const KiB = 1024;
const SMALL_BYTES_MAX = 16 * KiB;
const CHUNKED_BYTES = { min: 70 * KiB, max: 300 * KiB };
const RACERS = 4;
/** A client gives up. Longer than a gateway takes to say 503. */
const PATIENCE_MS = 40_000;
const READERS = 8;
/** What a gateway says when it does not know, or may not: no promise, and no wrong answer. */
const UNDECIDED = [500, 503];

export interface ClusterLoad {
  readonly ledger: Ledger;
  /** Wrong answers so far. */
  readonly problems: readonly string[];
  /** Requests that ended without a definite answer so far, by what came instead: a status, or how the connection ended. */
  readonly undecided: ReadonlyMap<string, number>;
  readonly raceCount: number;
  /** Makes the buckets. */
  prepare(): Promise<void>;
  start(): void;
  /** Resolves when nothing is under way. */
  stop(): Promise<void>;
  /**
   * Resolves with the time from `sinceMs` (performance.now) until every worker has had a write acknowledged that it
   * began later. Rejects when that takes longer than `withinMs`.
   */
  back(sinceMs: number, withinMs: number): Promise<number>;
  /** The longest that a worker has gone without an acknowledged write since `sinceMs`, ms. */
  longestPauseMs(sinceMs: number): number;
  /** Reads every key and every list, by every gateway in turn; resolves with what is wrong. The load must not run. */
  verify(): Promise<string[]>;
}

interface Worker {
  readonly bucket: string;
  readonly random: () => number;
  /** When its acknowledged writes began and ended. */
  readonly acknowledged: { begunMs: number; endedMs: number }[];
  gateway: number;
  keyCount: number;
  keys: string[];
}

export function createClusterLoad(options: {
  gateways: readonly Access[];
  seed: string;
  workerCount: number;
}): ClusterLoad {
  return new Load(options);
}

class Load implements ClusterLoad {
  readonly ledger = new Ledger();
  readonly problems: string[] = [];
  readonly undecided = new Map<string, number>();
  raceCount = 0;
  readonly #gateways: readonly Access[];
  readonly #workers: Worker[];
  #agents: Agent[] = [];
  #running: Promise<void>[] = [];
  #isStopping = false;
  #onAcknowledged: () => void = () => {};

  constructor({
    gateways,
    seed,
    workerCount,
  }: {
    gateways: readonly Access[];
    seed: string;
    workerCount: number;
  }) {
    this.#gateways = gateways;
    this.#workers = Array.from({ length: workerCount }, (_, index) => ({
      bucket: `load-${index}`,
      random: seededNumbers(`cluster:${seed}:${index}`),
      ...{ acknowledged: [], gateway: index, keyCount: 0, keys: [] },
    }));
  }

  async prepare(): Promise<void> {
    this.#openAgents();
    for (const { bucket } of this.#workers) {
      const answer = await this.#send(0, { method: 'PUT', path: `/${bucket}` });
      if (answer?.status !== 200) throw new Error(`${bucket} is not made: ${answer?.status} ${answer?.body}`);
    }
  }

  start(): void {
    this.#isStopping = false;
    this.#openAgents();
    this.#running = this.#workers.map((worker) => this.#work(worker));
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#running);
    for (const agent of this.#agents) agent.destroy();
  }

  async back(sinceMs: number, withinMs: number): Promise<number> {
    const endMs = sinceMs + withinMs;
    for (;;) {
      const firsts = this.#workers.map(
        ({ acknowledged }) => acknowledged.find(({ begunMs }) => begunMs >= sinceMs)?.endedMs,
      );
      if (firsts.every((ms) => ms !== undefined)) return Math.max(...firsts) - sinceMs;
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) {
        const waiting = this.#workers.filter((_, index) => firsts[index] === undefined);
        throw new Error(`no write to ${waiting.map(({ bucket }) => bucket).join(', ')} in ${withinMs} ms`);
      }
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#onAcknowledged = () => resolve();
        timer = setTimeout(resolve, leftMs);
      });
      clearTimeout(timer);
    }
  }

  longestPauseMs(sinceMs: number): number {
    const nowMs = performance.now();
    const pauses = this.#workers.map(({ acknowledged }) => {
      const ends = acknowledged.map(({ endedMs }) => endedMs).filter((ms) => ms >= sinceMs);
      return Math.max(...[...ends, nowMs].map((ms, index) => ms - (ends[index - 1] ?? sinceMs)));
    });
    return Math.max(...pauses);
  }

  async verify(): Promise<string[]> {
    this.#openAgents();
    const problems: string[] = [];
    const paths = this.ledger.paths.values();
    const read = async () => {
      for (const path of paths) {
        const problem = await this.#untilRead(path);
        if (problem !== undefined) problems.push(problem);
      }
    };
    await Promise.all(Array.from({ length: READERS }, read));
    for (const { bucket } of this.#workers) problems.push(...(await this.#checkList(bucket, '')));
    for (const agent of this.#agents) agent.destroy();
    return problems;
  }

  #openAgents(): void {
    for (const agent of this.#agents) agent.destroy();
    this.#agents = this.#gateways.map(() => new Agent({ keepAlive: true }));
  }

  /** undefined: no answer, or none that says what came of it. */
  async #send(gateway: number, wanted: Omit<RawRequest, 'agent'>): Promise<RawAnswer | undefined> {
    const index = gateway % this.#gateways.length;
    const [access, agent] = [this.#gateways[index], this.#agents[index]];
    if (access === undefined || agent === undefined) throw new Error('the load has not been started');
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), PATIENCE_MS);
    });
    try {
      const answer = await Promise.race([send(access, { ...wanted, agent }), late]);
      if (answer !== undefined && !UNDECIDED.includes(answer.status)) return answer;
      this.#countUndecided(String(answer?.status ?? 'late'));
    } catch (error) {
      this.#countUndecided((error as NodeJS.ErrnoException).code ?? 'cut');
    } finally {
      clearTimeout(timer);
    }
    return undefined;
  }

  #countUndecided(kind: string): void {
    this.undecided.set(kind, (this.undecided.get(kind) ?? 0) + 1);
  }

  async #work(worker: Worker): Promise<void> {
    while (!this.#isStopping) {
      const chance = worker.random();
      if (chance < 0.35) await this.#put(worker, this.#newKey(worker), SMALL_BYTES_MAX * worker.random());
      else if (chance < 0.45) await this.#putChunked(worker);
      else if (chance < 0.55) await this.#overwrite(worker);
      else if (chance < 0.62) await this.#copy(worker);
      else if (chance < 0.7) await this.#remove(worker);
      else if (chance < 0.92) await this.#readBack(worker);
      else if (chance < 0.94) this.problems.push(...(await this.#checkRecent(worker)));
      else await this.#race(worker);
    }
  }

  #newKey(worker: Worker): string {
    return `/${worker.bucket}/${String(worker.keyCount++).padStart(6, '0')}`;
  }

  /** One of those that may be written to. */
  #someKey(worker: Worker): string | undefined {
    const { keys, random } = worker;
    const path = keys[Math.floor(random() * keys.length)];
    return path !== undefined && this.ledger.isSettled(path) ? path : undefined;
  }

  /** Sends a write; notes what came of it. True when it was acknowledged. */
  async #write(
    worker: Worker,
    wanted: Omit<RawRequest, 'agent'>,
    { path, digest }: { path: string; digest: Digest },
  ): Promise<boolean> {
    const begunMs = performance.now();
    const answer = await this.#send(worker.gateway, wanted);
    if (answer === undefined) {
      this.ledger.leaveOpen(path, digest);
      // Another may do better.
      worker.gateway++;
      return false;
    }
    if (answer.status > 299) {
      this.problems.push(`${wanted.method} ${path}: ${answer.status} ${answer.body}`);
      return false;
    }
    this.ledger.acknowledge(path, digest);
    this.#noteWrite(worker, begunMs);
    return true;
  }

  #noteWrite(worker: Worker, begunMs: number): void {
    worker.acknowledged.push({ begunMs, endedMs: performance.now() });
    this.#onAcknowledged();
  }

  async #put(worker: Worker, path: string, sizeBytes: number): Promise<void> {
    const body = seededBytes(
      `${path} ${this.ledger.acknowledgedCount} ${worker.random()}`,
      Math.ceil(sizeBytes),
    );
    if (await this.#write(worker, { method: 'PUT', path, body }, { path, digest: digestOf(body) }))
      worker.keys.push(path);
  }

  #putChunked(worker: Worker): Promise<void> {
    const { min, max } = CHUNKED_BYTES;
    return this.#put(worker, this.#newKey(worker), min + (max - min) * worker.random());
  }

  async #overwrite(worker: Worker): Promise<void> {
    const path = this.#someKey(worker);
    if (path !== undefined) await this.#put(worker, path, SMALL_BYTES_MAX * worker.random());
  }

  async #copy(worker: Worker): Promise<void> {
    const source = this.#someKey(worker);
    if (source === undefined) return;
    const found = await this.#read(worker.gateway, source);
    if (found === undefined) return;
    const problem = this.ledger.check(source, found);
    if (problem !== undefined) this.problems.push(problem);
    if (found === null) return;
    const path = this.#newKey(worker);
    const wanted = { method: 'PUT', path, headers: { 'x-amz-copy-source': source } };
    if (await this.#write(worker, wanted, { path, digest: found })) worker.keys.push(path);
  }

  async #remove(worker: Worker): Promise<void> {
    const path = this.#someKey(worker);
    if (path !== undefined) await this.#write(worker, { method: 'DELETE', path }, { path, digest: null });
  }

  async #readBack(worker: Worker): Promise<void> {
    const path = worker.keys[Math.floor(worker.random() * worker.keys.length)];
    if (path === undefined) return;
    const gateway = Math.floor(worker.random() * this.#gateways.length);
    const found = await this.#read(gateway, path);
    const problem = found === undefined ? undefined : this.ledger.check(path, found);
    if (problem !== undefined) this.problems.push(problem);
  }

  /** undefined: it could not be had. */
  async #read(gateway: number, path: string): Promise<Digest | undefined> {
    const answer = await this.#send(gateway, { method: 'GET', path });
    if (answer === undefined) return undefined;
    if (answer.status === 404) return null;
    if (answer.status === 200) return digestOf(answer.body);
    this.problems.push(`GET ${path}: ${answer.status} ${answer.body}`);
    return undefined;
  }

  /** Asks every gateway in turn for as long as it takes: nothing is at fault any more. */
  async #untilRead(path: string): Promise<string | undefined> {
    const endMs = performance.now() + PATIENCE_MS;
    for (let gateway = path.length; performance.now() < endMs; gateway++) {
      const found = await this.#read(gateway, path);
      if (found !== undefined) return this.ledger.check(path, found);
    }
    return `${path} cannot be read`;
  }

  /** The newest keys of a worker, which a page shows. */
  #checkRecent(worker: Worker): Promise<string[]> {
    const from = Math.max(0, worker.keyCount - 500);
    return this.#checkList(worker.bucket, `/${worker.bucket}/${String(from).padStart(6, '0')}`);
  }

  /** Every page from `after` on, exclusively. */
  async #checkList(bucket: string, after: string): Promise<string[]> {
    const found = new Set<string>();
    for (let last = after.slice(bucket.length + 2); ; ) {
      const path = `/${bucket}?list-type=2&start-after=${encodeURIComponent(last)}`;
      const answer = await this.#send(0, { method: 'GET', path });
      if (answer === undefined) return [];
      if (answer.status !== 200) return [`GET ${path}: ${answer.status} ${answer.body}`];
      const root = parseXml(answer.body, { depthMax: 16 });
      for (const entry of childrenOf(root, 'Contents')) {
        last = textOf(entry, 'Key') ?? '';
        found.add(`/${bucket}/${last}`);
      }
      if (textOf(root, 'IsTruncated') !== 'true') break;
    }
    const { certain, possible } = this.ledger.listed(`/${bucket}/`);
    const missing = [...certain].filter((path) => path > after && !found.has(path));
    const excess = [...found].filter((path) => !certain.has(path) && !possible.has(path));
    return [
      ...missing.map((path) => `${path} is not listed`),
      ...excess.map((path) => `${path} is listed, and should not be there`),
    ];
  }

  /** Several create one key, then replace what won; each time one alone may succeed. */
  async #race(worker: Worker): Promise<void> {
    const path = this.#newKey(worker);
    const etag = await this.#runRace(worker, path, { 'if-none-match': '*' });
    if (etag !== undefined) await this.#runRace(worker, path, { 'if-match': etag });
  }

  /** The ETag of the winner; undefined when it is not known who that is. */
  async #runRace(
    worker: Worker,
    path: string,
    condition: Record<string, string>,
  ): Promise<string | undefined> {
    this.raceCount++;
    const begunMs = performance.now();
    const runs = await Promise.all(
      Array.from({ length: RACERS }, async (_, racer) => {
        const body = seededBytes(`${path} ${JSON.stringify(condition)} ${racer}`, 64 + KiB * racer);
        const wanted = { method: 'PUT', path, body, headers: condition };
        return { digest: digestOf(body), answer: await this.#send(worker.gateway + racer, wanted) };
      }),
    );
    const winners = runs.filter(({ answer }) => answer?.status === 200);
    const open = runs.filter(({ answer }) => answer === undefined);
    for (const { answer } of runs)
      if (answer !== undefined && ![200, 409, 412].includes(answer.status))
        this.problems.push(`race for ${path}: ${answer.status} ${answer.body}`);
    const told = runs.map(({ answer }) => answer?.status).join(' ');
    if (winners.length > 1) this.problems.push(`race for ${path} has several winners: ${told}`);
    if (winners.length === 0 && open.length === 0)
      this.problems.push(`race for ${path} has no winner: ${told}`);
    const [winner] = winners;
    // Of those without an answer none can have won beside it.
    if (winner !== undefined) {
      this.ledger.acknowledge(path, winner.digest);
      this.#noteWrite(worker, begunMs);
      return winner.answer?.headers.etag;
    }
    for (const { digest } of open) this.ledger.leaveOpen(path, digest);
    return undefined;
  }
}

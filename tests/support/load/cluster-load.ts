// A continuous load on the gateways of a cluster that goes on through faults, and checks while it runs: workers
// (cluster-worker.ts) put small and chunked objects, overwrite, copy, delete, list and read back, and have several
// requests race for one key, of which one alone may win. Beside them each gateway is asked for counters that the workers
// raise: it must never answer with less than was acknowledged before it was asked. And where it is asked for a prefix of
// some shards is renamed again and again, through one gateway or another until it is answered (renamed-prefix.ts).
// Not here: the faults (tests/cluster/faults.test.ts).
import { setTimeout as sleep } from 'node:timers/promises';
import { must } from '../../../src/base/assert.ts';
import { SYSTEM_SHARD } from '../../../src/ports/metadata/port.ts';
import { seededNumbers } from '../clients/tree.ts';
import type { Access, RawAnswer, RawRequest } from '../servers/raw-s3.ts';
import { ClusterWorker, type Work } from './cluster-worker.ts';
import { GatewayClients } from './gateway-clients.ts';
import { digestOf, Ledger } from './ledger.ts';
import { WrongAnswer } from './load-changes.ts';
import { isBrokenOff, RenamedPrefix } from './renamed-prefix.ts';

const READERS = 8;
/** Of one who asks a gateway that is gone. */
const PROBE_PAUSE_MS = 100;
/** A rename that is sent again and again; no harm lasts as long. */
const RENAMED_WITHIN_MS = 240_000;
/** Of renames that were answered those that are sent again. */
const REPEATED_SHARE = 0.1;
/** What was acknowledged must be had once no fault is left. */
const READ_WITHIN_MS = 180_000;
/** More than enough to find some of every shard. */
const BUCKETS_MAX = 100;

export interface ClusterLoadOptions {
  gateways: readonly Access[];
  seed: string;
  /** Of each shard that buckets live on: all but the system's. */
  workersPerShard: number;
  /** Of so many shards a prefix is renamed, too. Default: none. */
  renamedPrefixes?: number;
  /** Of a worker between two things that it does. Default: none. */
  restMs?: number;
  /** How far each shard has come: grows by what is written to it. */
  appliedSeqs(): Promise<readonly number[]>;
}

/**
 * Tells in which shard the bucket lives that `write` makes and writes to. Nothing else may write from the first call to the
 * last: each compares with what the call before it has seen, because a look at all shards costs more than the writes.
 */
export function createShardFinder(
  appliedSeqs: ClusterLoadOptions['appliedSeqs'],
): (write: () => Promise<void>) => Promise<number> {
  let before: readonly number[] | undefined;
  return async (write) => {
    const seqs = before ?? (await appliedSeqs());
    await write();
    before = await appliedSeqs();
    // No bucket lives in the system's shard, which names of buckets are written to.
    const grown = before.map((seq, shard) => (shard === SYSTEM_SHARD ? 0 : seq - (seqs[shard] ?? 0)));
    return grown.indexOf(Math.max(...grown));
  };
}

export class ClusterLoad {
  readonly ledger = new Ledger();
  readonly clients: GatewayClients;
  /** Wrong answers so far. */
  readonly problems: string[] = [];
  readonly #options: ClusterLoadOptions;
  readonly #work: Work;
  readonly #workers: ClusterWorker[] = [];
  readonly #prefixes: RenamedPrefix[] = [];
  /** Requests of renames that were sent again. */
  askedAgainCount = 0;
  #gatewayTurn = 0;
  #running: Promise<void>[] = [];
  #isStopping = false;
  /** Read since the load began last. */
  #read = new Set<string>();

  constructor(options: ClusterLoadOptions) {
    this.#options = options;
    this.clients = new GatewayClients(options.gateways);
    this.#work = {
      clients: this.clients,
      ledger: this.ledger,
      problems: this.problems,
      used: options.gateways.map((_, index) => index),
      onAcknowledged() {},
    };
  }

  /** Makes buckets until so many of each shard are there. Nothing else may write meanwhile. */
  async prepare(): Promise<void> {
    const { appliedSeqs, workersPerShard, renamedPrefixes = 0, seed } = this.#options;
    const counts = (await appliedSeqs()).map(() => 0);
    const renamed: string[] = [];
    const isLacking = () =>
      renamed.length < renamedPrefixes ||
      counts.some((count, shard) => shard !== SYSTEM_SHARD && count < workersPerShard);
    const findShard = createShardFinder(appliedSeqs);
    for (let index = 0; isLacking(); index++) {
      if (index === BUCKETS_MAX) throw new Error(`shards of ${BUCKETS_MAX} buckets: ${counts.join(' ')}`);
      const bucket = `load-${index}`;
      const shard = await findShard(() => this.#makeBucket(bucket));
      counts[shard] = (counts[shard] ?? 0) + 1;
      if (counts[shard] === workersPerShard + 1 && renamed.length < renamedPrefixes) renamed.push(bucket);
      if ((counts[shard] ?? 0) > workersPerShard) continue;
      const random = seededNumbers(`cluster:${seed}:${this.#workers.length}`);
      this.#workers.push(new ClusterWorker(this.#work, { bucket, random, gateway: this.#workers.length }));
    }
    for (const bucket of renamed) await this.#makePrefix(bucket);
  }

  start(): void {
    this.#isStopping = false;
    this.#read.clear();
    const probes = this.#options.gateways.map((_, gateway) => this.#probe(gateway));
    const renames = this.#prefixes.map((prefix) => this.#renameOn(prefix));
    this.#running = [...this.#workers.map((worker) => this.#drive(worker)), ...renames, ...probes];
  }

  /** Resolves when nothing is under way. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#running);
  }

  close(): void {
    this.clients.close();
  }

  /** Which gateways, by index, the workers go to from now on; each is still asked for counters. At first all. */
  use(gateways: readonly number[]): void {
    for (const gateway of this.#work.used) if (!gateways.includes(gateway)) this.clients.leave(gateway);
    this.#work.used = gateways;
  }

  /**
   * Resolves with the time from `sinceMs` (performance.now) until every worker has had a write acknowledged that it
   * began later. Rejects when that takes longer than `withinMs`.
   */
  async back(sinceMs: number, withinMs: number): Promise<number> {
    for (;;) {
      const firsts = this.#workers.map(
        ({ acknowledged }) => acknowledged.find(({ begunMs }) => begunMs >= sinceMs)?.endedMs,
      );
      if (firsts.every((ms) => ms !== undefined)) return Math.max(...firsts) - sinceMs;
      const leftMs = sinceMs + withinMs - performance.now();
      if (leftMs <= 0) {
        const waiting = this.#workers.filter((_, index) => firsts[index] === undefined);
        throw new Error(`no write to ${waiting.map(({ bucket }) => bucket).join(', ')} in ${withinMs} ms`);
      }
      const acknowledged = new Promise<void>((resolve) => {
        this.#work.onAcknowledged = resolve;
      });
      const late = new AbortController();
      await Promise.race([acknowledged, sleep(leftMs, undefined, { signal: late.signal }).catch(() => {})]);
      late.abort();
    }
  }

  /** MOVEs of prefixes that were answered. */
  get renamedCount(): number {
    return this.#prefixes.reduce((sum, { renamedCount }) => sum + renamedCount, 0);
  }

  /** The longest that a worker has gone without an acknowledged write since `sinceMs`. */
  longestPauseMs(sinceMs: number): number {
    const nowMs = performance.now();
    const pauses = this.#workers.flatMap(({ acknowledged }) => {
      const ends = acknowledged.map(({ endedMs }) => endedMs).filter((ms) => ms >= sinceMs);
      return [...ends, nowMs].map((ms, index) => ms - (ends[index - 1] ?? sinceMs));
    });
    return pauses.reduce((longest, ms) => Math.max(longest, ms), 0);
  }

  /**
   * Reads every list, and of the keys all, those written to since the last time, or those not read since the load began
   * last, of one gateway or another; resolves with what is wrong. Not while it runs.
   */
  async verify(which: 'all' | 'touched' | 'unread'): Promise<string[]> {
    const problems: string[] = [];
    const touched = this.ledger.takeTouched();
    const all = this.ledger.paths;
    const unread = () => all.filter((path) => !this.#read.has(path));
    const paths = (which === 'touched' ? touched : which === 'unread' ? unread() : all).values();
    const read = async () => {
      for (const path of paths) {
        const problem = await this.#untilRead(path);
        this.#read.add(path);
        if (problem !== undefined) problems.push(problem);
      }
    };
    await Promise.all(Array.from({ length: READERS }, read));
    for (const worker of this.#workers) problems.push(...(await worker.checkList()));
    const compared = this.#prefixes.map((prefix) => prefix.compare(this.#untilAnswered).catch(toProblem));
    problems.push(...(await Promise.all(compared)).flatMap((problem) => problem ?? []));
    return problems;
  }

  async #mustPut(path: string): Promise<void> {
    await this.#once({ method: 'PUT', path });
  }

  /** While no fault is there. A busy machine may let a lease end all the same: what was not answered is sent again. */
  readonly #once = async (wanted: RawRequest): Promise<RawAnswer> => {
    const endMs = performance.now() + READ_WITHIN_MS;
    for (let isRepeated = false; ; isRepeated = true) {
      const answer = await this.clients.send(0, wanted);
      const isMade = answer?.status === 409 && isRepeated;
      if (answer !== undefined && (answer.status < 300 || isMade)) return answer;
      if (answer !== undefined || performance.now() > endMs)
        throw new Error(`${wanted.method} ${wanted.path}: ${answer?.status} ${answer?.body}`);
      await sleep(PROBE_PAUSE_MS);
    }
  };

  /** In a bucket that keeps versions and has nothing else that is listed. */
  async #makePrefix(bucket: string): Promise<void> {
    const enabled = '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>';
    await this.#once({ method: 'PUT', path: `/${bucket}?versioning=`, body: Buffer.from(enabled) });
    const random = seededNumbers(`prefix:${this.#options.seed}:${this.#prefixes.length}`);
    const prefix = new RenamedPrefix({ bucket, name: 'renamed', keepsVersions: true, random });
    await prefix.fill(this.#once);
    this.#prefixes.push(prefix);
  }

  /** One that was found wrong is left as it is. */
  async #renameOn(prefix: RenamedPrefix): Promise<void> {
    try {
      while (!this.#isStopping) {
        await prefix.renameOrRepeat(this.#untilAnswered, REPEATED_SHARE);
        await this.#rest();
      }
    } catch (error) {
      this.problems.push(toProblem(error));
    }
  }

  /** By one gateway or another: what is asked for may be done already. */
  readonly #untilAnswered = async (wanted: RawRequest): Promise<RawAnswer> => {
    const endMs = performance.now() + RENAMED_WITHIN_MS;
    while (performance.now() < endMs) {
      const { used } = this.#work;
      const gateway = must(used[this.#gatewayTurn++ % used.length], 'a gateway to go to');
      const answer = await this.clients.send(gateway, wanted);
      if (answer !== undefined && !isBrokenOff(answer)) return answer;
      this.askedAgainCount++;
      await sleep(PROBE_PAUSE_MS);
    }
    throw new WrongAnswer(`${wanted.method} ${wanted.path}: no answer within ${RENAMED_WITHIN_MS} ms`);
  };

  /** With an object that is written several times, so that its shard shows. */
  async #makeBucket(bucket: string): Promise<void> {
    const written = 8;
    await this.#mustPut(`/${bucket}`);
    for (let index = 0; index < written; index++) {
      await this.#mustPut(`/${bucket}/probe`);
      this.ledger.acknowledge(`/${bucket}/probe`, digestOf(new Uint8Array()));
    }
  }

  async #drive(worker: ClusterWorker): Promise<void> {
    while (!this.#isStopping) {
      await worker.step();
      await this.#rest();
    }
  }

  async #rest(): Promise<void> {
    const { restMs } = this.#options;
    if (restMs !== undefined) await sleep(restMs);
  }

  /** Asks one gateway for counters, whatever befalls it. */
  async #probe(gateway: number): Promise<void> {
    for (let turn = 0; !this.#isStopping; turn++) {
      await this.#rest();
      const { counter } = must(this.#workers[turn % this.#workers.length], 'a worker');
      const least = counter.acknowledged;
      const answer = await this.clients.send(gateway, { method: 'GET', path: counter.path });
      if (answer === undefined) {
        await sleep(PROBE_PAUSE_MS);
        continue;
      }
      const found = answer.status === 200 ? Number(answer.body) : 0;
      const isRight = [200, 404].includes(answer.status) && found >= least && found <= counter.begun;
      const told = `${answer.status} ${String(answer.body).slice(0, 200)}`;
      if (!isRight)
        this.problems.push(
          `${counter.path} by gateway ${gateway}: ${told}, not from ${least} to ${counter.begun}`,
        );
    }
  }

  async #untilRead(path: string): Promise<string | undefined> {
    const endMs = performance.now() + READ_WITHIN_MS;
    for (let turn = path.length; performance.now() < endMs; turn++) {
      const answer = await this.clients.send(turn % this.clients.count, { method: 'GET', path });
      if (answer === undefined) continue;
      if (answer.status !== 200 && answer.status !== 404) return `${path}: ${answer.status} ${answer.body}`;
      return this.ledger.check(path, answer.status === 404 ? null : digestOf(answer.body));
    }
    return `${path} cannot be read`;
  }
}

function toProblem(error: unknown): string {
  if (error instanceof WrongAnswer) return error.message;
  throw error;
}

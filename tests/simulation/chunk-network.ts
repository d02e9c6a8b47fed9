// Chunks between simulated processes: what gateways ask of disks crosses the simulated network as packed bytes, and is
// done at the other end as the server of chunks does it (src/platform/chunk-http): by the newest map that it has heard
// of, with the checksum looked at on both ends. A message that is lost breaks its connection sooner or later.
import { crc32 } from 'node:zlib';
import { CANCELLED } from '../../src/base/async/cancelled.ts';
import { codeOf, Refused } from '../../src/platform/chunk-http/refused.ts';
import type { RefusalCode } from '../../src/platform/chunk-http/wire.ts';
import type { ServedDisks } from '../../src/ports/chunk-server.ts';
import type { ChunkId, ChunkPort, ChunkRead, Fence } from '../../src/ports/chunks.ts';
import type { DiskChunks, DiskDirectory } from '../../src/ports/disk-chunks.ts';
import type { DiskOrders, Order } from '../../src/ports/disk-orders.ts';
import type { DiskId } from '../../src/ports/placement.ts';
import { OldFence, OtherBytes, OwnedHere, StaleMap } from '../../src/types/chunk-refusals.ts';
import { AppError } from '../../src/types/errors.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { chunkName } from '../../src/types/names.ts';
import type { Chance } from './chance.ts';
import type { SimulatedProcess } from './clock.ts';
import type { Network } from './network.ts';

const BROKEN_MIN_MS = 5;
const BROKEN_MAX_MS = 3000;
/** Until a broken connection shows while both ends live. */
const RESET_MAX_MS = 50;

type Question =
  | { kind: 'put'; id: ChunkId; bytes: Uint8Array; checksum: number }
  | { kind: 'get'; id: ChunkId }
  | { kind: 'have'; ids: readonly ChunkId[] }
  | { kind: 'drop'; ids: readonly ChunkId[]; fence: Fence }
  | { kind: 'list'; limit: number; after?: ChunkId }
  | { kind: 'usage' }
  | { kind: 'recount' }
  | { kind: 'inspect'; ids: readonly ChunkId[]; order: Order; readBytes: boolean }
  | { kind: 'pull'; chunk: Parameters<DiskOrders['pull']>[0]; order: Order }
  | { kind: 'dropMisplaced' | 'dropQuarantined'; ids: readonly ChunkId[]; order: Order }
  | ({ kind: 'listQuarantined' | 'listOf' } & Parameters<DiskOrders['listOf']>[0]);

interface Request {
  diskId: DiskId;
  mapVersion: number;
  question: Question;
}

type Answer = { mapVersion: number } & ({ value: unknown } | { refusal: RefusalCode });

export interface ChunkCaller {
  address: string;
  process: SimulatedProcess;
  /** Called with the placement version of each answer. */
  onMapVersion(version: number): void;
}

export class ChunkNetwork {
  readonly #network: Network;
  readonly #chance: Chance;
  readonly #served = new Map<SimulatedProcess, ServedDisks>();
  /** Of orders to drop what is misplaced, on their way to an address. */
  #holdDrop: ((to: string, send: () => void) => void) | undefined;

  constructor(network: Network, chance: Chance) {
    this.#network = network;
    this.#chance = chance;
  }

  /** What a storage node serves, as long as its process lives. */
  serve(process: SimulatedProcess, disks: ServedDisks): void {
    this.#served.set(process, disks);
    process.onEnd(() => this.#served.delete(process));
  }

  /**
   * Orders to drop what is misplaced go no further: to who gave them the connection breaks, and they arrive when `hold`
   * sends them. Until the returned function is called.
   */
  holdDrops(hold: (to: string, send: () => void) => void): () => void {
    this.#holdDrop = hold;
    return () => {
      this.#holdDrop = undefined;
    };
  }

  /** The disks of the cluster, as one process reaches them. */
  directory(caller: ChunkCaller): DiskDirectory {
    const disks = new Map<string, DiskChunks & DiskOrders>();
    return {
      chunksOf: ({ id, address }) => {
        const name = `${address} ${id}`;
        const known = disks.get(name);
        if (known !== undefined) return known;
        const ask: AskDisk = (question, options = {}) =>
          this.#ask(caller, {
            to: address,
            request: { diskId: id, mapVersion: options.mapVersion ?? 0, question },
            signal: options.signal,
          });
        const disk = remoteDisk(ask);
        disks.set(name, disk);
        return disk;
      },
    };
  }

  async #ask(
    caller: ChunkCaller,
    { to, request, signal }: { to: string; request: Request; signal: AbortSignal | undefined },
  ): Promise<unknown> {
    const answer = await this.#send(caller, { to, request, signal });
    caller.onMapVersion(answer.mapVersion);
    if ('refusal' in answer) throw failureOf(answer, request);
    return answer.value;
  }

  #send(
    caller: ChunkCaller,
    { to, request, signal }: { to: string; request: Request; signal: AbortSignal | undefined },
  ): Promise<Answer> {
    const { process, address } = caller;
    const outcome = Promise.withResolvers<Answer>();
    const unavailable = (why: string) => new AppError('ServiceUnavailable', { cause: new Error(why) });
    const breakIn = (delayMs: number, why: string) =>
      process.schedule(delayMs, `connection to ${to} breaks`, () => outcome.reject(unavailable(why)));
    const lost = () => breakIn(this.#chance.between(BROKEN_MIN_MS, BROKEN_MAX_MS), 'the connection broke');
    const onAbort = () => outcome.reject(unavailable('given up'));
    signal?.addEventListener('abort', onAbort, { once: true });
    const settled = new AbortController();
    process.clock
      .sleep(LIMITS.chunkRequestMaxMs, settled.signal)
      .then(() => outcome.reject(unavailable('no answer in time')));
    const callee = this.#network.member(to);
    if (signal?.aborted === true) onAbort();
    else if (callee === undefined) breakIn(this.#chance.between(1, RESET_MAX_MS), 'nobody listens');
    else {
      callee.onEnd(() => {
        if (process.isAlive) breakIn(this.#chance.between(1, RESET_MAX_MS), 'the connection broke');
      });
      const reply = (answer: Answer) => {
        const isUnderWay = this.#network.send({
          from: to,
          process: callee,
          to: address,
          payload: answer,
          name: 'chunk answer',
          deliver: (arrived, receiver) => {
            if (receiver === process) outcome.resolve(arrived as Answer);
          },
        });
        if (!isUnderWay && process.isAlive) lost();
      };
      const send = () =>
        this.#network.send({
          from: address,
          process,
          to,
          payload: request,
          name: `chunk ${request.question.kind}`,
          deliver: (arrived, receiver) => {
            const disks = this.#served.get(callee);
            if (receiver !== callee || disks === undefined) return;
            serve(disks, arrived as Request).then(
              (answer) => {
                if (callee.isAlive) reply(answer);
              },
              (error) => callee.host.scheduler.fail(error),
            );
          },
        });
      const hold = request.question.kind === 'dropMisplaced' ? this.#holdDrop : undefined;
      hold?.(to, send);
      if (hold !== undefined || !send()) lost();
    }
    return outcome.promise.finally(() => {
      settled.abort(CANCELLED);
      signal?.removeEventListener('abort', onAbort);
    });
  }
}

type AskDisk = (
  question: Question,
  options?: { mapVersion?: number; signal?: AbortSignal },
) => Promise<unknown>;

function remoteDisk(ask: AskDisk): DiskChunks & DiskOrders {
  return {
    ...remoteOrders(ask),
    async put(id, bytes, { checksum, mapVersion, signal }) {
      await ask({ kind: 'put', id, bytes, checksum }, { mapVersion, signal });
    },
    async get(id, { isProven, signal }) {
      const read = (await ask({ kind: 'get', id }, { signal })) as ChunkRead;
      if (read.kind === 'found' && !isProven && crc32(read.bytes) !== read.checksum)
        return { kind: 'damaged' };
      return read;
    },
    have: (ids) => ask({ kind: 'have', ids }) as ReturnType<ChunkPort['have']>,
    async drop(ids, fence) {
      await ask({ kind: 'drop', ids, fence });
    },
    list: (options) => ask({ kind: 'list', ...options }) as ReturnType<ChunkPort['list']>,
    usage: () => ask({ kind: 'usage' }) as ReturnType<ChunkPort['usage']>,
    recount: () => ask({ kind: 'recount' }) as ReturnType<ChunkPort['recount']>,
  };
}

/** As over HTTP the sender's map goes with the request. */
function remoteOrders(ask: AskDisk): DiskOrders {
  const by = ({ mapVersion }: Order, signal?: AbortSignal) => ({ mapVersion, ...(signal && { signal }) });
  return {
    inspect: (ids, order, { readBytes, signal }) =>
      ask({ kind: 'inspect', ids, order, readBytes }, by(order, signal)) as ReturnType<DiskOrders['inspect']>,
    pull: (chunk, order, signal) =>
      ask({ kind: 'pull', chunk, order }, by(order, signal)) as ReturnType<DiskOrders['pull']>,
    async dropMisplaced(ids, order) {
      await ask({ kind: 'dropMisplaced', ids, order }, by(order));
    },
    async dropQuarantined(ids, order) {
      await ask({ kind: 'dropQuarantined', ids, order }, by(order));
    },
    listQuarantined: (options) =>
      ask({ kind: 'listQuarantined', ...options }) as ReturnType<DiskOrders['listQuarantined']>,
    listOf: (options) => ask({ kind: 'listOf', ...options }) as ReturnType<DiskOrders['listOf']>,
  };
}

/** At the storage node. */
async function serve(disks: ServedDisks, request: Request): Promise<Answer> {
  try {
    const value = await answer(disks, request);
    return { mapVersion: disks.mapVersion(), value: value ?? null };
  } catch (error) {
    return { mapVersion: disks.mapVersion(), refusal: codeOf(error) };
  }
}

async function answer(disks: ServedDisks, { diskId, mapVersion, question }: Request): Promise<unknown> {
  if (mapVersion > disks.mapVersion()) await disks.adopt(mapVersion);
  const chunks = disks.chunksOf(diskId);
  if (chunks === undefined) throw new Refused('no-disk');
  switch (question.kind) {
    case 'put': {
      const { id, bytes, checksum } = question;
      if (mapVersion < disks.mapVersion()) throw new Refused('stale-map');
      if (crc32(bytes) !== checksum) throw new Refused('failed');
      return chunks.put(id, bytes, checksum);
    }
    case 'get':
      return chunks.get(question.id);
    case 'have':
      return chunks.have(question.ids);
    case 'drop':
      return chunks.drop(question.ids, question.fence);
    case 'list':
      return chunks.list(question);
    case 'usage':
      return chunks.usage();
    case 'recount':
      return chunks.recount();
    default:
      return answerOrder(chunks, question);
  }
}

function answerOrder(
  chunks: DiskOrders,
  question: Extract<Question, { kind: keyof DiskOrders }>,
): Promise<unknown> {
  const { signal } = new AbortController();
  switch (question.kind) {
    case 'inspect':
      return chunks.inspect(question.ids, question.order, { readBytes: question.readBytes, signal });
    case 'pull':
      return chunks.pull(question.chunk, question.order, signal);
    case 'dropMisplaced':
      return chunks.dropMisplaced(question.ids, question.order);
    case 'dropQuarantined':
      return chunks.dropQuarantined(question.ids, question.order);
    case 'listQuarantined':
      return chunks.listQuarantined(question);
    case 'listOf':
      return chunks.listOf(question);
  }
}

function failureOf(
  { refusal, mapVersion }: { refusal: RefusalCode; mapVersion: number },
  { diskId, question }: Request,
): Error {
  switch (refusal) {
    case 'stale-map':
      return new StaleMap(mapVersion);
    case 'old-fence':
      return new OldFence();
    case 'owned-here':
      return new OwnedHere();
    case 'other-bytes':
      return new OtherBytes('id' in question ? chunkName(question.id) : '');
    case 'full':
      return new AppError('InsufficientStorage');
    case 'busy':
      return new AppError('SlowDown');
    default:
      return new AppError('ServiceUnavailable', { cause: new Error(`disk ${diskId}: ${refusal}`) });
  }
}

// Ends and halts between any two steps of R27 to R32, and of renames, compositions and appends: of the gateway that claims
// and commits, and of the nodes whose workers condemn, release, resolve and erase. Each is counted by the step behind which
// it came.
import type { MetadataPort } from '../../src/ports/metadata/port.ts';
import type { Chance } from './chance.ts';
import type { SimulatedProcess } from './clock.ts';
import type { PartWorld } from './part.ts';

export const GATEWAY_STEPS = ['claim-links', 'commit-version', 'commit-part', 'complete-upload'] as const;
export const JOIN_STEPS = [
  'move-key',
  'begin-key-move',
  'step-key-move',
  'begin-move',
  'step-move',
  'compose-version',
  'append-version',
  'fold-version',
] as const;
export const WORKER_STEPS = [
  'condemn-blobs',
  'release-links',
  'finish-outbox',
  'tick',
  'resolve-claims',
  'settle-claims',
  'release-parts',
  'erase-blobs',
  'step-move',
  'step-key-move',
] as const;

export type GatewayStep = (typeof GATEWAY_STEPS | typeof JOIN_STEPS)[number];
type WorkerStep = (typeof WORKER_STEPS)[number];

const cutBehind = (step: GatewayStep | WorkerStep) => `links: cut behind ${step}`;
const FAILOVER = 'links: failover between two steps';
const DRIVEN_ON = 'links: job driven on by its shard';
const KEY_DRIVEN_ON = 'links: key of many versions renamed on by its shard';

export const CUT_BRANCHES: readonly string[] = [
  ...new Set([...GATEWAY_STEPS, ...JOIN_STEPS, ...WORKER_STEPS].map(cutBehind)),
  FAILOVER,
  DRIVEN_ON,
  KEY_DRIVEN_ON,
];

/** Of requests: something happens between two of their steps. */
const REQUEST_SHARE = 0.45;
/** Few uploads end: often no parts are released any more when a node is to be cut behind that. */
const WORKER_STEPS_DRAWN: readonly WorkerStep[] = [...WORKER_STEPS, 'release-parts'];
/** In a seed, each behind another step. */
const WORKER_CUTS = 5;
const WORKER_CUTS_FROM_MS = 1000;
const WORKER_CUTS_TO_MS = 14_000;
const STANDS_MIN_MS = 1500;
const STANDS_MAX_MS = 11_000;
const STOPPED_MIN_MS = 3000;
const STOPPED_MAX_MS = 8000;

type Act = 'leaves' | 'stands' | 'ends' | 'stops' | 'failover';
const ACTS: readonly Act[] = ['leaves', 'stands', 'stands', 'stands', 'ends', 'stops', 'failover'];

/** Of uploads, which alone have the last two, and are few. */
export const UPLOAD_STEPS: readonly GatewayStep[] = [
  'claim-links',
  'claim-links',
  'claim-links',
  'commit-part',
  'commit-part',
  'complete-upload',
  'complete-upload',
  'complete-upload',
];

/** Claims above all: what comes behind one is the longest way. Completes are few. */
const STEPS_DRAWN: readonly GatewayStep[] = [
  'claim-links',
  'claim-links',
  ...GATEWAY_STEPS,
  'complete-upload',
  'complete-upload',
];

export class LinkCuts {
  readonly #world: PartWorld;
  readonly #chance: Chance;
  readonly #armed = new Set<WorkerStep>();
  readonly #heals = new Set<() => void>();
  #hasEnded = false;

  constructor(world: PartWorld, chance: Chance) {
    this.#world = world;
    this.#chance = chance;
  }

  /** When the workload begins. */
  plan(): void {
    const drawn = new Set(this.#chance.shuffled(WORKER_STEPS_DRAWN));
    for (const step of [...drawn].slice(0, WORKER_CUTS))
      this.#world.ground.scheduler.after(this.#chance.between(WORKER_CUTS_FROM_MS, WORKER_CUTS_TO_MS), {
        name: `a node is to be cut behind ${step}`,
        run: () => {
          if (!this.#hasEnded) this.#armed.add(step);
        },
      });
  }

  heal(): void {
    this.#hasEnded = true;
    this.#armed.clear();
    for (const heal of [...this.#heals]) heal();
  }

  /** What befalls one request of a gateway: to be called behind each of its steps, of which one of `steps` is drawn. */
  request(
    process: SimulatedProcess,
    /** Its client goes away. */
    leave: () => void,
    steps: readonly GatewayStep[] = STEPS_DRAWN,
  ): (step: string, shard: number) => Promise<void> {
    const chance = this.#chance;
    const at = chance.happens(REQUEST_SHARE) ? chance.pick(steps) : undefined;
    const drawn = chance.pick(ACTS);
    // Nobody waits for a fold: a client that leaves ends none.
    const act = at === 'fold-version' && drawn === 'leaves' ? 'stands' : drawn;
    let isDone = false;
    return async (step, shard) => {
      if (step !== at || isDone || this.#hasEnded) return;
      isDone = true;
      this.#world.ground.counts.add(cutBehind(at));
      const standMs = chance.between(STANDS_MIN_MS, STANDS_MAX_MS);
      if (act === 'leaves' || act === 'ends') leave();
      if (act === 'leaves') return new Promise(() => undefined);
      if (act === 'ends') {
        this.#disturb(cutBehind(at), STOPPED_MIN_MS, () => undefined);
        process.kill();
      }
      if (act === 'stops') this.#stop(process);
      if (act === 'failover') this.#failOver(chance.happens(0.5) ? shard : 1 - shard);
      await process.clock.sleep(act === 'stands' ? standMs : 1);
    };
  }

  /** The port of a node's workers. */
  ofWorkers(metadata: MetadataPort, process: SimulatedProcess): MetadataPort {
    const behind = async <T>(step: string, reply: Promise<T>): Promise<T> => {
      const answered = await reply;
      if (step === 'step-move') this.#world.ground.counts.add(DRIVEN_ON);
      if (step === 'step-key-move') this.#world.ground.counts.add(KEY_DRIVEN_ON);
      if (this.#armed.has(step as WorkerStep)) await this.#cut(step as WorkerStep, process);
      return answered;
    };
    return {
      shardCount: metadata.shardCount,
      execute: (envelope, name, command) => behind(name, metadata.execute(envelope, name, command)),
      query: (envelope, name, query) => behind(name, metadata.query(envelope, name, query)),
    };
  }

  async #cut(step: WorkerStep, process: SimulatedProcess): Promise<void> {
    const site = this.#world.nodes().find((node) => node.process === process);
    if (site === undefined || !this.#world.mayStopNodes()) return;
    this.#armed.delete(step);
    this.#world.ground.counts.add(cutBehind(step));
    if (this.#chance.happens(0.5)) {
      this.#disturb(cutBehind(step), STOPPED_MIN_MS, () => undefined);
      site.crash();
    } else this.#stop(process);
    // It goes on in an event of its own, if it does.
    await process.clock.sleep(1);
  }

  #stop(process: SimulatedProcess): void {
    process.stop();
    const stoppedMs = this.#chance.between(STOPPED_MIN_MS, STOPPED_MAX_MS);
    this.#disturb(`${process.name} stands still`, stoppedMs, () => process.continue());
  }

  #failOver(shard: number): void {
    const site = this.#world.nodes().find(({ ledShards }) => ledShards.includes(shard));
    if (site === undefined || !this.#world.mayStopNodes()) return;
    this.#world.ground.counts.add(FAILOVER);
    this.#disturb(FAILOVER, STOPPED_MIN_MS, () => undefined);
    site.crash();
  }

  #disturb(name: string, forMs: number, end: () => void): void {
    const hasEnded = this.#world.disturb(name);
    const heal = () => {
      if (!this.#heals.delete(heal)) return;
      hasEnded();
      end();
    };
    this.#heals.add(heal);
    this.#world.ground.scheduler.after(forMs, { name: `${name}: over`, run: heal });
  }
}

// Revocation of keys: accounts are suspended or deleted through one gateway, while clients sign with their keys at all
// of them. Checked: no request that begins after a revocation was acknowledged passes (I14), whatever happened to
// gateways, their clocks and the primary of the system shard.

import { type MetadataPort, SYSTEM_SHARD } from '../../src/ports/metadata/port.ts';
import { AppError } from '../../src/types/errors.ts';
import { LIMITS } from '../../src/types/limits.ts';
import type { AccountId } from '../../src/types/names.ts';
import type { Chance } from './chance.ts';
import type { SimulatedProcess } from './clock.ts';
import { GatewayPool, machinesOf, type Part, type PartWorld } from './part.ts';
import { openIdentities, type ProductGateway } from './product-gateway.ts';
import { REGISTRY_HOST } from './registry.ts';
import { SimulationFailure } from './scheduler.ts';

const ACCOUNT_COUNT = 8;
const SIGNER_COUNT = 2;
const SIGNED_EVERY_MS = 1000;
/** Before a key is revoked all gateways have just seen it; behind its time they are asked for it again. */
const SEEN_BEFORE_MS = 900;
const TRIED_EVERY_MS = 900;
const TRIED_TIMES = 5;
/** For so long keys are tried after their revocation was acknowledged. */
const TRIED_AFTER_MS = 15_000;
const REVOKED_FROM_MS = 2000;
const REVOKED_TO_MS = 29_000;
const REVOKED_AGAIN_MS = 300;
/** Gateways that are cut off from the cluster, and not from their clients. */
const CUTS_MAX = 3;
const CUT_MIN_MS = 2000;
const CUT_MAX_MS = 15_000;
/** Longer than nobody asks for a revoked key. */
const DONE_AFTER_MS = REVOKED_TO_MS + TRIED_AFTER_MS;

const CUT = 'fault: gateway cut off';
const STOPPED = 'fault: gateway stopped at a revocation';
const HANDED_OVER = 'fault: system shard handed over at a revocation';
const HANDED_OVER_MAX_MS = 3000;
const BRANCHES = {
  revoked: 'revocation: acknowledged',
  waited: 'revocation: waited for gateways',
  refused: 'revocation: key refused',
  distrusted: 'revocation: cache not trusted',
};

export const REVOCATION_BRANCHES: readonly string[] = [...Object.values(BRANCHES), CUT, STOPPED, HANDED_OVER];

interface Account {
  accountId: AccountId;
  accessKey: string;
  isDeleted: boolean;
  acknowledgedAtMs: number;
}

export class RevocationPart implements Part {
  readonly #world: PartWorld;
  readonly #chance: Chance;
  readonly #pool: GatewayPool;
  readonly #opened = new WeakMap<SimulatedProcess, ReturnType<typeof openIdentities>>();
  readonly #accounts: Account[];
  readonly #heals = new Set<() => void>();
  #hasEnded = false;

  constructor(world: PartWorld) {
    this.#world = world;
    this.#chance = world.ground.chance.fork('revocation');
    this.#pool = new GatewayPool(world, this.#chance.fork('gateways'));
    this.#accounts = Array.from({ length: ACCOUNT_COUNT }, (_, index) => ({
      accountId: String(100 + index).padStart(12, '0') as AccountId,
      accessKey: `AKREVOKED${index}`,
      isDeleted: this.#chance.happens(0.5),
      acknowledgedAtMs: Number.POSITIVE_INFINITY,
    }));
  }

  async prepare(): Promise<void> {
    for (const account of this.#accounts)
      for (let isDone = false; !isDone; ) {
        const attempt = await this.#pool.run(await this.#pool.pick(), 'makes an account', (gateway) =>
          create(gateway, account),
        );
        isDone = attempt.kind === 'done' && attempt.value.kind === 'done';
      }
    // Caches fill before anything is revoked.
    for (const gateway of this.#pool.running()) this.#identitiesOf(gateway);
  }

  async run(): Promise<void> {
    const { scheduler } = this.#world.ground;
    this.#planCuts();
    const revoking = this.#accounts.map((account) => this.#revoke(account));
    const signing = Array.from({ length: SIGNER_COUNT }, (_, id) => this.#sign(id));
    await scheduler.sleep(DONE_AFTER_MS, 'keys are not tried any more');
    this.#hasEnded = true;
    await Promise.all(signing);
    await Promise.all(revoking);
  }

  heal(): void {
    for (const heal of [...this.#heals]) heal();
  }

  async rest(): Promise<void> {
    const { scheduler } = this.#world.ground;
    for (const { accountId, acknowledgedAtMs } of this.#accounts)
      if (acknowledgedAtMs > scheduler.nowMs)
        throw new SimulationFailure(`I16: the revocation of ${accountId} is not acknowledged`);
  }

  #identitiesOf(gateway: ProductGateway): ReturnType<typeof openIdentities> {
    let opened = this.#opened.get(gateway.process);
    if (opened === undefined) {
      opened = openIdentities(gateway, this.#world.ground);
      this.#opened.set(gateway.process, opened);
    }
    return opened;
  }

  async #sign(id: number): Promise<void> {
    const { scheduler } = this.#world.ground;
    const chance = this.#chance.fork(`signer ${id}`);
    while (!this.#hasEnded) {
      await scheduler.sleep(chance.between(0, 2 * SIGNED_EVERY_MS), `signer ${id} begins`);
      const { nowMs } = scheduler;
      const tried = this.#accounts.filter(
        ({ acknowledgedAtMs }) => acknowledgedAtMs + TRIED_AFTER_MS > nowMs,
      );
      const running = this.#pool.running();
      if (tried.length === 0 || running.length === 0) continue;
      // Not waited for: who stands still has many at once when it goes on.
      void this.#try(chance.pick(running), chance.pick(tried));
    }
  }

  async #try(gateway: ProductGateway, account: Account): Promise<void> {
    const { scheduler, counts } = this.#world.ground;
    const { identities, feed } = this.#identitiesOf(gateway);
    const begunAtMs = scheduler.nowMs;
    const mayPass = account.acknowledgedAtMs > begunAtMs;
    const attempt = await this.#pool.run(gateway, `signs with ${account.accessKey}`, () => {
      if (!feed.isCurrent()) counts.add(BRANCHES.distrusted);
      return identities.find(account.accessKey);
    });
    if (attempt.kind === 'failed' && !(attempt.error instanceof AppError)) scheduler.fail(attempt.error);
    if (attempt.kind !== 'done') return;
    const passes = attempt.value !== undefined && attempt.value.account.state !== 'suspended';
    if (!passes) counts.add(BRANCHES.refused);
    const lateMs = begunAtMs - account.acknowledgedAtMs;
    if (passes && !mayPass)
      scheduler.fail(
        new SimulationFailure(
          `I14: ${gateway.process.name} lets ${account.accessKey} pass, ${lateMs.toFixed(0)} ms after its ` +
            'revocation was acknowledged',
        ),
      );
  }

  async #revoke(account: Account): Promise<void> {
    const { scheduler, counts } = this.#world.ground;
    await scheduler.sleep(this.#chance.between(REVOKED_FROM_MS, REVOKED_TO_MS), 'a key is in use');
    for (const gateway of this.#pool.running()) void this.#try(gateway, account);
    await scheduler.sleep(this.#chance.between(0, SEEN_BEFORE_MS), 'a revocation begins');
    for (;;) {
      const gateway = await this.#pool.pick();
      if (this.#chance.happens(0.4)) this.#loseAnother(gateway);
      if (this.#chance.happens(0.25)) await this.#handOver();
      const begunAtMs = scheduler.nowMs;
      const { metadata } = this.#identitiesOf(gateway);
      const attempt = await this.#pool.run(gateway, `revokes ${account.accessKey}`, () =>
        revoke(metadata, account),
      );
      if (attempt.kind === 'done' && attempt.value) {
        if (scheduler.nowMs - begunAtMs > LIMITS.identityAskMs / 2) counts.add(BRANCHES.waited);
        counts.add(BRANCHES.revoked);
        account.acknowledgedAtMs = scheduler.nowMs;
        void this.#tryAfter(account);
        return;
      }
      await scheduler.sleep(REVOKED_AGAIN_MS, 'revokes again');
    }
  }

  async #tryAfter(account: Account): Promise<void> {
    const { scheduler } = this.#world.ground;
    for (let times = TRIED_TIMES; times > 0; times--) {
      for (const gateway of this.#pool.running()) void this.#try(gateway, account);
      await scheduler.sleep(this.#chance.between(0, 2 * TRIED_EVERY_MS), 'a revoked key is tried');
    }
  }

  /** To a primary that no gateway has reported to. */
  async #handOver(): Promise<void> {
    const { counts, scheduler } = this.#world.ground;
    const primary = this.#world.nodes().find(({ node }) => node?.openEpoch(SYSTEM_SHARD) !== undefined);
    if (primary === undefined || !this.#world.mayStopNodes()) return;
    counts.add(HANDED_OVER);
    const hasEnded = this.#world.disturb(HANDED_OVER);
    primary.restart();
    const endMs = scheduler.nowMs + HANDED_OVER_MAX_MS;
    const isLed = () =>
      this.#world
        .nodes()
        .some(({ name, node }) => name !== primary.name && node?.openEpoch(SYSTEM_SHARD) !== undefined);
    while (!isLed() && scheduler.nowMs < endMs) await scheduler.sleep(50, 'the system shard is handed over');
    hasEnded();
  }

  /** It goes on with what it knew before. */
  #loseAnother(than: ProductGateway): void {
    const { counts, scheduler } = this.#world.ground;
    const others = this.#pool.running().filter((gateway) => gateway !== than && !gateway.process.isStopped);
    if (others.length === 0) return;
    const { process } = this.#chance.pick(others);
    if (this.#chance.happens(0.5)) {
      this.#cut(process.host.name);
      return;
    }
    counts.add(STOPPED);
    process.stop();
    this.#endLater(() => process.continue(), this.#chance.between(4000, 12_000), 'a gateway goes on');
    scheduler.trace(`${process.name} stops`);
  }

  /** From the cluster, and not from its clients. */
  #cut(name: string): void {
    const { network, counts } = this.#world.ground;
    const others = [...machinesOf(this.#world).filter((other) => other !== name), REGISTRY_HOST];
    const heals = others.flatMap((other) => [network.cut(name, other), network.cut(other, name)]);
    counts.add(CUT);
    const end = () => {
      for (const heal of heals) heal();
    };
    this.#endLater(end, this.#chance.between(CUT_MIN_MS, CUT_MAX_MS), 'a gateway is back');
  }

  #planCuts(): void {
    const { scheduler } = this.#world.ground;
    for (let left = this.#chance.int(0, CUTS_MAX); left > 0; left--)
      scheduler.after(this.#chance.between(REVOKED_FROM_MS, REVOKED_TO_MS), {
        name: CUT,
        run: () => this.#cut(this.#chance.pick(this.#world.gateways()).name),
      });
  }

  #endLater(end: () => void, delayMs: number, name: string): void {
    const hasEnded = this.#world.disturb(name);
    const heal = () => {
      if (!this.#heals.delete(heal)) return;
      hasEnded();
      end();
    };
    this.#heals.add(heal);
    this.#world.ground.scheduler.after(delayMs, { name, run: heal });
  }
}

function create({ metadata, keyring }: ProductGateway, { accountId, accessKey }: Account) {
  const name = `revoked-${accountId}`;
  const ids = { name, email: `${name}@example.com`, canonicalId: name.padEnd(64, '0') };
  return metadata.execute({ shard: SYSTEM_SHARD }, 'create-account', {
    account: { ...ids, accountId, state: 'paid', bucketsMax: 1, isRoot: false },
    accessKey: { accessKey, sealedSecret: keyring.wrap(Buffer.alloc(32, 3)) },
  });
}

/** Whether it is acknowledged: an account that is gone is revoked as well. */
async function revoke(metadata: MetadataPort, { accountId, isDeleted }: Account): Promise<boolean> {
  const system = { shard: SYSTEM_SHARD };
  const reply = isDeleted
    ? await metadata.execute(system, 'delete-account', { accountId })
    : await metadata.execute(system, 'set-account', { accountId, changes: { state: 'suspended' } });
  return reply.kind === 'done';
}

// Revocation from end to end (R46, I14): gateways with caches, their feeds, and a system shard whose primary changes, over
// a network that cuts off gateways, and delays or loses questions and answers. No request that begins after a revocation was
// acknowledged passes, whatever its gateway believes.
import { expect, test } from 'vitest';
import { type MetadataShards, openMetadata } from '../../tests/support/metadata/metadata-shards.ts';
import {
  createManualClock,
  createSeededRandom,
  type ManualClock,
} from '../../tests/support/run/simulated.ts';
import { utf8 } from '../base/bytes/bytes.ts';
import { createIdentities, type Identities } from '../gateway/auth/identities.ts';
import { createKeyring } from '../platform/memory/memory-keyring.ts';
import type { MetadataPort, Reply } from '../ports/metadata/port.ts';
import type { ShardCall, ShardCallHandler } from '../ports/shard-calls.ts';
import { LIMITS } from '../types/limits.ts';
import type { AccountId } from '../types/names.ts';
import { delayRevocations } from './delay-revocations.ts';
import { createIdentityFeed } from './identity-feed.ts';
import { createRevocationWait } from './revocation-wait.ts';

const STEP_MS = 100;
const SEEDS = 16;
const STEPS = 600;
const GATEWAYS = 3;
/** Lost messages of 100 of a gateway on a bad day. */
const LOST_SHARE = 30;
const ACCOUNTS = ['000000000011', '000000000022'] as AccountId[];
const keyOf = (accountId: AccountId) => `AK${accountId}`;
const keyring = createKeyring();

/** A process that is or was the primary of the system shard. */
interface Primary {
  handler: ShardCallHandler;
  isOpen: boolean;
}

interface World {
  clock: ManualClock;
  metadata: MetadataShards;
  primary: Primary;
  draw(below: number): number;
  step(): Promise<void>;
}

interface GatewayAtWork {
  identities: Identities;
  port: MetadataPort;
  network: { isCut: boolean; isBad: boolean };
}

function openPrimary({ metadata, clock }: Pick<World, 'metadata' | 'clock'>, epoch: number): Primary {
  const primary: Primary = { handler: undefined as never, isOpen: true };
  const node: ShardCallHandler = {
    ticket: () => ({ processId: 'p', monotonicMs: 0, wallMs: 0 }),
    async handle({ kind, envelope, name, body }) {
      if (!primary.isOpen) return { kind: 'not-primary', primary: undefined };
      return kind === 'execute'
        ? metadata.shards.execute(envelope, name as never, body as never)
        : metadata.shards.query(envelope, name as never, body as never);
    },
  };
  const wait = createRevocationWait({ clock, epoch: () => (primary.isOpen ? epoch : undefined) });
  primary.handler = delayRevocations(node, wait);
  return primary;
}

/** The metadata port of a gateway: one question at a time, which ends when it or its answer is lost. */
function openGateway(world: World, gateway: string): GatewayAtWork {
  const network = { isCut: false, isBad: false };
  const isLost = () => network.isCut || (network.isBad && world.draw(100) < LOST_SHARE);
  const delay = async () => {
    if (network.isBad) await world.clock.sleep(world.draw(2000));
  };
  async function call(question: Omit<ShardCall, 'ticket' | 'budgetMs'>): Promise<Reply<never>> {
    if (isLost()) return { kind: 'unknown' };
    await delay();
    const { handler } = world.primary;
    const reply = await handler.handle({ ...question, ticket: handler.ticket(), budgetMs: 10_000 });
    await delay();
    if (isLost() || reply.kind === 'not-primary' || reply.kind === 'too-old') return { kind: 'unknown' };
    return reply as Reply<never>;
  }
  const port: MetadataPort = {
    shardCount: 1,
    execute: (envelope, name, body) => call({ kind: 'execute', envelope, name, body }),
    query: (envelope, name, body) => call({ kind: 'query', envelope, name, body }),
  };
  const nothing = () => {};
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  const feed = createIdentityFeed({ metadata: port, clock: world.clock, log, gateway });
  void feed.follow(new AbortController().signal);
  return {
    identities: createIdentities({ metadata: port, keyring, random: createSeededRandom(1), feed }),
    port: feed.metadata,
    network,
  };
}

async function openWorld(seed: number): Promise<World> {
  const clock = createManualClock(Date.parse('2024-01-01'));
  const metadata = await openMetadata({ clock });
  for (const accountId of ACCOUNTS) {
    const words = { name: accountId, email: accountId, canonicalId: accountId };
    await metadata.execute('create-account', {
      account: { accountId, ...words, state: 'paid', bucketsMax: 1, isRoot: false },
      accessKey: { accessKey: keyOf(accountId), sealedSecret: keyring.wrap(utf8('secret')) },
    });
  }
  const random = createSeededRandom(seed);
  return {
    clock,
    metadata,
    primary: openPrimary({ metadata, clock }, 1),
    draw: (below) => Buffer.from(random.bytes(2)).readUInt16BE() % below,
    async step() {
      clock.advance(STEP_MS);
      for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate);
    },
  };
}

interface Tally {
  revocations: number;
  quick: number;
  passed: number;
  refused: number;
  unavailable: number;
}

/** Suspends and restores accounts at random, through either gateway. */
class Operator {
  readonly #world: World;
  readonly #tally: Tally;
  /** Since when each account is known to be suspended; undefined: unknown. */
  readonly suspendedAtMs = new Map<AccountId, number>();
  readonly #busy = new Set<AccountId>();

  constructor(world: World, tally: Tally) {
    this.#world = world;
    this.#tally = tally;
  }

  async act({ port }: GatewayAtWork, accountId: AccountId = this.#choose()): Promise<void> {
    const { clock } = this.#world;
    if (this.#busy.has(accountId)) return;
    this.#busy.add(accountId);
    const isSuspended = this.suspendedAtMs.delete(accountId);
    const state = isSuspended ? 'paid' : 'suspended';
    const startedMs = clock.monotonicMs();
    const reply = await port.execute({ shard: 0 }, 'set-account', { accountId, changes: { state } });
    this.#busy.delete(accountId);
    if (isSuspended || reply.kind !== 'done') return;
    const nowMs = clock.monotonicMs();
    this.suspendedAtMs.set(accountId, nowMs);
    this.#tally.revocations++;
    if (nowMs - startedMs <= 2 * LIMITS.identityAskMs) this.#tally.quick++;
  }

  #choose(): AccountId {
    return ACCOUNTS[this.#world.draw(ACCOUNTS.length)] as AccountId;
  }
}

const NOTHING: Tally = { revocations: 0, quick: 0, passed: 0, refused: 0, unavailable: 0 };

async function request(
  { clock }: World,
  { identities }: GatewayAtWork,
  parts: { accountId: AccountId; operator: Operator; tally: Tally },
): Promise<void> {
  const { accountId, operator, tally } = parts;
  const begunMs = clock.monotonicMs();
  const suspendedAtMs = operator.suspendedAtMs.get(accountId) ?? Number.POSITIVE_INFINITY;
  const mustFail = begunMs >= suspendedAtMs;
  try {
    const found = await identities.find(keyOf(accountId));
    if (found?.account.state === 'suspended') tally.refused++;
    else {
      tally.passed++;
      // Unless the account was restored while the request was under way.
      if (mustFail && operator.suspendedAtMs.get(accountId) === suspendedAtMs) {
        throw new Error(`passes ${begunMs - suspendedAtMs} ms after the revocation was acknowledged`);
      }
    }
  } catch (error) {
    if ((error as { code?: string }).code !== 'ServiceUnavailable') throw error;
    tally.unavailable++;
  }
}

async function simulate(seed: number, tally: Tally): Promise<void> {
  const world = await openWorld(seed);
  const { draw } = world;
  const gateways = Array.from({ length: GATEWAYS }, (_, at) => openGateway(world, `g${at}`));
  const operator = new Operator(world, tally);
  const failures: unknown[] = [];
  const note = (work: Promise<void>) => void work.catch((error: unknown) => failures.push(error));
  let epoch = 1;
  let closedUntil = 0;
  for (let step = 0; step < STEPS; step++) {
    const gateway = gateways[draw(GATEWAYS)] as GatewayAtWork;
    const { network } = gateway;
    if (draw(network.isCut ? 80 : 150) === 0) network.isCut = !network.isCut;
    if (draw(network.isBad ? 30 : 90) === 0) network.isBad = !network.isBad;
    if (world.primary.isOpen && draw(250) === 0) {
      world.primary.isOpen = false;
      closedUntil = step + 5 + draw(40);
      // The old primary has seen this question, the new one never will.
      network.isCut = true;
    }
    if (!world.primary.isOpen && step >= closedUntil) world.primary = openPrimary(world, ++epoch);
    if (draw(12) === 0) note(operator.act(gateways[draw(GATEWAYS)] as GatewayAtWork));
    for (const each of gateways) {
      const accountId = ACCOUNTS[draw(ACCOUNTS.length)] as AccountId;
      note(request(world, each, { accountId, operator, tally }));
    }
    await world.step();
    expect(failures, `seed ${seed}, step ${step}`).toEqual([]);
  }
}

test(`${SEEDS} days of a network`, { timeout: 60_000 }, async () => {
  const tally: Tally = { ...NOTHING };
  for (let seed = 1; seed <= SEEDS; seed++) await simulate(seed, tally);
  // The rare cases have occurred.
  expect(tally.quick).toBeGreaterThan(SEEDS / 2);
  expect(tally.revocations - tally.quick).toBeGreaterThan(SEEDS / 2);
  expect(Math.min(tally.passed, tally.refused, tally.unavailable)).toBeGreaterThan(50 * SEEDS);
});

/** Eleven seconds in which all gateways ask, and know the first account. */
async function openCalm(): Promise<{
  world: World;
  gateways: GatewayAtWork[];
  tally: Tally;
  operator: Operator;
}> {
  const tally: Tally = { ...NOTHING };
  const world = await openWorld(1);
  const gateways = Array.from({ length: GATEWAYS }, (_, at) => openGateway(world, `g${at}`));
  for (let step = 0; step < 110; step++) await world.step();
  for (const { identities } of gateways) await identities.find(keyOf(ACCOUNTS[0] as AccountId));
  return { world, gateways, tally, operator: new Operator(world, tally) };
}

test('with all gateways answering, a revocation takes no longer than their next questions', async () => {
  const { world, gateways, tally, operator } = await openCalm();
  void operator.act(gateways[0] as GatewayAtWork, ACCOUNTS[0]);
  for (let step = 0; step < 21; step++) await world.step();
  expect(tally).toMatchObject({ revocations: 1, quick: 1 });
});

test('a gateway that only the last primary knew stops in time', async () => {
  const { world, gateways, tally, operator } = await openCalm();
  const [one, cut] = gateways as [GatewayAtWork, GatewayAtWork];
  world.primary.isOpen = false;
  cut.network.isCut = true;
  for (let step = 0; step < 5; step++) await world.step();
  world.primary = openPrimary(world, 2);
  for (let step = 0; step < 12; step++) await world.step();
  const [accountId] = ACCOUNTS as [AccountId];
  const failures: unknown[] = [];
  void operator.act(one, accountId);
  for (let step = 0; step < 120; step++) {
    request(world, cut, { accountId, operator, tally }).catch((error: unknown) => failures.push(error));
    await world.step();
    expect(failures).toEqual([]);
  }
  // It used its cache, and then refused.
  expect(tally).toMatchObject({ revocations: 1, refused: 0 });
  expect(Math.min(tally.passed, tally.unavailable)).toBeGreaterThan(30);
});

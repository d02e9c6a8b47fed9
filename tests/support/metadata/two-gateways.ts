// Two gateways over the same shards, and an account that asks either. The second one can be cut off at a step of what it
// does, before the shard has heard of the step or behind it, and something can come before a step.
import { expect } from 'vitest';
import type { MetadataPort } from '../../../src/ports/metadata/port.ts';
import { type GatewayWorld, openGatewayWorld } from '../objects/gateway-world.ts';
import { type Access, type RawAnswer, send } from '../servers/raw-s3.ts';

const nothing = () => {};
export const quiet = { debug: nothing, info: nothing, warn: nothing, error: nothing };

export interface TwoGateways<Step extends string> {
  one: GatewayWorld;
  /** The account by either gateway. */
  ann: { one: Access; two: Access };
  /** The step at which the second gateway is cut off, and whether the shard has heard of it. */
  cut: { at: Step; isDelivered: boolean } | undefined;
  /** What comes before a step of the second gateway, once. */
  before: Partial<Record<Step, () => Promise<unknown>>>;
  /** Every shard there is. */
  shards(): number[];
  /** Expects that neither gateway has failed. */
  close(): Promise<void>;
}

/** `wrap`: what else stands between the second gateway and the shards. */
export async function openTwoGateways<Step extends string>(
  wrap: (shards: MetadataPort) => MetadataPort = (shards) => shards,
): Promise<TwoGateways<Step>> {
  const one = await openGatewayWorld();
  const { shards } = one.metadata;
  const call = async <T>(name: string, act: () => Promise<T>) => {
    const first = world.before[name as Step];
    delete world.before[name as Step];
    await first?.();
    if (world.cut?.at !== name) return act();
    if (world.cut.isDelivered) await act();
    return { kind: 'unknown' } as const;
  };
  const metadata: MetadataPort = {
    shardCount: shards.shardCount,
    execute: (envelope, name, command) => call(name, () => shards.execute(envelope, name, command)),
    query: (envelope, name, query) => call(name, () => shards.query(envelope, name, query)),
  };
  const two = await openGatewayWorld({
    deps: { metadata: wrap(metadata), objects: one.store, keyring: one.keyring },
  });
  const keys = await one.makeAccount('ann');
  const world: TwoGateways<Step> = {
    one,
    ann: { one: { ...keys, endpoint: one.endpoint }, two: { ...keys, endpoint: two.endpoint } },
    cut: undefined,
    before: {},
    shards: () => Array.from({ length: shards.shardCount }, (_, shard) => shard),
    async close() {
      await Promise.all([one.close(), two.close()]);
      expect(one.faults()).toEqual([]);
    },
  };
  return world;
}

/** `line`: method, path, and where to: `MOVE /red blue`. */
export async function ask(access: Access, line: string, body?: string): Promise<RawAnswer> {
  const [method = '', path = '', destination] = line.split(' ');
  const headers: Record<string, string> = destination === undefined ? {} : { destination };
  return send(access, { method, path, headers, ...(body !== undefined && { body: Buffer.from(body) }) });
}

export async function statusOf(access: Access, line: string, body?: string): Promise<number> {
  return (await ask(access, line, body)).status;
}

export async function textOf(access: Access, line: string, body?: string): Promise<string> {
  return (await ask(access, line, body)).body.toString();
}

/** Of the error, or `done`. */
export async function codeOf(access: Access, line: string, body?: string): Promise<string> {
  return /<Code>(\w+)/.exec(await textOf(access, line, body))?.[1] ?? 'done';
}

// A world in which a test holds a lock, as a command does that waits for its owner's turn.
import { createFairTurns, type FairTurns } from '../../../src/base/async/fair-turns.ts';
import { shared } from '../../../src/metadata/schema/define-command.ts';
import { metadataMachine } from '../../../src/metadata/state-machine.ts';
import type { CommandSpec } from '../../../src/ports/state-machine.ts';
import { type MetadataShards, openMetadata } from './metadata-shards.ts';

const HOLDER = 'holder';

export interface HeldWorld {
  world: MetadataShards;
  /** Holds the lock, shared, until it is let go. */
  hold(lock: string): Promise<unknown>;
  letGo(): void;
}

export async function openHeldWorld(): Promise<HeldWorld> {
  const gate = Promise.withResolvers<void>();
  const hold: CommandSpec<{ lock: string }, unknown> = {
    locks: ({ lock }) => [shared(lock)],
    reads: () => ({}),
    ownerOf: () => HOLDER,
    isLong: () => true,
    decide: () => ({ outcome: {}, puts: [] }),
  };
  const machine = { ...metadataMachine, commands: { ...metadataMachine.commands, hold } };
  const fair = createFairTurns();
  const take: FairTurns['take'] = (by) => (by.owner === HOLDER ? gate.promise : fair.take(by));
  const world = await openMetadata({ machine, turns: { ...fair, take } });
  return {
    world,
    hold: (lock) => world.execute('hold' as never, { lock } as never),
    letGo: () => gate.resolve(),
  };
}

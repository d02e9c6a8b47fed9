// Faults that are aimed: each is the run in which one rule of the protocol alone stands between a shard and a lost write
// or a stale read. At random their moments meet so seldom that the rule could be left out without being missed.
import type { Chance } from './chance.ts';
import type { FaultSpec, FaultyWorld, NodeSite } from './faults.ts';
import { Plot } from './plot.ts';

/** A shard that is served, who leads it, and the two others. */
interface Scene {
  world: FaultyWorld;
  chance: Chance;
  plot: Plot;
  primary: NodeSite;
  others: readonly NodeSite[];
}

/** Counted when the last act of one has begun: one that never gets there shows nothing. */
export const lastActOf = (name: string) => `last act: ${name}`;

/** What a fault does with a scene; its plot puts right what it has done. */
interface Play {
  lastsMs: number;
  losesData?: true;
  play(scene: Scene): void;
}

/** So long that all that a shard was about to do is done, and no promise has lapsed. */
const SOON_MS = 1200;
/** So long that gateways have tried again. */
const SEEN_MS = 1500;

const PLAYS = {
  /**
   * A4: two candidates have fenced the same voter. The first stands still before it hears so; the voter ends behind its
   * answer to the second, and is back when the first goes on, of which epoch it must not take anything any more.
   */
  'end of a fenced voter': {
    lastsMs: 12_000,
    play: ({ plot, primary: second, others }) => {
      const healSecond = plot.part(second, ...others);
      plot.when(
        'fenced',
        ({ to }) => to !== second,
        ({ from: voter, to: first }) => {
          first.process?.stop();
          const goOn = plot.keep(() => first.process?.continue());
          const healFirst = plot.part(first, voter);
          plot.part(first, second);
          plot.partFromRegistry(first);
          // It is to be asked, not to ask.
          const healAsked = plot.partFromRegistry(voter);
          healSecond();
          plot.when(
            'fenced',
            ({ from, to }) => from === voter && to === second,
            () => {
              const healVoter = plot.part(second, voter);
              healAsked();
              voter.crash();
              healFirst();
              goOn();
              plot.after(SEEN_MS, healVoter);
              plot.reachedLastAct();
            },
          );
        },
      );
    },
  },
  /**
   * A5: a voter whose promise of silence a lease depends on ends, and is back before the lease has run out, when a replica
   * that has had no message from the primary for long asks it.
   */
  'restart under a lease': {
    lastsMs: 11_000,
    play: ({ world, chance, plot, primary, others }) => {
      const [candidate, voter] = chance.shuffled(others) as [NodeSite, NodeSite];
      // Somebody must find the other one.
      plot.part(primary, candidate, chance.pick(world.gateways));
      plot.partFromRegistry(primary);
      plot.when(
        'pre-fence',
        ({ from, to }) => from === candidate && to === voter,
        () => {
          // It asks again a round and some more later.
          plot.after(SOON_MS, () => {
            plot.part(primary, voter);
            voter.crash();
            plot.reachedLastAct();
          });
        },
      );
    },
  },
  /**
   * A5: a primary stands still just before it receives an answer, and receives it when others took over long ago. The
   * promise in it is as old as the question.
   */
  'answer that is heard late': {
    lastsMs: 9000,
    play: ({ world, chance, plot, primary, others }) => {
      // Somebody must find the other one.
      plot.part(primary, chance.pick(world.gateways));
      plot.partFromRegistry(primary);
      plot.when(
        'ack',
        ({ to, message }) => to === primary && message.counts,
        () => {
          primary.process?.stop();
          const goOn = plot.keep(() => primary.process?.continue());
          plot.part(primary, ...others);
          plot.when(
            'ack',
            ({ to }) => to !== primary,
            () => {
              plot.after(SOON_MS, goOn);
              plot.reachedLastAct();
            },
          );
        },
      );
    },
  },
  /**
   * The figure 8 of the Raft paper (R5): what an earlier epoch had left is brought to a voter in a later one, and a log of
   * an epoch between the two wins behind it. Of a tail that is larger than one message only its beginning arrives.
   */
  'tails of two epochs': {
    lastsMs: 14_000,
    play: ({ world, plot, primary: oldest, others }) => {
      // Gateways still reach it: what they bring stays on its disk alone.
      const healOldest = plot.part(oldest, ...others);
      plot.when(
        'fenced',
        ({ to }) => to !== oldest,
        ({ from: voter, to: middle }) => {
          const healMiddle = plot.part(middle, voter);
          plot.part(middle, oldest);
          // First the oldest is to lead it, then the one between.
          plot.partFromRegistry(voter);
          healOldest();
          plot.change('append', ({ from, to, message }) =>
            from === oldest && to === voter
              ? { ...message, entries: message.entries.slice(0, 1) }
              : undefined,
          );
          plot.when(
            'append',
            ({ from, to, message }) => from === oldest && to === voter && message.entries.length > 0,
            ({ message: { prev } }) => {
              const heal = world.network.cut(oldest.host.name, voter.host.name);
              plot.keep(heal);
              plot.when(
                'ack',
                ({ from, to, message }) => from === voter && to === oldest && message.matchSeq > prev.seq,
                () => {
                  plot.after(SOON_MS, () => {
                    plot.part(oldest, voter);
                    healMiddle();
                    plot.reachedLastAct();
                  });
                },
              );
            },
          );
        },
      );
    },
  },
  /**
   * R12 b: the machine of a primary stands still until its promises have lapsed, and goes on when a candidate has been
   * granted the shard, but has not got its epoch yet. What the candidate acknowledges now is a promise again.
   */
  'promise of a candidate': {
    lastsMs: 9000,
    play: ({ world, chance, plot, primary }) => {
      primary.host.suspend();
      const wake = plot.keep(() => primary.host.wake());
      plot.partFromRegistry(primary);
      plot.when(
        'pre-fenced',
        ({ to, message }) => to !== primary && message.agrees,
        ({ from: voter, to: candidate }) => {
          plot.part(primary, voter, chance.pick(world.gateways));
          plot.keep(world.registry.troubles.change({ swapAnswerMs: SOON_MS }));
          plot.when(
            'ack',
            ({ from, to }) => from === candidate && to === primary,
            () => {
              plot.part(primary, candidate);
              plot.reachedLastAct();
            },
          );
          wake();
        },
      );
    },
  },
  /**
   * A2: what only a primary and one voter have is cut from that voter's log, and the primary is down: the voter may not
   * count, though it finds nothing wrong with what is left.
   */
  'cut log beside a dead primary': {
    lastsMs: 11_000,
    losesData: true,
    play: ({ world, chance, plot, primary, others }) => {
      const [late, voter] = chance.shuffled(others) as [NodeSite, NodeSite];
      const healLate = plot.part(late, primary, voter);
      const before = [primary.process, late.process];
      plot.after(SEEN_MS, () => {
        // Something else may have been lost meanwhile, of the late one, too.
        const isElseSound = world.isWholeWithout(late) && !late.disk.hasDamage;
        if (before[0] !== primary.process || before[1] !== late.process || !isElseSound) return;
        world.noteLoss();
        plot.keep(primary.keepDown());
        primary.kill();
        voter.crash();
        voter.disk.cutLog();
        healLate();
        plot.reachedLastAct();
      });
    },
  },
} as const satisfies Record<string, Play>;

export type AimedFault = keyof typeof PLAYS;

/** Where a shard is served, and everybody is there. */
function sceneOf(name: string, world: FaultyWorld, chance: Chance): Scene | undefined {
  const leading = world.nodes.filter(({ ledShards }) => ledShards.length > 0);
  if (leading.length === 0 || world.nodes.some(({ process }) => process === undefined)) return undefined;
  const primary = chance.pick(leading);
  const others = world.nodes.filter((node) => node !== primary);
  const plot = new Plot(world, { shard: chance.pick(primary.ledShards), lastAct: lastActOf(name) });
  return { world, chance, plot, primary, others };
}

function specOf(name: string, { lastsMs, play, ...more }: Play): FaultSpec {
  return {
    minMs: lastsMs,
    maxMs: lastsMs,
    ...more,
    begin(world, chance) {
      const scene = sceneOf(name, world, chance);
      if (scene === undefined) return undefined;
      play(scene);
      return () => scene.plot.end();
    },
  };
}

export const AIMED_FAULTS = Object.fromEntries(
  Object.entries(PLAYS).map(([name, play]) => [name, specOf(name, play)]),
) as Record<AimedFault, FaultSpec>;

// Calls to metadata shards one at a time, in an order that chance decides: gateways and background jobs run against each
// other, lose answers, die between any two calls, and what they have sent may arrive a second time much later.

import type { RandomPort } from '../../../src/ports/clock.ts';
import type {
  CommandName,
  CommandOf,
  Envelope,
  MetadataPort,
  QueryName,
} from '../../../src/ports/metadata/port.ts';

export interface SteppedCalls {
  /** The port of one actor. Its calls wait until they are chosen. */
  port(actor: string): MetadataPort;
  /** Lets one call happen that chance chooses, or its actor die before or behind it. False when nothing waits. */
  step(options: { mayDie: boolean }): Promise<boolean>;
  readonly waitingCount: number;
  /** Commands that were sent and may arrive once more. */
  readonly lateCount: number;
  /** Lets one of them arrive. */
  stepLate(): Promise<void>;
  /** What happened so far, for people. */
  readonly trace: readonly string[];
}

interface Waiting {
  actor: string;
  text: string;
  call(): Promise<unknown>;
  resolve(reply: unknown): void;
  /** Of commands: what arrives once more. */
  again?: () => Promise<unknown>;
}

export function createSteppedCalls(metadata: MetadataPort, random: RandomPort): SteppedCalls {
  const waiting: Waiting[] = [];
  const late: { text: string; call(): Promise<unknown> }[] = [];
  const trace: string[] = [];
  const draw = (below: number) => (random.bytes(2)[0] as number) % below;

  function wait(call: Omit<Waiting, 'resolve'>): Promise<never> {
    return new Promise((resolve) => waiting.push({ ...call, resolve: resolve as never }));
  }

  const textOf = (actor: string, { shard }: Envelope, name: string, body: unknown) =>
    `${actor}: ${name} at ${shard} ${JSON.stringify(body)}`;

  return {
    trace,
    get waitingCount() {
      return waiting.length;
    },
    get lateCount() {
      return late.length;
    },
    port: (actor) => ({
      shardCount: metadata.shardCount,
      execute<N extends CommandName>(envelope: Envelope, name: N, command: CommandOf<N>) {
        const call = () => metadata.execute(envelope, name, command);
        return wait({ actor, text: textOf(actor, envelope, name, command), call, again: call });
      },
      query<N extends QueryName>(envelope: Envelope, name: N, query: never) {
        const call = () => metadata.query(envelope, name, query);
        return wait({ actor, text: textOf(actor, envelope, name, query), call });
      },
    }),
    async step({ mayDie }) {
      const chosen = waiting.splice(draw(Math.max(1, waiting.length)), 1)[0];
      if (chosen === undefined) return false;
      const { text, call, again, resolve } = chosen;
      const fate = mayDie ? draw(24) : 0;
      if (fate === 1) {
        trace.push(`${text} - dies before`);
        return true;
      }
      const reply = await call();
      if (again !== undefined && draw(4) === 0) late.push({ text, call: again });
      trace.push(`${text} -> ${JSON.stringify(reply)}${fate === 2 ? ' - dies behind' : ''}`);
      if (fate !== 2) resolve(reply);
      await settle();
      return true;
    },
    async stepLate() {
      const [chosen] = late.splice(draw(late.length), 1);
      if (chosen === undefined) return;
      trace.push(`late, ${chosen.text} -> ${JSON.stringify(await chosen.call())}`);
    },
  };
}

/** Until everything that can go on without another call has done so. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
}

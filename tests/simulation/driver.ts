// How the operations of the simulation are put to a state machine, and its answers understood.
import type { Envelope } from '../../src/ports/metadata/port.ts';
import type { StateMachine } from '../../src/ports/state-machine.ts';
import type { Chance } from './chance.ts';
import type { Operation, Outcome } from './operations.ts';

export interface DrivenCall {
  kind: 'execute' | 'query';
  envelope: Envelope;
  name: string;
  body: object;
}

export interface Driver {
  readonly name: string;
  readonly machine: StateMachine;
  readonly operations: readonly Operation['kind'][];
  /** What must be done once in a shard before anything else. */
  prepare(shard: number): DrivenCall[];
  /** `timeMs`: shard time by the newest reply, from which ids are minted (R24). */
  call(operation: Operation, options: { shard: number; timeMs: number; chance: Chance }): DrivenCall;
  /** undefined: refused without effect, for a reason that the operation does not know; ask again. */
  outcome(operation: Operation, value: unknown): Outcome | undefined;
}

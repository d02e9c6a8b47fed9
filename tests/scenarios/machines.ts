// The state machines that scenarios run on: tests/scenarios/<name>/*.txt runs on the machine of that name.
import { unpackPlain } from '../../src/base/record-codec.ts';
import type { Shards } from '../../src/metadata/engine/shards.ts';
import type { ClockPort } from '../../src/ports/clock.ts';
import type { StateMachine, TableRef } from '../../src/ports/state-machine.ts';
import type { Worker } from '../../src/ports/worker.ts';
import { metadataScenario } from './metadata-machine.ts';
import { noteMachine, noteTables } from './note-machine.ts';

export interface ScenarioMachine {
  machine: StateMachine;
  /** Tables that `rows` can print, by name; the engine's own are known besides. */
  tables: Readonly<Record<string, TableRef>>;
  /** How values of a table are shown; by default as records, or bytes. */
  show?: Readonly<Record<string, (value: Uint8Array) => unknown>>;
  /** Background workers for `work`, besides the engine's; made anew when the shards are opened anew. */
  workers?(deps: { shards: Shards; clock: ClockPort; note(event: string): void }): readonly Worker[];
}

export const MACHINES: Readonly<Record<string, ScenarioMachine>> = {
  engine: {
    machine: noteMachine,
    tables: noteTables,
    show: { buckets: unpackPlain, notes: unpackPlain },
  },
  metadata: metadataScenario,
};

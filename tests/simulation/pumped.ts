// A simulated world for tests that know nothing of one: it moves on by itself, as fast as it can, while they wait.
import { Chance } from './chance.ts';
import { SimulatedHost, SimulatedProcess } from './clock.ts';
import { Scheduler } from './scheduler.ts';

export interface PumpedWorld {
  process: SimulatedProcess;
  /** Ends it. */
  stop(): Promise<void>;
}

export function startPumpedWorld(): PumpedWorld {
  const scheduler = new Scheduler();
  const host = new SimulatedHost('host', { scheduler, chance: new Chance(1) });
  let isStopped = false;
  const pumping = (async () => {
    while (!isStopped) await scheduler.run(() => isStopped, scheduler.nowMs + 10);
  })();
  return {
    process: new SimulatedProcess('process', { host, chance: new Chance(2) }),
    async stop() {
      isStopped = true;
      await pumping;
    },
  };
}

// Which state machine a seed runs: the small one shows more of the engine in less time, the product's own shows the rest.
import type { Driver } from './driver.ts';
import { metadataDriver } from './metadata-driver.ts';
import { registerDriver } from './register-driver.ts';

const DRIVERS: readonly Driver[] = [registerDriver, metadataDriver];

/** By the seed, which alone says what happens. */
export function driverOf(seed: number): Driver {
  return DRIVERS[seed % DRIVERS.length] as Driver;
}

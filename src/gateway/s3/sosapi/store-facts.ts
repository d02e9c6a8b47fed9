// What a gateway says of the store as a whole, for the operations that tell clients of it (sos-objects.ts).
import type { MeasuredCapacity } from './capacity.ts';

export interface StoreFacts {
  /** Of this program. */
  readonly version: string;
  /** Of this process: wall clock, ms since epoch. */
  readonly startedAtMs: number;
  /** A reading that is shared for some seconds. Rejects with ServiceUnavailable when no disk answers. */
  readCapacity(): Promise<MeasuredCapacity>;
}

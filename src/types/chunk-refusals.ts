// Refusals of a disk, as opposed to failures: the same values whether it is local or remote.
import { BrokenInvariant } from '../base/assert.ts';
import { AppError } from './errors.ts';

/** A write by a lower placement version than the disk's node knows (R34). */
export class StaleMap extends AppError {
  override name = 'StaleMap';
  /** Of the node's map. */
  readonly version: number;

  constructor(version: number) {
    super('ServiceUnavailable', { cause: new Error(`placement ${version} is known by now (R34)`) });
    this.version = version;
  }
}

/** An order in the name of an epoch that is over (R21, R38). */
export class OldFence extends AppError {
  override name = 'OldFence';

  constructor() {
    super('ServiceUnavailable', { cause: new Error('an order of an older epoch (R38)') });
  }
}

/** A copy was to go as one that lives elsewhere, but by the newest map it lives here (R38). */
export class OwnedHere extends AppError {
  override name = 'OwnedHere';

  constructor() {
    super('ServiceUnavailable', { cause: new Error('the disk owns the chunk (R38)') });
  }
}

/** The disk could not read this chunk, and cannot say that it is lost. Nothing is said of its other chunks. */
export class ChunkUnread extends AppError {
  override name = 'ChunkUnread';

  constructor(cause: unknown) {
    super('ServiceUnavailable', { cause });
  }
}

/** The disk has too much to do: it has answered, which a sender with too much to do has not. */
export class DiskBusy extends AppError {
  override name = 'DiskBusy';

  constructor() {
    super('SlowDown');
  }
}

/** R24: resending a chunk resends the same bytes; other bytes under its id are a bug of the sender. */
export class OtherBytes extends BrokenInvariant {
  override name = 'OtherBytes';

  constructor(chunk: string) {
    super(`chunk ${chunk} is there with other bytes`);
  }
}

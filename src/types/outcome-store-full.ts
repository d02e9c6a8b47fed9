// How a request is refused of which an outcome would be kept, where as much is kept of earlier ones as may be. SlowDown is
// what clients take for "later", and send again; what is kept is bounded by the day, so a slower client never meets it.
import { AppError } from './errors.ts';

const MESSAGE =
  'As much is kept of earlier requests with idempotency tokens and of renames of prefixes as may be. Nothing was done.';

/** Its class distinguishes it in metrics from other refusals. */
export class OutcomeStoreFull extends AppError {
  constructor() {
    super('SlowDown', { message: MESSAGE });
  }
}

// How a request is refused of which an outcome would be kept, where as much is kept of earlier ones as may be. SlowDown is
// what clients take for "later", and send again; what is kept is bounded by the day, so a slower client never meets it.
import { AppError } from './errors.ts';

export function tooMuchKept(): AppError {
  const message =
    'As much is kept of earlier requests with idempotency tokens and of renames of prefixes as may be. Nothing was done.';
  return new AppError('SlowDown', { message });
}

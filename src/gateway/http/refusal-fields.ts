// What the log says of a request that was refused for want of a right, of whichever service: for the operator alone.
import { redactOptional } from './redact.ts';

/** What was asked for, and what refused it. */
interface RefusedAccess {
  readonly action: string;
  readonly resource: string;
  readonly rule: string;
}

/** The requested action, and what has refused it; nothing for a request that ended otherwise. */
export function refusalFields({
  errorCode,
  refusedAccess,
}: {
  errorCode?: string;
  refusedAccess?: RefusedAccess;
}): object {
  if (errorCode !== 'AccessDenied' || refusedAccess === undefined) return {};
  const { action, resource, rule } = refusedAccess;
  return { refusedAction: action, refusedResource: redactOptional(resource), refusedBy: rule };
}

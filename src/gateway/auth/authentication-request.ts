// The parts of a request that authentication uses: what its signature covers, and the hosts for which it may have been
// made.
import type { SignedParts } from './canonical-request.ts';

/** What Host may have been when the client signed. */
export interface SignedHosts {
  /** What was sent; not where a proxy says that the request is about another bucket than it names. */
  readonly mayBeSent: boolean;
  /** Besides; asked for only when the signature does not fit. */
  others(): readonly string[];
}

export interface AuthenticationRequest extends SignedParts {
  readonly hosts: SignedHosts;
}

// The embedded form: every role in one process over one data folder. Wiring only; reading settings and acting on
// signals is server.ts.
import type { Config } from '../src/config/schema.ts';
import type { ClockPort } from '../src/ports/clock.ts';
import type { Logger } from '../src/ports/telemetry.ts';

export interface EmbeddedServer {
  /** As clients on this machine reach it: `http://127.0.0.1:9000`. */
  readonly endpoint: string;
  /** Credentials of the root account. */
  readonly root: { readonly accessKey: string; readonly secretKey: string };
  /** True when this start made the data folder. */
  readonly isFirstStart: boolean;
  /** Resolves with the error when a store has failed for good (R20): requests are answered 503 from then on. */
  readonly failed: Promise<Error>;
  /** Reads certificate and key again; connections that exist keep the old ones. */
  reloadTls(): Promise<void>;
  /** Lets requests in flight end, drainTimeout at most, then closes everything. Safe to repeat. */
  stop(): Promise<void>;
}

export interface EmbeddedOptions {
  config: Config;
  log: Logger;
  /** Of tests; default the system's. */
  clock?: ClockPort;
}

/** Resolves when requests are taken. Rejects with DataDirError and the like, having closed what it had opened. */
export declare function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer>;

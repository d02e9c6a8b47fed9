// The embedded server: wiring of all roles in one process.

import type { Config } from '../src/config/schema.ts';
import { Refusal } from '../src/lib/refusal.ts';
export async function runServer(config: Config): Promise<number> {
  throw new Refusal(`no server yet to listen on ${config.listen.host}:${config.listen.port}`);
}

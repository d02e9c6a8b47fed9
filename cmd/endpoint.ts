// Where a server is for those on the same machine.

import { Refusal } from '../src/base/refusal.ts';
import { bracketed } from '../src/base/text/host-port.ts';
import type { Config } from '../src/config/schema.ts';

/** The address as clients here reach it. */
export function endpointOf({ tls, listen }: Config, port: number): string {
  const scheme = tls.mode === 'off' ? 'http' : 'https';
  return `${scheme}://${reachableHost(listen.host)}:${port}`;
}

/**
 * Where a process with these settings answers health checks: health.listen, else the address for clients. Throws {@link
 * Refusal} when the port is any free one.
 */
export function healthEndpointOf(config: Config): string {
  const { host, port } = config.health.listen ?? config.listen;
  if (port === 0) throw new Refusal('a port that the server chooses by itself is not known here: give --url');
  if (config.health.listen === undefined) return endpointOf(config, port);
  return `http://${reachableHost(host)}:${port}`;
}

/** "Every address" cannot be connected to. */
function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return bracketed(host);
}

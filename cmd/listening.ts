// Address, certificate and connection settings of the gateway, from the settings of the server. Wiring only.
import { once } from 'node:events';
import { createServer } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { must } from '../src/base/assert.ts';
import { Refusal } from '../src/base/refusal.ts';
import { hostPortText } from '../src/base/text/host-port.ts';
import type { Config } from '../src/config/schema.ts';
import type { Certificate } from '../src/gateway/http/listener.ts';
import type { Gateway, GatewaySettings } from '../src/gateway/http/server.ts';
import { writeDurableFile } from '../src/platform/disk/durable-file.ts';
import { machineNames, openTls, selfSignedNames, type TlsSource } from '../src/platform/tls/tls.ts';
import { LIMITS } from '../src/types/limits.ts';
import { shareOfThread } from '../src/types/thread-share.ts';

/** Where the command line tool finds the address (cli/connect.ts). */
const ADDRESS_FILE = 'server.json';

/** Undefined for plain HTTP. */
export async function openListenerTls(config: Config, folder: string): Promise<TlsSource | undefined> {
  const { mode, cert, key, names } = config.tls;
  if (mode === 'off') return undefined;
  if (mode === 'self-signed') {
    const { host } = config.listen;
    const isAny = isEveryAddress(host);
    const machine = isAny ? machineNames(hostname(), networkInterfaces()) : [host];
    return openTls({
      mode,
      folder,
      namesOwnAddresses: isAny,
      names: selfSignedNames({ domains: config.domain, names, machine }),
      // 64 characters are the most that a common name may have.
      commonName: (isAny ? [...names, ...machine] : [host]).find((name) => name.length <= 64) ?? 'Holdfast',
    });
  }
  return openTls({
    mode,
    cert: must(cert, 'checked with the settings'),
    key: must(key, 'checked with the settings'),
  });
}

/** Whether a self-signed certificate rests on what this machine calls itself, which clients may not know it by. */
export function guessesNames({ tls, listen, domain }: Config): boolean {
  const isConfigured = tls.names.length > 0 || domain.length > 0;
  return tls.mode === 'self-signed' && isEveryAddress(listen.host) && !isConfigured;
}

function isEveryAddress(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** `threads`: how many gateways of this process share its bounds. */
export function gatewaySettings(
  config: Config,
  tls: Certificate | undefined,
  { threads }: { threads: number } = { threads: 1 },
): GatewaySettings {
  return {
    host: config.listen.host,
    port: config.listen.port,
    ...(tls && { tls }),
    domains: config.domain,
    publicNames: config.publicNames,
    trustedProxies: config.trustedProxies,
    takesSigV2: config.signatureV2 === 'on',
    answersSosapi: config.sosapi === 'on',
    takesSecretsOverHttp: config.requests.secretsOverHttp,
    headerTimeoutMs: config.requests.headerTimeoutMs,
    keepAliveTimeoutMs: config.requests.keepAliveTimeoutMs,
    idleTimeoutMs: config.requests.idleTimeoutMs,
    threads,
    connectionsMax: shareOfThread(tls ? LIMITS.tlsConnectionsMax : LIMITS.connectionsMax, { threads }),
    requestsInFlightMax: shareOfThread(LIMITS.requestsInFlightMax, { threads }),
    lifecycleDayMs: config.lifecycle.dayMs,
    trafficFlushMs: config.metering.flushIntervalMs,
  };
}

/** Reads certificate and key again, for new connections. Rejects when they are bad; the old ones stay in use. */
export async function exchangeCertificate(gateway: Gateway, tls: TlsSource | undefined): Promise<void> {
  if (tls !== undefined) gateway.setCertificate(await tls.reload());
}

/** Takes connections. Resolves with the port; rejects with {@link Refusal} when the address cannot be had. */
export async function startListening(gateway: Gateway, { listen }: Config): Promise<number> {
  try {
    return (await gateway.start()).port;
  } catch (error) {
    throw cannotListen(listen, error);
  }
}

/** Before anything is made or opened for a server: throws {@link Refusal} when its address cannot be had. */
export async function refuseTaken({ host, port }: { host: string; port: number }): Promise<void> {
  const server = createServer();
  try {
    server.listen({ host, port });
    await once(server, 'listening');
    server.close();
    await once(server, 'close');
  } catch (error) {
    throw cannotListen({ host, port }, error);
  }
}

/** Whether several sockets may listen on one port here: where not, one thread serves all clients. */
export async function sharesPorts({ listen: { host } }: Config): Promise<boolean> {
  const server = createServer();
  try {
    server.listen({ host, port: 0, reusePort: true });
    await once(server, 'listening');
    server.close();
    await once(server, 'close');
    return true;
  } catch {
    return false;
  }
}

function cannotListen({ host, port }: { host: string; port: number }, error: unknown): Refusal {
  const { code, message } = error as NodeJS.ErrnoException;
  const why = code === 'EADDRINUSE' ? 'another program listens there' : message;
  return new Refusal(`cannot listen on ${hostPortText({ host, port })}: ${why}`);
}

/** Writes down for the command line tool where the server is. */
export async function writeEndpointFile(folder: string, endpoint: string): Promise<void> {
  await writeDurableFile(join(folder, ADDRESS_FILE), `${JSON.stringify({ endpoint })}\n`);
}

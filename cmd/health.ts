// holdfast health: asks a process how it is, for supervisors that run a command and look at its exit code, as those of
// containers do. It asks with the settings that the process itself was started with, so nothing has to be said twice.
import { readFile } from 'node:fs/promises';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { join } from 'node:path';
import { describeConnectionFailure } from '../src/base/connection-failure.ts';
import { Refusal } from '../src/base/refusal.ts';
import { hostPortText } from '../src/base/text/host-port.ts';
import { DEFAULT_ENDPOINT, ENDPOINT_VARIABLE, SERVER_FILE } from '../src/cli/connection-help.ts';
import type { Config } from '../src/config/schema.ts';
import { healthEndpointOf } from './endpoint.ts';

/** Below what supervisors grant by default (30 s), and above any pause of a process that works. */
const ANSWER_MAX_MS = 5000;
const OK = 200;
/** Settings that name no address of their own: the process may have been started with others. */
const DEFAULT_LISTEN = new URL(DEFAULT_ENDPOINT).host;

export interface HealthOptions {
  /** Of the process, as http://127.0.0.1:9100; otherwise as its settings say. */
  endpoint?: string;
  /** The same: earlier releases had this one alone. */
  url?: string;
  /** Whether it runs, instead of whether it serves. */
  live?: true;
}

/** Resolves when the answer is good. Throws {@link Refusal} with what was answered, or why nothing was. */
export async function askHealth(
  config: Config,
  { endpoint, url, live }: HealthOptions,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const path = live ? '/health/live' : '/health/ready';
  const given = endpoint ?? url ?? (env[ENDPOINT_VARIABLE] || undefined);
  const asked = addressOf(path, given ?? (await endpointInFolder(config)) ?? healthEndpointOf(config));
  const status = await statusOf(asked).catch((error: Error) => {
    throw new Refusal(`${asked} does not answer: ${describeConnectionFailure(asked, error)}`);
  });
  if (status !== OK) throw new Refusal(`${asked} answers ${status}`);
}

/** What the data folder says; undefined where the settings say it, or the folder does not. */
async function endpointInFolder({ health, listen, dataDir }: Config): Promise<string | undefined> {
  const isDefault = hostPortText(listen) === DEFAULT_LISTEN;
  if (health.listen !== undefined || !isDefault) return undefined;
  const text = await readFile(join(dataDir, SERVER_FILE), 'utf8').catch(() => '{}');
  try {
    return (JSON.parse(text) as { endpoint?: string }).endpoint;
  } catch {
    return undefined;
  }
}

function addressOf(path: string, endpoint: string): URL {
  const url = URL.parse(path, endpoint);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new Refusal(`"${endpoint}" is not an http(s) URL`);
  return url;
}

function statusOf(url: URL): Promise<number | undefined> {
  const options = { agent: false, signal: AbortSignal.timeout(ANSWER_MAX_MS) };
  return new Promise((resolve, reject) => {
    const request =
      url.protocol === 'https:'
        ? // The certificate is made out to a name for clients, seldom to this address, and nothing secret is said.
          requestHttps(url, { ...options, rejectUnauthorized: false })
        : requestHttp(url, options);
    request.once('response', (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode));
      response.once('error', reject);
    });
    request.once('error', reject);
    request.end();
  });
}

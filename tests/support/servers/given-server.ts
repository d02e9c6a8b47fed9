// The api and client tests against a server that somebody else has started, a cluster's gateways say, instead of one of
// their own (README, Tests):
//   HOLDFAST_TEST_ENDPOINT=http://127.0.0.1:9000,http://127.0.0.1:9001   several are reached in turn, connection by connection
//   HOLDFAST_TEST_ACCESS_KEY, HOLDFAST_TEST_SECRET_KEY                   of the root account
//   HOLDFAST_TEST_DATA_DIR=DIR    for those that call the command line tool: the folder with its root credentials
//   HOLDFAST_TEST_LOG=FILE,FILE   for those that read its log: of each endpoint
// It must have been started with GIVEN_SETTINGS. Tests that need a server of their own, its clock, its folder or its log
// in this process are `ownServerTest`s (own-server-test.ts): they are skipped, and counted as such.
import { readFileSync, statSync } from 'node:fs';
import http from 'node:http';
import type { Duplex } from 'node:stream';
import { must } from '../../../src/base/assert.ts';
import { startBalancer } from './balancer.ts';
import type { LogLine, StartOptions, TestServer } from './start-server.ts';

/** What the api tests want of a server, all of them together. */
export const GIVEN_SETTINGS: Readonly<Record<string, string>> = {
  domain: 'store.test,s3.localhost,s3.one.test,two.test,s3.test,eu.s3.test,other.example',
};

export const isServerGiven = () => process.env.HOLDFAST_TEST_ENDPOINT !== undefined;

/** undefined: none is given, start one. Throws when the test would need its own. */
export async function givenServer(options: StartOptions): Promise<TestServer | undefined> {
  if (!isServerGiven()) return undefined;
  // A process of its own it is.
  const { settings = {}, countsForCoverage: _, child: __, ...odd } = options;
  const foreign = Object.entries(settings).filter(([key, value]) => !has(key, value));
  if (foreign.length > 0 || Object.keys(odd).length > 0)
    throw new Error(
      `a given server has no ${[...foreign, ...Object.keys(odd)].join(', ')}: make it an ownServerTest`,
    );
  const variable = (name: string) =>
    must(process.env[`HOLDFAST_TEST_${name}`], `HOLDFAST_TEST_${name} is set`);
  endpoint ??= openEndpoint(variable('ENDPOINT').split(','));
  return {
    endpoint: await endpoint,
    accessKey: variable('ACCESS_KEY'),
    secretKey: variable('SECRET_KEY'),
    dataDir: process.env.HOLDFAST_TEST_DATA_DIR ?? '',
    logs: readLogs(process.env.HOLDFAST_TEST_LOG?.split(',') ?? []),
    output: () => '',
    stop: async () => 0,
    kill: () => Promise.reject(new Error('a given server is not ours to kill')),
    exited: new Promise(() => {}),
  };
}

/** Of this process: what it asks, it asks of all of them. */
let endpoint: Promise<string> | undefined;

async function openEndpoint(given: readonly string[]): Promise<string> {
  const [first = ''] = given;
  if (given.length === 1) return first;
  const balancer = await startBalancer(given);
  http.globalAgent = new FreshConnections(balancer, given);
  return balancer;
}

/**
 * One for each request, so that the next goes elsewhere, though the server is not told so. What would go to the balancer
 * goes straight to the servers in turn, because answers to bodies that nobody reads may get lost in it.
 */
class FreshConnections extends http.Agent {
  readonly #balancerPort: string;
  readonly #targets: readonly URL[];
  #turn = 0;

  constructor(balancer: string, targets: readonly string[]) {
    super({ keepAlive: true });
    this.#balancerPort = new URL(balancer).port;
    this.#targets = targets.map((target) => new URL(target));
  }

  override createConnection(
    options: http.ClientRequestArgs,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | null | undefined {
    const target = this.#targets[this.#turn++ % this.#targets.length];
    const isBalanced = String(options.port) === this.#balancerPort && target !== undefined;
    const straight = isBalanced ? { host: target.hostname, port: target.port } : {};
    return super.createConnection({ ...options, ...straight }, callback);
  }

  override keepSocketAlive(): boolean {
    return false;
  }
}

/** What it logs from now on. */
function readLogs(paths: readonly string[]): () => LogLine[] {
  const starts = paths.map((path) => ({ path, fromBytes: statSync(path).size }));
  return () => starts.flatMap(({ path, fromBytes }) => linesOf(readFileSync(path).subarray(fromBytes)));
}

function linesOf(log: Buffer): LogLine[] {
  // The last one may not be whole.
  const lines = log.toString().split('\n').slice(0, -1);
  return lines.flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as LogLine] : []));
}

function has(key: string, value: string): boolean {
  const items = GIVEN_SETTINGS[key]?.split(',') ?? [];
  return value.split(',').every((item) => items.includes(item));
}

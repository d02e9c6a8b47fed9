// The api tests against a server that somebody else has started, a cluster's gateway say, instead of one of their own:
//   HOLDFAST_TEST_ENDPOINT=http://127.0.0.1:9000 HOLDFAST_TEST_ACCESS_KEY=... HOLDFAST_TEST_SECRET_KEY=... npm test -- tests/api
// with HOLDFAST_TEST_DATA_DIR=DIR for those that call the command line tool: the folder with its root credentials; and
// HOLDFAST_TEST_LOG=FILE for those that read its log. It must have been started with GIVEN_SETTINGS. Tests that need a server of their own, its clock, its folder or its log
// are `ownServerTest`s (own-server-test.ts): they are skipped, and counted as such.
import { readFileSync, statSync } from 'node:fs';
import { must } from '../../src/lib/assert.ts';
import type { LogLine, StartOptions, TestServer } from './start-server.ts';

/** What the api tests want of a server, all of them together. */
export const GIVEN_SETTINGS: Readonly<Record<string, string>> = {
  domain: 'store.test,s3.localhost,s3.one.test,two.test',
};

export const isServerGiven = () => process.env.HOLDFAST_TEST_ENDPOINT !== undefined;

/** undefined: none is given, start one. Throws when the test would need its own. */
export function givenServer(options: StartOptions): TestServer | undefined {
  const endpoint = process.env.HOLDFAST_TEST_ENDPOINT;
  if (endpoint === undefined) return undefined;
  // A process of its own it is.
  const { settings = {}, countsForCoverage: _, child: __, ...odd } = options;
  const foreign = Object.entries(settings).filter(([key, value]) => !has(key, value));
  if (foreign.length > 0 || Object.keys(odd).length > 0)
    throw new Error(
      `a given server has no ${[...foreign, ...Object.keys(odd)].join(', ')}: make it an ownServerTest`,
    );
  const variable = (name: string) =>
    must(process.env[`HOLDFAST_TEST_${name}`], `HOLDFAST_TEST_${name} is set`);
  return {
    endpoint,
    accessKey: variable('ACCESS_KEY'),
    secretKey: variable('SECRET_KEY'),
    dataDir: process.env.HOLDFAST_TEST_DATA_DIR ?? '',
    logs: readLog(process.env.HOLDFAST_TEST_LOG),
    output: () => '',
    stop: async () => 0,
    kill: () => Promise.reject(new Error('a given server is not ours to kill')),
    exited: new Promise(() => {}),
  };
}

/** What it logs from now on. */
function readLog(path: string | undefined): () => LogLine[] {
  if (path === undefined) return () => [];
  const { size } = statSync(path);
  return () =>
    readFileSync(path)
      .subarray(size)
      .toString()
      .split('\n')
      // The last one may not be whole.
      .slice(0, -1)
      .flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as LogLine] : []));
}

function has(key: string, value: string): boolean {
  const items = GIVEN_SETTINGS[key]?.split(',') ?? [];
  return value.split(',').every((item) => items.includes(item));
}

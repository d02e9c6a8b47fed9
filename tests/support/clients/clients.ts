// Real S3 programs against a server of the test's own: a child process with its data in a temporary folder, over HTTP
// or over TLS with a self-signed certificate, and programs that see nothing of this machine's settings, only a PATH, an
// empty home, a locale, and the credentials that they are given.
// Not here: what each program is asked to do (tests/clients), nor a client of our own (s3-client.ts).
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { must } from '../../../src/base/assert.ts';
import { childrenOf, parseXml, textOf } from '../../../src/base/xml/parse-xml.ts';
import { isServerGiven } from '../servers/given-server.ts';
import { ownServerTest } from '../servers/own-server-test.ts';
import { type Access, pathOf, type RawRequest, send } from '../servers/raw-s3.ts';
import { createAccount } from '../servers/s3-api.ts';
import { startServer, type TestServer } from '../servers/start-server.ts';
import { runAwsForked } from './aws-forks.ts';
import { type ClientProgram, programPath, VENV_AWS, VENV_PYTHON, VENV_RCLONE } from './client-programs.ts';

const CLIENT_TIMEOUT_MS = 400_000;

export type Transport = 'http' | 'https';

/** A test over this transport. A given server has the one that it has. */
export const testOver = (transport: Transport): typeof test => (transport === 'https' ? ownServerTest : test);

/** The programs: Debian's, so that no other of the same name is taken, and PyPI's from our own environment. */
export const PROGRAMS = {
  restic: installed('restic'),
  rclone: installed('rclone'),
  s3cmd: installed('s3cmd'),
  debianAws: installed('aws'),
  borg: installed('borg'),
  barmanWalArchive: installed('barman-cloud-wal-archive'),
  pypiAws: VENV_AWS,
  pypiPython: VENV_PYTHON,
  pypiRclone: VENV_RCLONE,
  curl: '/usr/bin/curl',
} as const;

function installed(name: ClientProgram): string {
  return must(programPath(name), `${name} is not installed: npm test brings it`);
}

export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  input?: string | Buffer;
  /** The exit code that is right; every other one throws with what the program said. */
  code?: number;
}

/** A server, a scratch folder, and the programs that reach them. */
export interface ClientWorld {
  readonly server: TestServer;
  readonly transport: Transport;
  /** Removed at the end. */
  readonly folder: string;
  /** The certificate to trust; only over https. */
  readonly caFile?: string;
  /** Of what the programs make: the name of their account. */
  readonly owner: string;
  /** Host and port of the endpoint. */
  readonly host: string;
  /** A new path in the folder. */
  path(name: string): string;
  /** What boto3 and the AWS CLI read. */
  awsVariables(): Record<string, string>;
  run(program: string, args: readonly string[], options?: RunOptions): Promise<Ran>;
  close(): Promise<void>;
}

export async function openWorld(options: {
  transport: Transport;
  settings?: Readonly<Record<string, string>>;
}): Promise<ClientWorld> {
  const { transport } = options;
  const isTls = transport === 'https';
  const started = await startServer({
    child: true,
    settings: { ...(isTls && { 'tls.mode': 'self-signed' }), ...options.settings },
  });
  // A given one has seen others: an account of its own sees none of their buckets, and leaves none.
  const account = isServerGiven() ? await createAccount(started) : { ...started, name: 'root' };
  const server: TestServer = { ...started, accessKey: account.accessKey, secretKey: account.secretKey };
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-client-'));
  const home = join(folder, 'home');
  mkdirSync(home);
  const caFile = isTls ? join(server.dataDir, 'tls-cert.pem') : undefined;
  const base = baseEnvironment(home);
  return {
    server,
    transport,
    folder,
    owner: account.name,
    ...(caFile !== undefined && { caFile }),
    host: new URL(server.endpoint).host,
    path: (name) => join(folder, name),
    awsVariables: () => ({
      AWS_ACCESS_KEY_ID: server.accessKey,
      AWS_SECRET_ACCESS_KEY: server.secretKey,
      AWS_DEFAULT_REGION: 'us-east-1',
      // Otherwise the CLI may look for an instance role before it takes what it was given.
      AWS_EC2_METADATA_DISABLED: 'true',
      ...(caFile !== undefined && { AWS_CA_BUNDLE: caFile }),
    }),
    run: (program, args, run = {}) => runProgram(program, args, { ...run, env: { ...base, ...run.env } }),
    async close() {
      if (isServerGiven()) await removeBuckets(server);
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Every version of every object of an account, and its buckets. */
async function removeBuckets(access: Access): Promise<void> {
  const ask = async (wanted: RawRequest) => parseXml((await send(access, wanted)).body, { depthMax: 16 });
  const [buckets] = childrenOf(await ask({ method: 'GET', path: '/' }), 'Buckets');
  for (const bucket of childrenOf(must(buckets, 'a list of buckets'), 'Bucket')) {
    const path = `/${textOf(bucket, 'Name')}`;
    for (;;) {
      const page = await ask({ method: 'GET', path: `${path}?versions` });
      const versions = [...childrenOf(page, 'Version'), ...childrenOf(page, 'DeleteMarker')];
      for (const version of versions) {
        const versionPath = pathOf(path.slice(1), textOf(version, 'Key') ?? '');
        const versionId = encodeURIComponent(textOf(version, 'VersionId') ?? '');
        await send(access, { method: 'DELETE', path: `${versionPath}?versionId=${versionId}` });
      }
      if (versions.length === 0) break;
    }
    await send(access, { method: 'DELETE', path });
  }
}

/** What a program sees at least, and nothing else of this machine. */
export function baseEnvironment(home: string): Record<string, string> {
  return { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: home, LANG: 'C.UTF-8', LC_ALL: 'C.UTF-8' };
}

/** Runs a program to its end. Throws when its exit code is not the one that is right (0 unless told). */
export async function runProgram(
  program: string,
  args: readonly string[],
  options: RunOptions,
): Promise<Ran> {
  const { env = {}, cwd, input } = options;
  const ran =
    program === VENV_AWS && input === undefined
      ? await runAwsForked({ args, env, cwd })
      : await startProgram(program, args, options);
  if (ran.code !== (options.code ?? 0))
    throw new Error(`${program} ${args.join(' ')}\nended with ${ran.code}\n${ran.stdout}\n${ran.stderr}`);
  return ran;
}

async function startProgram(program: string, args: readonly string[], options: RunOptions): Promise<Ran> {
  const child = spawn(program, args, {
    env: options.env,
    cwd: options.cwd,
    stdio: 'pipe',
    timeout: CLIENT_TIMEOUT_MS,
  });
  const written = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  child.stdout.on('data', (bytes: Buffer) => written.stdout.push(bytes));
  child.stderr.on('data', (bytes: Buffer) => written.stderr.push(bytes));
  // A program that needs no input may be gone before it has read what it was given.
  child.stdin.on('error', () => {});
  child.stdin.end(options.input ?? '');
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  const text = (pieces: readonly Buffer[]) => Buffer.concat(pieces).toString();
  const stderr = text(written.stderr) + (signal === null ? '' : `\nended by ${signal}`);
  return { code: code ?? -1, stdout: text(written.stdout), stderr };
}

// Finds the server and the operator's credentials for the command line tool: options first, then the environment,
// then what the server keeps in its data folder for this purpose.
import { readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { refuseExposedSecret } from '../base/crypto/secret-exposure.ts';
import { Refusal } from '../base/refusal.ts';
import { createQueryClient, type QueryClient } from './access/query-client.ts';
import {
  DEFAULT_ENDPOINT,
  ENDPOINT_VARIABLE,
  IDENTITY_ENDPOINT_VARIABLES,
  S3_ENDPOINT_VARIABLES,
  SERVER_FILE,
} from './connection-help.ts';
import { type ClientOptions, createOperatorClient, type OperatorClient } from './operator-client.ts';
import { createS3Client, type S3Client } from './s3-client.ts';
import type { Credentials } from './sign-request.ts';

/** What the tool reaches of the world. */
export interface CliContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Prints a line. */
  print(line: string): void;
  nowMs(): number;
  sleep(ms: number): Promise<void>;
}

/** The same for commands whose repetition would do something again. */
export interface TokenCliContext extends CliContext {
  /** An idempotency token that nobody has had, of 32 hex digits. */
  newToken(): string;
}

/** The same for commands that write into the data folder. */
export interface FileCliContext extends CliContext {
  /** Replaces a file, whole or not at all, for its owner alone. Durable when it resolves. */
  writeFile(path: string, text: string): Promise<void>;
}

/** Options that every command takes. */
export interface ConnectOptions {
  endpoint?: string;
  dataDir?: string;
  json?: boolean;
}

const CREDENTIALS_FILE = 'root-credentials.json';

export async function connect(context: CliContext, options: ConnectOptions): Promise<OperatorClient> {
  const folder = folderOf(context, options);
  return createOperatorClient({
    ...(await findServer(context, options)),
    credentials: await findCredentials(context.env, folder),
  });
}

/** The same for requests of S3, which go by the keys of any account: those that every S3 tool takes, else the operator's. */
export async function connectS3(context: CliContext, options: ConnectOptions): Promise<S3Client> {
  return createS3Client({
    ...(await findServer(context, options, S3_ENDPOINT_VARIABLES)),
    credentials: await findS3Credentials(context, options),
  });
}

/** IAM, STS and S3 of one server, by the keys of {@link connectS3}. */
export interface IdentityConnection {
  readonly query: QueryClient;
  readonly s3: S3Client;
  /** Where it is, and what to trust there besides: for lines that people paste. */
  readonly endpoint: string;
  readonly certificateFile: string | undefined;
}

export async function connectIdentity(
  context: CliContext,
  options: ConnectOptions,
): Promise<IdentityConnection> {
  const server = {
    ...(await findServer(context, options, IDENTITY_ENDPOINT_VARIABLES)),
    credentials: await findS3Credentials(context, options),
  };
  const certificateFile = resolve(certificateOf(folderOf(context, options)));
  return {
    query: createQueryClient(server),
    s3: createS3Client(server),
    endpoint: server.endpoint,
    certificateFile: server.certificate === undefined ? undefined : certificateFile,
  };
}

/** The operator API by the keys of {@link connectS3}, to see what these have begun: those of an account it refuses. */
export async function connectWatcher(context: CliContext, options: ConnectOptions): Promise<OperatorClient> {
  return createOperatorClient({
    ...(await findServer(context, options, S3_ENDPOINT_VARIABLES)),
    credentials: await findS3Credentials(context, options),
  });
}

async function findS3Credentials(context: CliContext, options: ConnectOptions): Promise<Credentials> {
  return accountKeys(context.env) ?? (await findCredentials(context.env, folderOf(context, options)));
}

/** Throws {@link Refusal} where half of them is there: the operator's would do what was not meant to be done by these. */
function accountKeys(env: CliContext['env']): Credentials | undefined {
  const { AWS_ACCESS_KEY_ID: accessKey, AWS_SECRET_ACCESS_KEY: secretKey } = env;
  if (accessKey && secretKey)
    return { accessKey, secretKey, sessionToken: env.AWS_SESSION_TOKEN || undefined };
  // Set and empty is what a script leaves that had no keys to set.
  if (accessKey === undefined && secretKey === undefined) return undefined;
  const missing = accessKey ? 'AWS_SECRET_ACCESS_KEY' : 'AWS_ACCESS_KEY_ID';
  throw new Refusal(`${missing} is missing: set both, or neither to use the operator's keys`);
}

function folderOf(context: CliContext, options: ConnectOptions): string {
  return options.dataDir ?? (context.env.HOLDFAST_DATA_DIR || './data');
}

function certificateOf(folder: string): string {
  return join(folder, 'tls-cert.pem');
}

async function findServer(
  context: CliContext,
  options: ConnectOptions,
  variables: readonly string[] = [],
): Promise<Omit<ClientOptions, 'credentials'>> {
  const folder = folderOf(context, options);
  // Set and empty counts as not set, as with every setting.
  const given = [ENDPOINT_VARIABLE, ...variables].map((name) => context.env[name]).find(Boolean);
  const endpoint = options.endpoint ?? given ?? (await readJson(join(folder, SERVER_FILE)))?.endpoint;
  return {
    endpoint: endpoint ?? DEFAULT_ENDPOINT,
    certificate: await readText(certificateOf(folder)),
    nowMs: context.nowMs,
  };
}

/** Where the root account's credentials are written down: in the folder, in the environment, in both, or in neither. */
export async function findRootCredentials(
  context: CliContext,
  options: ConnectOptions,
): Promise<{ file: string | undefined; isInEnvironment: boolean }> {
  const { HOLDFAST_ROOT_ACCESS_KEY: accessKey, HOLDFAST_ROOT_SECRET_KEY: secretKey } = context.env;
  const path = join(folderOf(context, options), CREDENTIALS_FILE);
  const file = (await readText(path)) === undefined ? undefined : path;
  return { file, isInEnvironment: Boolean(accessKey && secretKey) };
}

async function findCredentials(env: CliContext['env'], folder: string): Promise<Credentials> {
  const accessKey = env.HOLDFAST_ROOT_ACCESS_KEY;
  const secretKey = env.HOLDFAST_ROOT_SECRET_KEY;
  if (accessKey && secretKey) return { accessKey, secretKey };
  const path = join(folder, CREDENTIALS_FILE);
  const rights = await stat(path).catch(() => undefined);
  if (rights !== undefined) refuseExposedSecret(path, rights, process.getuid?.() ?? 0);
  const stored = await readJson(path);
  if (stored?.accessKey === undefined || stored.secretKey === undefined) {
    throw new Refusal(
      `no credentials: cannot read ${path}\n` +
        'Give the data folder with --data-dir, or set HOLDFAST_ROOT_ACCESS_KEY and HOLDFAST_ROOT_SECRET_KEY.',
    );
  }
  return { accessKey: stored.accessKey, secretKey: stored.secretKey };
}

async function readJson(path: string): Promise<Partial<Record<string, string>> | undefined> {
  const text = await readText(path);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal(`${path} is damaged`);
  }
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    return undefined;
  }
}

// Starts a whole embedded server for a test: in this process (fast, with a clock of the test's if it wants), or as a
// child process (for signals, kill -9 and the environment). On a free loopback port, with a temporary data folder.
// Not here: a client (s3-client.ts), nor anything that looks inside of the server.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startEmbedded } from '../../../cmd/embedded.ts';
import { processSettings } from '../../../cmd/process-settings.ts';
import { must } from '../../../src/base/assert.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { variableOf } from '../../../src/config/names.ts';
import { SETTINGS } from '../../../src/config/schema.ts';
import type { ClockPort } from '../../../src/ports/clock.ts';
import type { Logger } from '../../../src/ports/telemetry.ts';
import { leaveCoverage } from '../run/operation-coverage.ts';
import { COMPILE_CACHE, ROOT } from '../run/root.ts';
import { givenServer } from './given-server.ts';

/** The one that holdfast.mjs uses. */
const START_TIMEOUT_MS = 120_000;

export interface StartOptions {
  /** A process of its own instead of this one. */
  child?: boolean;
  /** Settings by key, written as in a flag: `{ 'storage.readingGrace': '1s' }`. */
  settings?: Readonly<Record<string, string>>;
  /** More environment; only for a child, which otherwise sees none of our variables. */
  env?: Readonly<Record<string, string>>;
  /** Only for a child: no file may grow beyond it, in steps of 512 bytes, as if the disk failed there. */
  fileBytesMax?: number;
  /** Of a child whose data the test has damaged: what it answers is no answer of a sound server. */
  isDamaged?: boolean;
  /** False: what its answers show is luck, and no operation or error counts as seen by them. Default true. */
  countsForCoverage?: boolean;
  /** An existing or new folder that outlives the server; default a temporary one that `stop` removes. */
  dataDir?: string;
  /** Only in this process. */
  clock?: ClockPort;
}

/** A line of the server's log: at least the event, and the fields that came with it. */
export interface LogLine {
  readonly level: string;
  readonly event: string;
  readonly [field: string]: unknown;
}

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface TestServer {
  /** As `http://127.0.0.1:40123`, without a slash at its end. */
  readonly endpoint: string;
  /** Of the root account. */
  readonly accessKey: string;
  readonly secretKey: string;
  readonly dataDir: string;
  /** Of a child. */
  readonly pid?: number;
  /** All lines so far; of a child, all that have arrived. */
  logs(): readonly LogLine[];
  /** Everything that a child wrote on stdout and stderr that is not a line of the log. */
  output(): string;
  /** Ends it gracefully and removes a temporary data folder. Resolves with the exit code. Safe to repeat. */
  stop(): Promise<number>;
  /** Sends a child a signal, and resolves when it is gone. */
  kill(signal: NodeJS.Signals): Promise<Exit>;
  /** Resolves when a child is gone, however that came. */
  readonly exited: Promise<Exit>;
}

/** A test that ends early must not leave servers behind. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Resolves when the server takes requests; rejects with its log when it does not come up. A given one is taken. */
export async function startServer(options: StartOptions = {}): Promise<TestServer> {
  const given = await givenServer(options);
  if (given !== undefined) return given;
  const dataDir = options.dataDir ?? join(await mkdtemp(join(tmpdir(), 'holdfast-test-')), 'data');
  // One thread, also where there are many processors: the clock of a test is that of the main thread.
  const settings = {
    listen: '127.0.0.1:0',
    'gateway.threads': '1',
    ...forcedSettings(options),
    ...options.settings,
    dataDir,
  };
  const removeFolder = async () => {
    if (options.dataDir === undefined) await rm(join(dataDir, '..'), { recursive: true, force: true });
  };
  return options.child === true
    ? startChild({ ...options, settings, dataDir, removeFolder })
    : startHere({ ...options, settings, dataDir, removeFolder });
}

async function startHere(options: {
  settings: Readonly<Record<string, string>>;
  dataDir: string;
  removeFolder: () => Promise<void>;
  clock?: ClockPort;
  countsForCoverage?: boolean;
}): Promise<TestServer> {
  const lines: LogLine[] = [];
  const server = await startEmbedded({
    config: loadConfig({ flags: options.settings }),
    log: memoryLog(lines),
    ...(options.clock && { clock: options.clock }),
  });
  let stopping: Promise<number> | undefined;
  const stop = async () => {
    await server.stop();
    if (options.countsForCoverage !== false) await leaveCoverage(lines);
    await options.removeFolder();
    return 0;
  };
  return {
    endpoint: server.endpoint,
    accessKey: server.root.accessKey,
    secretKey: server.root.secretKey,
    dataDir: options.dataDir,
    logs: () => lines,
    output: () => '',
    stop() {
      stopping ??= stop();
      return stopping;
    },
    kill: () => Promise.reject(new Error('only a child can be killed: startServer({ child: true })')),
    exited: new Promise(() => {}),
  };
}

async function startChild(options: {
  settings: Readonly<Record<string, string>>;
  env?: Readonly<Record<string, string>>;
  fileBytesMax?: number;
  isDamaged?: boolean;
  countsForCoverage?: boolean;
  dataDir: string;
  removeFolder: () => Promise<void>;
}): Promise<TestServer> {
  const limit = options.fileBytesMax === undefined ? '' : `ulimit -f ${options.fileBytesMax / 512}; `;
  const { flags, environment } = processSettings('server');
  const program = [process.execPath, ...flags, join(ROOT, 'cmd', 'main.ts'), 'server'];
  const child = spawn('/bin/sh', ['-c', `${limit}exec "$@"`, 'sh', ...program], {
    cwd: ROOT,
    env: {
      ...environment,
      ...cleanEnvironment(),
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      ...settingVariables(options.settings),
      ...options.env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  const exited = once(child, 'exit').then(([code, signal]): Exit => {
    running.delete(child);
    return { code, signal };
  });
  const written = collectOutput(child);
  const endpoint = await waitForStart({ written, exited, child });
  const root = JSON.parse(await readFile(join(options.dataDir, 'root-credentials.json'), 'utf8'));
  return {
    endpoint,
    accessKey: root.accessKey,
    secretKey: root.secretKey,
    dataDir: options.dataDir,
    pid: must(child.pid, 'a running child has a pid'),
    logs: () => written.lines,
    output: () => written.text.join('\n'),
    async stop() {
      child.kill('SIGTERM');
      const { code } = await exited;
      if (options.countsForCoverage !== false) {
        await leaveCoverage(written.lines, { isOdd: options.isDamaged });
      }
      await options.removeFolder();
      return code ?? -1;
    },
    async kill(signal) {
      child.kill(signal);
      return exited;
    },
    exited,
  };
}

interface Written {
  lines: LogLine[];
  text: string[];
  onText: (text: string) => void;
}

function collectOutput(child: ChildProcess): Written {
  const written: Written = { lines: [], text: [], onText: () => {} };
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: must(stream, 'the streams of a child are pipes') }).on('line', (text) => {
      const line = text.startsWith('{') ? parseLine(text) : undefined;
      if (line !== undefined) return void written.lines.push(line);
      written.text.push(text);
      written.onText(text);
    });
  }
  return written;
}

function parseLine(text: string): LogLine | undefined {
  try {
    return JSON.parse(text) as LogLine;
  } catch {
    return undefined;
  }
}

/** Resolves with the address, which the server prints when it takes requests, whatever its log level. */
async function waitForStart(options: {
  written: Written;
  exited: Promise<Exit>;
  child: ChildProcess;
}): Promise<string> {
  const { written, child } = options;
  const wrote = () => [...written.text, ...written.lines.map((line) => JSON.stringify(line))].join('\n');
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<string>((resolve, reject) => {
      written.onText = (text) => {
        const [, endpoint] = / is running at (https?:\/\/\S+)$/.exec(text) ?? [];
        if (endpoint !== undefined) resolve(endpoint);
      };
      options.exited.then(({ code }) => reject(new Error(`the server ended with ${code}:\n${wrote()}`)));
      timer = setTimeout(() => {
        child.kill('SIGKILL');
        reject(new Error(`the server did not start in ${START_TIMEOUT_MS} ms:\n${wrote()}`));
      }, START_TIMEOUT_MS);
    });
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The api suite runs a second time with every shard behind a transport (vitest.config.ts), and by hand with several gateway
 * threads (TEST_FORCE_THREADS=2). Threads have the system's clock, not one of a test.
 */
function forcedSettings({ clock }: StartOptions): Record<string, string> {
  const { TEST_FORCE_LOOPBACK, TEST_FORCE_THREADS } = process.env;
  return {
    ...(TEST_FORCE_LOOPBACK === 'true' && { 'metadata.forceLoopback': 'true' }),
    ...(TEST_FORCE_THREADS !== undefined &&
      clock === undefined && {
        'gateway.threads': TEST_FORCE_THREADS,
        'memory.bodyBuffer': `${64 * Number(TEST_FORCE_THREADS)}MiB`,
      }),
  };
}

/** This environment without settings that some developer may have set. */
export function cleanEnvironment(): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('HOLDFAST_')));
}

/** As environment of a process. */
export function settingVariables(settings: Readonly<Record<string, string>>): Record<string, string> {
  const variables = Object.entries(settings).map(([key, value]): [string, string] => {
    const row = must(
      SETTINGS.find((candidate) => candidate.key === key),
      `unknown setting ${key}`,
    );
    return [variableOf(row), value];
  });
  return Object.fromEntries(variables);
}

function memoryLog(lines: LogLine[]): Logger {
  const at = (level: string) => (fields: object, event: string) => {
    lines.push({ level, event, ...fields });
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

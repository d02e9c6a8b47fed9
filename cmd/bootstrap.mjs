// Bootstrap of every program here, in plain JavaScript so that any Node from 20 on can run it: installs the locked packages
// when they are missing or not those of package-lock.json, then runs the program with the Node 24 that came with them.
// Not here: which program (holdfast.mjs, tools/run.mjs), settings, anything of the server. All it says goes to stderr.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect, createServer } from 'node:net';
import { constants, tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const MODULES = join(ROOT, 'node_modules');
const STAMP = join(MODULES, '.holdfast-ready');
const COMPILE_CACHE = join(MODULES, '.cache', 'holdfast');
const NATIVE_PACKAGE = '@nxtedition/rocksdb';
const FORWARDED_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

class StartError extends Error {}

const say = (text) => process.stderr.write(`holdfast: ${text}\n`);
const readText = (path) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined);

/**
 * Runs a program in the foreground, as if it had replaced this process: same standard streams, signals passed on.
 * Ctrl-C reaches the whole process group and is passed on as well, so the program sees it twice; cmd/signals.ts
 * takes signals of one kind within a second as one. Resolves with { code, signal } of the program's end.
 */
function runForeground(command, commandArgs, options) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, commandArgs, { stdio: 'inherit', ...options });
    // It is there to be closed by the end of this process; it does not keep it.
    child.channel?.unref();
    const forward = (signal) => child.kill(signal);
    for (const signal of FORWARDED_SIGNALS) process.on(signal, forward);
    const release = () => {
      for (const signal of FORWARDED_SIGNALS) process.off(signal, forward);
    };
    child.on('error', (cause) => {
      release();
      reject(new StartError(`cannot run ${command}: ${cause.message}`));
    });
    child.on('exit', (code, signal) => {
      release();
      resolve({ code, signal });
    });
  });
}

/** Ends this process the way the program ended: with its exit code, or by the same signal. */
function endLike({ code, signal }) {
  if (signal === null) process.exit(code);
  process.kill(process.pid, signal);
  // A signal that cannot end this process (a core-dumping one is caught by some shells): the shell convention.
  process.exit(128 + (constants.signals[signal] ?? 0));
}

/** What the stamp says once everything is in place: the digest of the lock. */
function wantedStamp() {
  return createHash('sha256')
    .update(readFileSync(join(ROOT, 'package-lock.json')))
    .digest('hex');
}

/**
 * Compares what npm recorded about node_modules with the lock, package by package, so that packages installed by
 * hand, or a checkout that only touched the file's time, are not installed again. npm writes its record last, so an
 * interrupted install has none.
 */
function installedAsLocked({ isDevelopment }) {
  const record = readText(join(MODULES, '.package-lock.json'));
  if (record === undefined) return false;
  const installed = JSON.parse(record).packages;
  const locked = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).packages;
  return Object.entries(locked).every(([path, wanted]) => {
    if (path === '') return true;
    const found = installed[path];
    if (found !== undefined) return found.version === wanted.version && found.integrity === wanted.integrity;
    return wanted.optional === true || wanted.devOptional === true || (wanted.dev === true && !isDevelopment);
  });
}

/** True when the RocksDB binding has a binary for this machine, shipped with the package or compiled here. */
function hasNativeBinary() {
  const require = createRequire(join(MODULES, 'resolve-from-here.js'));
  try {
    require('node-gyp-build').resolve(join(MODULES, NATIVE_PACKAGE));
    return true;
  } catch {
    return false;
  }
}

/** npm itself: the one that runs us (`npm start`), else the one on the PATH. */
function npmCommand() {
  const running = process.env.npm_execpath;
  if (running?.endsWith('npm-cli.js') && existsSync(running)) return [process.execPath, [running]];
  const isOnPath = (process.env.PATH ?? '')
    .split(delimiter)
    .some((folder) => existsSync(join(folder, 'npm')));
  if (!isOnPath) throw new StartError('npm is needed to install the packages, and it is not on the PATH');
  return ['npm', []];
}

async function runNpm(...npmArgs) {
  const [command, leading] = npmCommand();
  // npm's own output goes to stderr: stdout belongs to the program, which may be printing JSON.
  const end = await runForeground(command, [...leading, ...npmArgs], { cwd: ROOT, stdio: ['ignore', 2, 2] });
  if (end.signal !== null) endLike(end);
  if (end.code !== 0) throw new StartError(`npm ${npmArgs[0]} failed with exit code ${end.code}`);
}

/**
 * Takes the install lock of this folder, waiting for another start that holds it. The lock is a listening socket, so
 * it goes with its process however that ends: an abstract one on Linux, elsewhere a file in the temporary folder.
 * Returns the function that lets go.
 */
async function takeInstallLock() {
  const name = `holdfast-install-${createHash('sha256').update(ROOT).digest('hex').slice(0, 24)}`;
  const address = process.platform === 'linux' ? `\0${name}` : join(tmpdir(), name);
  for (let isFirst = true; ; isFirst = false) {
    const server = createServer();
    const isMine = await new Promise((resolve, reject) => {
      server.once('listening', () => resolve(true));
      server.once('error', (error) => (error.code === 'EADDRINUSE' ? resolve(false) : reject(error)));
      server.listen(address);
    });
    if (isMine) return () => server.close();
    if (isFirst) say('another start is installing the packages, waiting for it');
    await waitForHolder(address);
  }
}

/** Resolves when the holder of the lock is gone; removes the file that a killed one left (not on Linux). */
function waitForHolder(address) {
  return new Promise((resolve) => {
    const socket = connect(address);
    socket.once('error', () => {
      if (!address.startsWith('\0')) rmSync(address, { force: true });
      setTimeout(resolve, 50);
    });
    socket.once('close', resolve);
    socket.resume();
  });
}

/** Installs what the lock says, unless it is there; two starts at once wait for one another. */
async function ensureInstalled({ isDevelopment }) {
  if (readText(STAMP) === wantedStamp() && !isDevelopment) return;
  const release = await takeInstallLock();
  try {
    if (!installedAsLocked({ isDevelopment })) {
      say('installing the locked packages (npm ci); this is done once');
      // No package runs a script of its own at install time; the one that may need it follows below.
      await runNpm(
        'ci',
        '--include=dev',
        '--include=optional',
        '--ignore-scripts',
        '--loglevel=error',
        '--no-audit',
        '--no-fund',
      );
    }
    if (!hasNativeBinary()) {
      say(`${NATIVE_PACKAGE} has no binary for ${process.platform}-${process.arch}, compiling it`);
      await runNpm('rebuild', NATIVE_PACKAGE);
    }
    writeStamp();
  } finally {
    release();
  }
}

function writeStamp() {
  try {
    writeFileSync(STAMP, wantedStamp());
  } catch (error) {
    // An image may carry its packages read-only: then each start compares with the lock, which costs little.
    if (!['EACCES', 'EPERM', 'EROFS'].includes(error.code)) throw error;
  }
}

/** The Node to run the program with: the locked Node 24 where there is one for this platform, else this one. */
function chooseNode() {
  const locked = join(MODULES, `node-${process.platform}-${process.arch}`, 'bin', 'node');
  if (existsSync(locked)) return locked;
  if (Number(process.versions.node.split('.')[0]) >= 24) return process.execPath;
  throw new StartError(
    `there is no packaged Node for ${process.platform}-${process.arch}; ` +
      `install Node 24 or newer and run it with that (this is ${process.version})`,
  );
}

/** Whether nothing has to be installed before a program can run. */
export function isInstalled() {
  return readText(STAMP) === wantedStamp() || installedAsLocked({ isDevelopment: false });
}

/** Whether help is asked for: then nothing may be done but to print it. */
export function asksForHelp(args) {
  const own = args.includes('--') ? args.slice(0, args.indexOf('--')) : args;
  return own.includes('--help') || own.includes('-h') || own[0] === 'help';
}

/**
 * Installs what is missing, runs `script` (a file URL) by the locked Node with `args`, and ends this process like it. `flags`: of
 * Node itself. `env`: what the environment may override. `isDevelopment`: with the packages of tests and benchmarks.
 */
export async function runProgram({ script, args, flags = [], env = {}, isDevelopment = false }) {
  try {
    if (Number(process.versions.node.split('.')[0]) < 20) {
      throw new StartError(`Node 20 or newer is needed, this is ${process.version}`);
    }
    await ensureInstalled({ isDevelopment });
    const programArgs = [...flags, fileURLToPath(script), ...args];
    endLike(
      await runForeground(chooseNode(), programArgs, {
        // Compiled code is kept from one start to the next: without it most of a start goes into reading TypeScript.
        env: { NODE_COMPILE_CACHE: COMPILE_CACHE, ...env, ...process.env },
        // By the channel a program notices that this process was killed, and ends too (cmd/end-with-parent.ts).
        stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
      }),
    );
  } catch (error) {
    say(error instanceof StartError ? error.message : error.stack);
    process.exit(1);
  }
}

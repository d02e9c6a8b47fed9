// Where the program etcd is, and how it comes here: from the PATH, else out of Debian's package, unpacked into a folder
// of the project. The package is not installed: that would start a service of the whole machine, and need root.
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { Refusal } from '../../base/refusal.ts';
import { makeFolder } from '../disk/make-folder.ts';

const PACKAGE = 'etcd-server';
const PROGRAM = 'etcd';
/** Of the package, once unpacked. */
const UNPACKED = join('usr', 'bin', PROGRAM);
/** Debian's own come first: a version manager may put others of the same name on the PATH. */
const SEARCH_FOLDERS = ['/usr/bin', ...(process.env.PATH ?? '').split(delimiter)];

const MISSING = `etcd is not here, and could not be fetched. Install it and try again:
  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${PACKAGE}`;

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Where etcd is: on the PATH, or in the folder into which `bringEtcd` has unpacked it; or undefined. */
export function findEtcd(cacheFolder: string): string | undefined {
  return [...SEARCH_FOLDERS.map((folder) => join(folder, PROGRAM)), join(cacheFolder, UNPACKED)].find(
    isExecutable,
  );
}

/**
 * Where etcd is; fetches it into `cacheFolder` when it is nowhere, and says so first. Processes may do this at once.
 * Throws Refusal, which says what to install, when it cannot be had.
 */
export async function bringEtcd(options: {
  cacheFolder: string;
  mayFetch: boolean;
  print: (text: string) => void;
}): Promise<string> {
  const { cacheFolder, mayFetch, print } = options;
  const found = findEtcd(cacheFolder);
  if (found !== undefined) return found;
  if (!mayFetch || !SEARCH_FOLDERS.some((folder) => isExecutable(join(folder, 'apt-get'))))
    throw new Refusal(MISSING);
  print(`Fetching Debian's package ${PACKAGE} into ${cacheFolder}`);
  await makeFolder(cacheFolder);
  const staging = await mkdtemp(join(cacheFolder, 'fetch-'));
  try {
    await download(staging);
    const archive = (await readdir(staging)).find((name) => name.endsWith('.deb'));
    if (archive === undefined) throw new Error('apt-get left no package');
    await run('dpkg-deb', ['--extract', archive, 'unpacked'], staging);
    await putInPlace(join(staging, 'unpacked', 'usr'), join(cacheFolder, 'usr'));
  } catch (error) {
    throw new Refusal(`${MISSING}\n(${(error as Error).message})`);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
  const fetched = findEtcd(cacheFolder);
  if (fetched === undefined) throw new Refusal(MISSING);
  return fetched;
}

/** By the lists of packages that the machine has; else by lists of our own, which need no rights. */
async function download(folder: string): Promise<void> {
  // Root fetches as root: the user that apt would take instead may not write here.
  const asOurselves = ['-q', '-o', 'APT::Sandbox::User='];
  try {
    await run('apt-get', [...asOurselves, 'download', PACKAGE], folder);
  } catch {
    const lists = join(folder, 'lists');
    await makeFolder(join(lists, 'partial'));
    const own = [
      ...asOurselves,
      ...['-o', `Dir::State::Lists=${lists}`],
      ...['-o', `Dir::Cache=${join(folder, 'cache')}`],
    ];
    await run('apt-get', [...own, 'update'], folder);
    await run('apt-get', [...own, 'download', PACKAGE], folder);
  }
}

/** Another process that has fetched it meanwhile has fetched the same. */
async function putInPlace(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
  }
}

/** Rejects with what it said when it fails. */
function run(command: string, args: readonly string[], cwd: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let output = '';
    const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output = (output + text).slice(-2000);
      });
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`${command} ${args.at(-1)} failed: ${output.trim()}`));
    });
  });
}

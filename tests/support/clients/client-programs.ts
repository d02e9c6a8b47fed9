// The programs of other makers that the tests drive: where they are, and how they come here. Debian packages by apt
// when this runs as root on Debian (it says so first), today's Python clients, today's rclone and the linters of deploy/ into .venv
// at the top of the project.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { ROOT } from '../run/root.ts';

const VENV = join(ROOT, '.venv');
const REQUIREMENTS = join(ROOT, 'tests', 'support', 'clients', 'requirements.txt');
const STAMP = join(VENV, '.holdfast-ready');

/** Python with today's boto3. */
export const VENV_PYTHON = join(VENV, 'bin', 'python');
/** Today's AWS CLI, beside the distribution's (`programPath('aws')`). */
export const VENV_AWS = join(VENV, 'bin', 'aws');
/** Today's rclone, which sets object locks. */
export const VENV_RCLONE = join(VENV, 'bin', 'rclone');
/** The linter of container files. */
export const VENV_HADOLINT = join(VENV, 'bin', 'hadolint');
/** Validates by JSON schemas, and carries that of compose files. */
export const VENV_CHECK_JSONSCHEMA = join(VENV, 'bin', 'check-jsonschema');

/** Program → the Debian package that carries it. */
const DEBIAN_PACKAGES = {
  restic: 'restic',
  rclone: 'rclone',
  s3cmd: 's3cmd',
  aws: 'awscli',
  borg: 'borgbackup',
  'barman-cloud-wal-archive': 'barman-cli-cloud',
  strace: 'strace',
  haproxy: 'haproxy',
  'systemd-analyze': 'systemd',
} as const;

export type ClientProgram = keyof typeof DEBIAN_PACKAGES;

const DEBIAN_FOLDERS = ['/usr/bin', '/usr/sbin'];
/** Debian's own programs come first: a version manager may put others of the same name on the PATH. */
const SEARCH_FOLDERS = [...DEBIAN_FOLDERS, ...(process.env.PATH ?? '').split(delimiter)];

/** Where a program is, or undefined. */
export function programPath(
  name: ClientProgram | 'apt-get' | 'python3' | 'systemd-sysusers' | 'systemd-tmpfiles',
): string | undefined {
  // Another `aws` is likely the AWS CLI's version 1, which is tested in the version of today and answers otherwise.
  const folders = name === 'aws' ? DEBIAN_FOLDERS : SEARCH_FOLDERS;
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Makes sure that every client is here; says what it installs, or what to paste and returns false. */
export function bringClientPrograms(options: { mayInstall: boolean }): boolean {
  const wanted = missingPackages();
  if (wanted.length > 0) {
    const isRootOnDebian = process.getuid?.() === 0 && existsSync('/etc/debian_version');
    const apt = isRootOnDebian ? programPath('apt-get') : undefined;
    if (apt === undefined || !options.mayInstall) {
      say(`The tests drive programs that are not here. Install them and run the tests again:
  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${wanted.join(' ')}`);
      return false;
    }
    say(`Installing Debian packages that the tests drive: ${wanted.join(' ')}`);
    if (!aptInstall(apt, wanted)) return false;
  }
  return bringPythonPackages();
}

function missingPackages(): string[] {
  const wanted: string[] = [];
  for (const [program, debianPackage] of Object.entries(DEBIAN_PACKAGES)) {
    if (programPath(program as ClientProgram) === undefined) wanted.push(debianPackage);
  }
  if (!isVenvReady() && findPython() === undefined) wanted.push('python3-venv');
  return wanted;
}

function aptInstall(apt: string, packages: readonly string[]): boolean {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  for (const args of [['update'], ['install', '-y', '--no-install-recommends', ...packages]]) {
    const { status } = spawnSync(apt, ['-q', ...args], { stdio: 'inherit', env });
    if (status !== 0) {
      say(`apt-get ${args[0]} failed`);
      return false;
    }
  }
  return true;
}

/** A Python that can make virtual environments: Debian's needs python3-venv for that. */
function findPython(): string | undefined {
  return SEARCH_FOLDERS.map((folder) => join(folder, 'python3'))
    .filter(isExecutable)
    .find((python) => spawnSync(python, ['-c', 'import venv, ensurepip'], { stdio: 'ignore' }).status === 0);
}

function requirementsStamp(): string {
  return createHash('sha256').update(readFileSync(REQUIREMENTS)).digest('hex');
}

function isVenvReady(): boolean {
  return (
    existsSync(STAMP) && readFileSync(STAMP, 'utf8') === requirementsStamp() && isExecutable(VENV_PYTHON)
  );
}

function bringPythonPackages(): boolean {
  if (isVenvReady()) return true;
  say('Installing the Python clients and linters into .venv');
  rmSync(VENV, { recursive: true, force: true });
  const python = findPython() ?? 'python3';
  const pip = [
    '-m',
    'pip',
    'install',
    '--quiet',
    '--disable-pip-version-check',
    '--no-input',
    '-r',
    REQUIREMENTS,
  ];
  for (const [command, args] of [
    [python, ['-m', 'venv', VENV]],
    [VENV_PYTHON, pip],
  ] as const) {
    const { status } = spawnSync(command, args, { stdio: 'inherit', cwd: ROOT });
    if (status !== 0) {
      say(`${command} ${args.join(' ')} failed`);
      return false;
    }
  }
  // Last, so that an installation cut short is done again.
  writeFileSync(STAMP, requirementsStamp());
  return true;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

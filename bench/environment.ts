// Where figures come from, which a reader must know to judge them: machine, Node, commit, command and day.
import { execFile } from 'node:child_process';
import { cpus, totalmem } from 'node:os';
import { promisify } from 'node:util';

export interface Environment {
  machine: string;
  node: string;
  commit: string;
  command: string;
  date: string;
}

/** `program`: how the running program is called; its arguments are added. */
export async function describeEnvironment(program: string): Promise<Environment> {
  const processors = cpus();
  const memoryGiB = Math.round(totalmem() / 1024 ** 3);
  const git = promisify(execFile)('git', ['describe', '--always', '--dirty'], { cwd: import.meta.dirname });
  const commit = await git.then(
    ({ stdout }) => stdout.trim(),
    () => 'unknown',
  );
  return {
    machine: `${processors.length} x ${processors[0]?.model.trim() ?? 'unknown'}, ${memoryGiB} GiB`,
    node: process.versions.node,
    commit,
    command: [program, ...process.argv.slice(2).map(hideKey)].join(' '),
    date: new Date().toISOString().slice(0, 10),
  };
}

/** Reports are shown around: what follows --secret-key and its like stays out of them. */
function hideKey(argument: string, index: number, all: readonly string[]): string {
  return all[index - 1]?.endsWith('-key') ? '...' : argument.replace(/(?<=-key=).*/, '...');
}

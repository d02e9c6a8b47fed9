// Commands of today's AWS CLI without a start of Python for each: a process has loaded its modules, and forks (aws_forks.py).
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { must } from '../../../src/base/assert.ts';
import { VENV_PYTHON } from './client-programs.ts';

const PROGRAM = join(import.meta.dirname, 'aws_forks.py');

export interface AwsCommand {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string | undefined;
}

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The process of this worker, which all of its files share. It ends with the worker. */
class AwsForks {
  readonly #child: ChildProcess;
  readonly #commands: Socket;
  readonly #waiting = new Map<number, PromiseWithResolvers<number>>();
  #count = 0;

  constructor(env: Readonly<Record<string, string>>) {
    const { PATH = '', LANG = '', LC_ALL = '' } = env;
    const child = spawn(VENV_PYTHON, [PROGRAM], {
      env: { PATH, LANG, LC_ALL },
      stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
    });
    const told = must(child.stdout, 'a pipe') as Socket;
    this.#child = child;
    this.#commands = child.stdio[3] as Socket;
    for (const end of [child, told, this.#commands]) end.unref();
    createInterface({ input: told }).on('line', (line) => {
      const { id, code } = JSON.parse(line) as { id: number; code: number };
      this.#waiting.get(id)?.resolve(code);
      this.#waiting.delete(id);
    });
    child.on('exit', (code, signal) => {
      const error = new Error(`the process that runs the AWS CLI has ended with ${signal ?? code}`);
      for (const { reject } of this.#waiting.values()) reject(error);
    });
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  async run({ args, env, cwd }: AwsCommand): Promise<Ended> {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-aws-'));
    const [out, err] = [join(folder, 'out'), join(folder, 'err')];
    const id = ++this.#count;
    const ended = Promise.withResolvers<number>();
    this.#waiting.set(id, ended);
    try {
      this.#commands.write(`${JSON.stringify({ id, args, env, cwd, out, err })}\n`);
      const code = await ended.promise;
      return { code, stdout: readFileSync(out, 'utf8'), stderr: readFileSync(err, 'utf8') };
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
}

let forks: AwsForks | undefined;

/** Runs a command to its end. */
export function runAwsForked(command: AwsCommand): Promise<Ended> {
  if (forks === undefined || forks.hasEnded) forks = new AwsForks(command.env);
  return forks.run(command);
}

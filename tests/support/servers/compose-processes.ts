// A compose file without containers: each service as a process of this machine, with the command and the environment that
// it would have there. Names of services and their ports become free ones of loopback, mounted files links in a folder.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { must } from '../../../src/base/assert.ts';
import { freePorts } from '../cluster/free-ports.ts';
import { COMPILE_CACHE } from '../run/root.ts';
import { type ComposeFile, type ComposeService, deployPath, imageEnvironment } from './deploy-files.ts';
import { endGracefully } from './process-ends.ts';

/** The one that holdfast.mjs uses. */
const LOG_KEPT_CHARS = 20_000;

export interface ComposeProcesses {
  /** Where files of a path in the compose file lie: `./secrets/keys`. */
  pathOf(mounted: string): string;
  /** Host and port here, of a service and its port there. */
  addressOf(service: string, port: number): string;
  environmentOf(service: string): Record<string, string>;
  /** Runs a service to its end, or the command given in its place. */
  run(service: string, command?: readonly string[]): { status: number | null; said: string };
  /** Starts one that lasts; `program` where the image is not ours. */
  start(service: string, program?: string): void;
  /** All that a process has said lately. */
  logOf(service: string): string;
  /** SIGTERM; resolves with its exit code. */
  stop(service: string): Promise<number | null>;
  /** Kills what still runs. */
  end(): void;
}

/** `folder` exists and is empty; `ports` are those that services listen on there. */
export async function composeProcesses(
  file: ComposeFile,
  { folder, ports }: { folder: string; ports: readonly number[] },
): Promise<ComposeProcesses> {
  const names = Object.keys(file.services);
  const free = await freePorts(names.length * ports.length);
  const addressOf = (service: string, port: number) => {
    const at = names.indexOf(service) * ports.length + ports.indexOf(port);
    return `127.0.0.1:${must(free[at], `a port for ${service}:${port}`)}`;
  };
  const serviceOf = (name: string): ComposeService => must(file.services[name], name);
  const pathOf = (mounted: string) => join(folder, mounted);
  const children = new Map<string, { child: ChildProcess; log: string }>();
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  symlinkSync(deployPath('holdfast'), join(bin, 'holdfast'));

  /** As it stands in the file, with what is here in the place of what is there. */
  function translate(service: string, text: string): string {
    const address = /\b(0\.0\.0\.0|[a-z]+-\d):(\d+)\b/g;
    const folders: Readonly<Record<string, string>> = {
      '/run/secrets/': `${join(folder, 'run', service)}/`,
      '/run/holdfast/': `${pathOf('./secrets')}/`,
      '/secrets/': `${pathOf('./secrets')}/`,
      '/var/lib/holdfast': join(folder, 'data', service),
      '/var/lib/etcd': join(folder, 'data', service),
    };
    return text
      .replace(address, (all, host: string, port: string) =>
        ports.includes(Number(port)) ? addressOf(host === '0.0.0.0' ? service : host, Number(port)) : all,
      )
      .replace(
        /(?<!\w)\/(run\/secrets\/|run\/holdfast\/|secrets\/|var\/lib\/\w+)/g,
        (found) => folders[found] ?? found,
      );
  }

  function environmentOf(service: string): Record<string, string> {
    const { environment, image } = serviceOf(service);
    const all = { ...(image.startsWith('holdfast') && imageEnvironment()), ...environment };
    const translated = Object.entries(all).map(([name, value]) => [name, translate(service, value)] as const);
    return {
      ...Object.fromEntries(translated),
      PATH: `${bin}:/usr/bin:/bin`,
      HOME: folder,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
    };
  }

  function wordsOf(
    service: string,
    command: readonly string[] | undefined,
    program = 'holdfast',
  ): [string, string[]] {
    const { entrypoint = [program], command: own = [] } = serviceOf(service);
    // What a container would find there is there once the service is started.
    const run = join(folder, 'run', service);
    mkdirSync(run, { recursive: true });
    for (const { source, target } of serviceOf(service).secrets ?? []) {
      const at = join(run, target);
      rmSync(at, { force: true });
      symlinkSync(pathOf(must(file.secrets?.[source], source).file), at);
    }
    const words = (command ?? own).map((word) => translate(service, word.replaceAll('$$', '$')));
    return [must(entrypoint[0], 'a program'), [...entrypoint.slice(1), ...words]];
  }

  return {
    pathOf,
    addressOf,
    environmentOf,
    run(service, command) {
      const options = { env: environmentOf(service), encoding: 'utf8', cwd: folder } as const;
      const { status, stdout, stderr } = spawnSync(...wordsOf(service, command), options);
      return { status, said: stdout + stderr };
    },
    start(service, program) {
      const [path, args] = wordsOf(service, undefined, program);
      const child = spawn(path, args, {
        env: environmentOf(service),
        cwd: folder,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const started = { child, log: '' };
      children.set(service, started);
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (text: string) => {
          started.log = (started.log + text).slice(-LOG_KEPT_CHARS);
        });
    },
    logOf: (service) => children.get(service)?.log ?? '',
    async stop(service) {
      const { child } = must(children.get(service), service);
      return endGracefully(child);
    },
    end() {
      for (const { child } of children.values()) child.kill('SIGKILL');
    },
  };
}

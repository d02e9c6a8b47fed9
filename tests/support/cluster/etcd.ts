// A real etcd for tests: the program found or fetched, a temporary data folder, loopback, free ports.
import { cp, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EtcdProcess, startEtcd } from '../../../src/platform/etcd/etcd-process.ts';
import { bringEtcd } from '../../../src/platform/etcd/etcd-program.ts';
import { systemClock } from '../../../src/platform/system-clock.ts';
import { ROOT } from '../run/root.ts';

/** Goes with the packages. */
const CACHE_FOLDER = join(ROOT, 'node_modules', '.cache', 'etcd');

/** Makes sure that etcd is here; throws Refusal, which says what to install. */
export function bringTestEtcd(options: { mayInstall: boolean }): Promise<string> {
  return bringEtcd({
    cacheFolder: CACHE_FOLDER,
    mayFetch: options.mayInstall,
    print: (text) => process.stdout.write(`${text}\n`),
  });
}

export interface TestEtcd {
  readonly endpoint: string;
  /** Of the process that runs now. */
  process(): EtcdProcess;
  /** Starts it again at the same endpoint, once it is gone. */
  restart(): Promise<void>;
  /** Keeps a copy of the data folder. Etcd must be gone. */
  copyData(): Promise<void>;
  /** Puts the copy in the place of the data folder, as a restore from a backup does. Etcd must be gone. */
  restoreData(): Promise<void>;
  /** Ends it and removes its data. */
  stop(): Promise<void>;
}

/** Resolves when it serves. */
export async function startTestEtcd(): Promise<TestEtcd> {
  const path = await bringTestEtcd({ mayInstall: true });
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-etcd-'));
  const dataDir = join(folder, 'data');
  const copy = join(folder, 'copy');
  let etcd = await startEtcd({ path, dataDir, clock: systemClock });
  return {
    endpoint: etcd.endpoint,
    process: () => etcd,
    async restart() {
      await etcd.exited;
      etcd = await startEtcd({ path, dataDir, clientPort: etcd.clientPort, clock: systemClock });
    },
    copyData: () => cp(dataDir, copy, { recursive: true }),
    async restoreData() {
      await rm(dataDir, { recursive: true });
      await rename(copy, dataDir);
    },
    async stop() {
      await etcd.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

// The etcd of `holdfast cluster run`: certificates of its own, so that no other user of the machine writes into it, and the
// end of one that a launcher which was killed has left behind.
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../../src/platform/disk/make-folder.ts';
import type { EtcdTls } from '../../src/platform/etcd/etcd-process.ts';
import { systemClock } from '../../src/platform/system-clock.ts';
import { makeNodeCertificate } from '../../src/platform/tls/cluster-certificates.ts';

const NAME = 'etcd';
const END_MAX_MS = 10_000;
const LOOK_AGAIN_MS = 50;

/** Made anew at each start, by an authority that stays: etcd shows them, and so does everybody whom it lets in. */
export async function makeEtcdCertificates(folder: string): Promise<EtcdTls> {
  await makeFolder(folder, 0o700);
  for (const name of [`${NAME}-cert.pem`, `${NAME}-key.pem`]) await rm(join(folder, name), { force: true });
  const hosts = ['127.0.0.1', 'localhost'];
  const { ca, cert, key } = await makeNodeCertificate({
    folder,
    name: NAME,
    hosts,
    nowMs: systemClock.wallMs(),
  });
  return { ca, cert, key };
}

/** Notes which process serves `dataDir`, for {@link endLeftEtcd}. */
export async function noteEtcd(pidFile: string, pid: number): Promise<void> {
  await writeFile(pidFile, `${pid}\n`, { mode: 0o600 });
}

/** Ends the etcd of `dataDir` that a killed launcher has left: it holds the folder, and at a port that nobody knows. */
export async function endLeftEtcd(pidFile: string, dataDir: string): Promise<void> {
  const pid = Number(await readFile(pidFile, 'utf8').catch(() => ''));
  if (!Number.isSafeInteger(pid) || pid <= 1) return;
  const isOurs = () =>
    readFile(`/proc/${pid}/cmdline`, 'utf8').then(
      (line) => line.split('\0').includes(`--data-dir=${dataDir}`),
      () => false,
    );
  if (!(await isOurs())) return;
  process.kill(pid, 'SIGTERM');
  const endMs = systemClock.monotonicMs() + END_MAX_MS;
  while ((await isOurs()) && systemClock.monotonicMs() < endMs) await systemClock.sleep(LOOK_AGAIN_MS);
}

// holdfast cluster certs: the files by which a node shows that it belongs to the cluster, and which of them go where.

import { Refusal } from '../../src/base/refusal.ts';
import { makeFolder } from '../../src/platform/disk/make-folder.ts';
import { makeNodeCertificate } from '../../src/platform/tls/cluster-certificates.ts';
import type { ClusterCommandContext } from './command-context.ts';

export async function makeCertificates(
  context: ClusterCommandContext,
  options: { out: string; name: string; host: readonly string[] },
): Promise<void> {
  try {
    await makeFolder(options.out, 0o700);
    const made = await makeNodeCertificate({
      folder: options.out,
      name: options.name,
      hosts: [...new Set(options.host)],
      nowMs: context.nowMs(),
    });
    if (made.madeCa)
      context.print(`Made the authority of the cluster: ${made.ca}. Its key stays in this folder.`);
    context.print(
      `Made ${made.cert} and ${made.key} for ${options.name}, good until ${day(made.expiresAtMs)}.`,
    );
    context.print(`The node needs these two and ${made.ca}.`);
  } catch (error) {
    if (error instanceof Refusal || !isFileError(error)) throw error;
    throw new Refusal(error.message);
  }
}

function day(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10);
}

function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error;
}

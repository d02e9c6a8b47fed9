// A cached copy of what `holdfast cluster status` last read from etcd, for when etcd does not answer: where the nodes are,
// and which shards they hold. It has addresses and ids, and no secrets. The command works without it where it cannot write
// the file.
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { makeFolder } from '../../platform/disk/make-folder.ts';
import type { ClusterIdentity } from '../../ports/cluster-identity.ts';
import type { LeavingNode } from '../../ports/coordination.ts';
import type { Member } from '../../ports/members.ts';
import type { PlacementDocument } from '../../ports/placement-map.ts';
import type { ShardRecord } from '../../ports/shard-registry.ts';

export interface KnownCluster {
  /** Wall clock ms. */
  atMs: number;
  identity: ClusterIdentity;
  members: Member[];
  /** By shard; null: none is written yet. */
  records: (ShardRecord | null)[];
  /** Null: there is none, or an earlier release has kept this. */
  placement?: PlacementDocument | null;
  /** Gateways that have ended without leaving. Absent: an earlier release has kept this. */
  missingGateways?: Member[];
  /** Absent: an earlier release has kept this. */
  leavingNodes?: LeavingNode[];
}

/** One for each cluster, which is known by its etcd servers. */
export function lastKnownPath(env: NodeJS.ProcessEnv, etcd: readonly string[]): string {
  const cache = env.XDG_CACHE_HOME || join(homedir(), '.cache');
  const name = createHash('sha256')
    .update([...etcd].sort().join(' '))
    .digest('hex')
    .slice(0, 16);
  return join(cache, 'holdfast', `cluster-${name}.json`);
}

export async function keepKnown(path: string, known: KnownCluster): Promise<void> {
  try {
    await makeFolder(dirname(path), 0o700);
    await writeFile(path, JSON.stringify(known), { mode: 0o600 });
  } catch {
    // It helps later, perhaps; what was asked for has been answered.
  }
}

/** undefined: nothing that could be read. */
export async function readKnown(path: string): Promise<KnownCluster | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as KnownCluster;
  } catch {
    return undefined;
  }
}

// The plan of `holdfast cluster grow`, in a file of the data folder. It is written before anything is changed, so that a
// repetition continues with the same cluster, nodes and disk, wherever the first run was cut short.
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Refusal } from '../../base/refusal.ts';
import { GROW_FILE } from '../../platform/disk/data-dir-lock.ts';
import { syncFolder, writeDurableFile } from '../../platform/disk/durable-file.ts';
import type { ClusterIdentity } from '../../ports/cluster-identity.ts';
import type { PlacedDisk } from '../../ports/placement.ts';
import type { ReplicaRef } from '../../ports/replication.ts';

const PLAN_FORMAT = 1;

export interface GrowPlan {
  format: number;
  identity: ClusterIdentity;
  /** The metadata node and its database. */
  voter: ReplicaRef;
  /** By shard: the epoch of its first record. */
  shards: { incarnation: number; epoch: number }[];
  disk: PlacedDisk;
  /** Everything is done: the folder is those of three roles. */
  isDone: boolean;
}

export function newPlan(plan: Omit<GrowPlan, 'format' | 'isDone'>): GrowPlan {
  return { format: PLAN_FORMAT, ...plan, isDone: false };
}

/** undefined: nothing was begun. Throws {@link Refusal} for one of a newer program. */
export async function readPlan(folder: string): Promise<GrowPlan | undefined> {
  const path = join(folder, GROW_FILE);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const plan = parse(text);
  if (plan?.format !== PLAN_FORMAT)
    throw new Refusal(`${path} is not what this program writes: it is damaged, or of a newer one`);
  return plan;
}

function parse(text: string): GrowPlan | undefined {
  try {
    return JSON.parse(text) as GrowPlan;
  } catch {
    return undefined;
  }
}

/** For a plan that has changed nothing. */
export async function removePlan(folder: string): Promise<void> {
  await rm(join(folder, GROW_FILE), { force: true });
  await syncFolder(folder);
}

export function writePlan(folder: string, plan: GrowPlan): Promise<void> {
  return writeDurableFile(join(folder, GROW_FILE), `${JSON.stringify(plan)}\n`);
}
